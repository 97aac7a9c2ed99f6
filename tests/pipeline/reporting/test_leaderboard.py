"""Who wins: counts over benchmarks, written out by hand."""

from __future__ import annotations

import json
import math

import pandas as pd

from pipeline.reporting.leaderboard import leaderboard_figure, leaderboard_of


def table(*rows):
    columns = ["method", "metric", "mean", "not_worse", "beyond_floor", "upper"]
    return pd.DataFrame(rows, columns=columns).assign(splits=10)


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


def test_the_note_says_where_a_single_split_has_no_test():
    notes = {}
    for first, second in ((10, 10), (1, 1), (10, 1)):
        tables = {"first": BENCHMARKS["first"].assign(splits=first)}
        tables["second"] = BENCHMARKS["second"].assign(splits=second)
        note = leaderboard_of(tables, ["uncalibrated", "temperature"]).note
        notes[first, second] = "paired test" in note, "no test" in note
    assert notes == {(10, 10): (True, False), (1, 1): (False, True), (10, 1): (True, True)}


def test_seconds_are_medians_of_these_benchmarks_fits_and_a_cut_line_of_the_log_is_skipped(
    tmp_path,
):
    leaderboard = leaderboard_of(BENCHMARKS, ["uncalibrated", "temperature"])
    assert leaderboard.with_seconds(tmp_path) is leaderboard  # nothing ran here
    units = {
        "fits/first/temperature/0": 1.0,
        "fits/first/temperature/1": 2.0,
        "fits/second/temperature/0": 9.0,
        "fits/other/temperature/0": 50.0,
        "scores/first/temperature/0": 70.0,
    }
    lines = [
        json.dumps({"unit": unit, "core_seconds": seconds, "memory_mib": 1, "error": ""})
        for unit, seconds in units.items()
    ]
    (tmp_path / "here.jsonl").write_text("\n".join([*lines, '{"unit": "fi']))
    timed = leaderboard.with_seconds(tmp_path)
    assert timed.heading[-1] == "Seconds of a fit"
    assert [line[-1] for line in timed.lines] == ["2", "–"]


def test_the_figure_has_the_methods_from_best_to_worst():
    figure = leaderboard_figure(leaderboard_of(BENCHMARKS, ["uncalibrated", "temperature"]))
    worse, noise, saved = figure.axes
    names = [label.get_text() for label in worse.get_yticklabels()]
    assert names == ["Uncalibrated", "Temp. Scaling"]  # upwards
    assert [bar.get_width() for bar in worse.patches] == [3, 0]
    assert noise.collections[0].get_offsets()[:, 0].tolist() == [0, 1]
    assert saved.collections[0].get_offsets()[:, 0].tolist() == [0, 37.5]
