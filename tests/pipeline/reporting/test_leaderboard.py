"""Who wins: counts over benchmarks, written out by hand."""

from __future__ import annotations

import math

from pipeline.reporting.leaderboard import leaderboard_of


def cell(mean, not_worse, beyond=None, upper=math.nan):
    return {"mean": mean, "not_worse": not_worse, "beyond_floor": beyond, "upper": upper}


BENCHMARKS = {
    "first": {
        ("uncalibrated", "nll"): cell(2.0, False),
        ("uncalibrated", "u_topk"): cell(0.3, False, True, 0.351),
        ("temperature", "nll"): cell(1.0, True),
        ("temperature", "u_topk"): cell(0.1, True, False, 0.151),
    },
    "second": {
        ("uncalibrated", "nll"): cell(2.0, True),
        ("uncalibrated", "u_topk"): cell(0.2, False, math.nan, 0.2),
        ("temperature", "nll"): cell(1.5, math.nan),
        ("temperature", "u_topk"): cell(0.1, True, True, 0.12),
    },
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
