"""Figures, and who wins: counts over benchmarks, written out by hand."""

from dataclasses import replace

import pandas as pd

from tests.pipeline.reporting.conftest import decided
from utility_calibration.pipeline.reporting.figures import leaderboard_figure
from utility_calibration.pipeline.reporting.leaderboard import leaderboard_of
from utility_calibration.pipeline.reporting.study_figures import (
    Study,
    history_figure,
    rises_of,
    snapshot_figure,
)


def study(family, errors):
    """Errors {iteration: [users]} as the stage would have written them."""
    worst = [max(values) for values in errors.values()]
    columns = {"iteration": [*errors], "worst": worst, "held_out": [2 * value for value in worst]}
    history = pd.concat(pd.DataFrame({"split": k, **columns}) for k in range(2))
    parts = [pd.DataFrame({"iteration": k, "error": values}) for k, values in errors.items()]
    floor = {"mean": 0.006, "q05": 0.005, "q95": 0.007}
    record = {"config": {"utilities": 3}, "n": 7000, "n_held_out": 3000, "different_users": 2,
              "split": 0,
              "worst_noise_floor": floor, "worst_noise_floor_held_out": None}  # fmt: skip
    return Study(family, history, pd.concat(parts), record)


STUDIES = [
    study("aligned", {0: [0.1, 0.11, 0.12], 1: [0.01, 0.02, 0.03]}),
    study("misaligned", {0: [0.2, 0.21, 0.22], 1: [0.02, 0.03, 0.09]}),
]


def test_a_study_has_a_panel_per_family_and_one_per_iteration() -> None:
    history, snapshots = history_figure(STUDIES, "CIFAR"), snapshot_figure(STUDIES, "CIFAR")
    assert [axis.get_title() for axis in history.axes] == ["Aligned users", "Misaligned users"]
    drawn = [[tuple(line.get_ydata()) for line in axis.lines] for axis in history.axes]
    assert drawn == [[(0.12, 0.03), (0.24, 0.06)], [(0.22, 0.09), (0.44, 0.18)]]
    titles = [axis.get_title(loc="left") for axis in snapshots.axes]
    assert titles == ["Before patching", "Iteration 1"]
    medians = [[line.get_xdata()[0] for line in axis.lines] for axis in snapshots.axes]
    assert medians == [[0.11, 0.21], [0.02, 0.03]]
    printed = [[text.get_text() for text in axis.texts] for axis in snapshots.axes]
    assert printed == [["aligned .110", "misaligned .210"], ["aligned .0200", "misaligned .0300"]]
    assert len({axis.get_xlim() for axis in snapshots.axes}) == 1


def test_only_a_median_that_rises_is_told():
    falls, rises, stays = (study("aligned", {0: [0.1], 5: [last]}) for last in (0.05, 0.2, 0.1))
    assert [len(rises_of([one])) for one in (falls, rises, stays)] == [0, 1, 0]
    assert ".200" in rises_of([falls, rises])[0]


def row(mean, not_worse, **more):
    return {"mean": mean, "not_worse": not_worse, **more}


FIRST = {
    "nll": {"uncalibrated": row(2.0, False, difference=1.0), "temperature": row(1.0, True)},
    "u_topk": {
        "uncalibrated": row(0.3, False, beyond_floor=True, upper=0.351, difference=0.2),
        "temperature": row(0.1, True, beyond_floor=False, upper=0.151),
    },
}
SECOND = {
    "nll": {"uncalibrated": row(2.0, True), "temperature": row(1.5, None)},
    "u_topk": {
        "uncalibrated": row(0.2, False, upper=0.2, difference=0.1),
        "temperature": row(0.1, True, beyond_floor=True, upper=0.12),
    },
}
BENCHMARKS = {"first": decided(FIRST), "second": decided(SECOND)}


def test_methods_with_fewer_losses_come_first_and_bounds_round_up():
    leaderboard = leaderboard_of(BENCHMARKS)
    assert leaderboard.table.rows == [
        ["Temp. Scaling", "0", "1.00", "1.00", "1", ".16", "37.5 %"],
        ["Uncalibrated", "3", "1.86", "3.00", "0", ".36", "0.0 %"],
    ]


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
