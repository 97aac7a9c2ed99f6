"""Who wins: counts over benchmarks, written out by hand."""

from __future__ import annotations

from dataclasses import replace

from pipeline.reporting.leaderboard import leaderboard_figure, leaderboard_of
from tests.pipeline.reporting.conftest import decided


def row(mean, not_worse, **more):
    return {"mean": mean, "not_worse": not_worse, **more}


FIRST = {
    "nll": {"uncalibrated": row(2.0, False), "temperature": row(1.0, True)},
    "u_topk": {
        "uncalibrated": row(0.3, False, beyond_floor=True, upper=0.351),
        "temperature": row(0.1, True, beyond_floor=False, upper=0.151),
    },
}
SECOND = {
    "nll": {"uncalibrated": row(2.0, True), "temperature": row(1.5, None)},
    "u_topk": {
        "uncalibrated": row(0.2, False, upper=0.2),
        "temperature": row(0.1, True, beyond_floor=True, upper=0.12),
    },
}
BENCHMARKS = {"first": decided(FIRST), "second": decided(SECOND)}


def test_methods_with_fewer_losses_come_first_and_bounds_round_up():
    leaderboard = leaderboard_of(BENCHMARKS)
    assert leaderboard.lines == [
        ["Temp. Scaling", "0", "1", ".16", "37.5 %"],
        ["Uncalibrated", "3", "0", ".36", "0.0 %"],
    ]
    heading = ["Worse than the best, of 4", "Within noise, of 2: shortlists"]
    assert leaderboard.heading[1:3] == heading
    assert "wrong in 5 % of cases, so chance alone may take about 0 of 4 cells" in leaderboard.note


def test_one_benchmark_or_no_test_has_no_leaderboard():
    assert leaderboard_of({"first": BENCHMARKS["first"]}) is None
    untested = {name: replace(decisions, test="") for name, decisions in BENCHMARKS.items()}
    assert leaderboard_of(untested) is None


def test_the_figure_has_the_methods_from_best_to_worst():
    figure = leaderboard_figure(leaderboard_of(BENCHMARKS))
    worse, noise, saved = figure.axes
    names = [label.get_text() for label in worse.get_yticklabels()]
    assert names == ["Uncalibrated", "Temp. Scaling"]  # upwards
    assert [bar.get_width() for bar in worse.patches] == [3, 0]
    assert noise.collections[0].get_offsets()[:, 0].tolist() == [0, 1]
    assert saved.collections[0].get_offsets()[:, 0].tolist() == [0, 37.5]
