"""Who wins: counts over benchmarks, written out by hand."""

from __future__ import annotations

import math

import pandas as pd

from pipeline.reporting.leaderboard import leaderboard_of


def table(*rows):
    columns = ["method", "metric", "mean", "not_worse", "beyond_floor", "upper"]
    return pd.DataFrame(rows, columns=columns)


BENCHMARKS = {
    "first": table(
        ("uncalibrated", "nll", 2.0, False, None, math.nan),
        ("uncalibrated", "u_topk", 0.3, False, True, 0.351),
        ("temperature", "nll", 1.0, True, None, math.nan),
        ("temperature", "u_topk", 0.1, True, False, 0.151),
    ),
    "second": table(
        ("uncalibrated", "nll", 2.0, True, None, math.nan),
        ("uncalibrated", "u_topk", 0.2, False, math.nan, 0.2),
        ("temperature", "nll", 1.5, math.nan, None, math.nan),
        ("temperature", "u_topk", 0.1, True, True, 0.12),
    ),
}


def test_methods_with_fewer_losses_come_first_and_bounds_round_up():
    leaderboard = leaderboard_of(BENCHMARKS, ["uncalibrated", "temperature"])
    assert leaderboard.lines == [
        ["Temp. Scaling", "0", "1", ".16", "37.5 %"],
        ["Uncalibrated", "3", "0", ".36", "0.0 %"],
    ]
    assert leaderboard.heading[1:3] == [
        "Worse than the best, of 4",
        "Within noise, of 2: shortlists",
    ]
