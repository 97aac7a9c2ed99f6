"""Figures: the curves they are drawn from, and what they show."""

from __future__ import annotations

import pandas as pd

from pipeline.reporting.figures import Study, ecdf_figure, history_figure, snapshot_figure
from pipeline.reporting.names import METHODS
from pipeline.reporting.sections import all_curves
from pipeline.reporting.style import look
from pipeline.scoring.dynamics_study import QUANTILES


def test_figure_has_both_panels_and_every_method(write_scores) -> None:
    figure = ecdf_figure(all_curves(write_scores(), list(METHODS)), "CIFAR-10 RepVGG")
    titles = [axis.get_title().split("  ")[0] for axis in figure.axes]
    assert titles == ["Linear utilities", "Rank-based utilities"]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend[: len(METHODS)] == list(METHODS.values())
    assert legend[len(METHODS)] == "Noise floor of Temp. Scaling, 5–95%"
    assert "mean over 4 splits" in figure.legends[0].get_title().get_text()
    for axis in figure.axes:
        colors = [line.get_color() for line in axis.lines]
        assert [look(m).color for m in METHODS] == [c for c in colors if c != "#8C8C8C"]


def study(family, errors):
    """Errors {iteration: [users]} as the stage would have written them."""
    users = pd.DataFrame(errors)
    quantiles = {name: users.quantile(level) for name, level in QUANTILES.items()}
    history = pd.DataFrame({"iteration": users.columns, "worst": users.max(), **quantiles})
    parts = [pd.DataFrame({"iteration": k, "error": values}) for k, values in errors.items()]
    floor = {"mean": 0.006, "q05": 0.005, "q95": 0.007}
    record = {"config": {"utilities": 3}, "n": 7000, "worst_noise_floor": floor}
    return Study(family, history, pd.concat(parts), record)


STUDIES = [
    study("aligned", {0: [0.1, 0.11, 0.12], 1: [0.01, 0.02, 0.03]}),
    study("misaligned", {0: [0.2, 0.21, 0.22], 1: [0.02, 0.03, 0.09]}),
]


def test_a_study_has_a_panel_per_family_and_one_per_iteration() -> None:
    history, snapshots = history_figure(STUDIES, "CIFAR"), snapshot_figure(STUDIES, "CIFAR")
    assert [axis.get_title() for axis in history.axes] == ["Aligned users", "Misaligned users"]
    drawn = {tuple(line.get_ydata()) for line in history.axes[0].lines}
    assert {(0.12, 0.03), (0.22, 0.09)} <= drawn  # the worst user of both families
    assert [axis.get_title() for axis in snapshots.axes] == ["Before patching", "Iteration 1"]
    medians = [[line.get_xdata()[0] for line in axis.lines] for axis in snapshots.axes]
    assert medians == [[0.11, 0.21], [0.02, 0.03]]
