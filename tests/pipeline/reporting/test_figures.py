"""Figures: the curves they are drawn from, and what they show."""

from __future__ import annotations

import numpy as np
import pandas as pd

from metrics.ecdf import thin
from pipeline.reporting.dynamics_figures import FamilyResult, history_figure, snapshot_figure
from pipeline.reporting.figures import ecdf_figure
from pipeline.reporting.names import METHODS
from pipeline.reporting.sections import all_curves
from pipeline.reporting.style import LOOKS
from pipeline.scoring.dynamics_study import COLUMNS, QUANTILES
from pipeline.scoring.files import ScoreFiles
from pipeline.scoring.tidy import FAMILIES
from tests.pipeline.reporting.conftest import facts_of, scored, write


def test_curves_and_floor_have_the_stored_levels(tmp_path) -> None:
    errors = np.sort(np.random.default_rng(0).random(1000))
    few = np.sort(np.random.default_rng(1).random(300))
    drawn = {
        "vector": {"": errors},
        "temperature": {"": 2 * errors, "_floor_q05": few, "_floor_q95": few + 1},
    }
    parts = {}
    for method, own in drawn.items():
        arrays = {f"{family}{k}": v for family in FAMILIES for k, v in own.items()}
        parts[method] = [scored(0, {"nll": 1.0}, arrays=arrays)]
    scores = write(ScoreFiles(tmp_path, "b"), parts, facts_of("b", 2, utilities=1000))
    curves = all_curves(scores, list(parts))[0]
    assert (curves.count, curves.splits, list(curves.errors)) == (1000, 2, list(parts))
    kept = thin(1000, 121)
    np.testing.assert_allclose(curves.levels, (kept + 1) / 1000, rtol=1e-6)
    np.testing.assert_allclose(curves.errors["vector"], errors[kept], rtol=1e-6)
    assert curves.floor is not None and curves.floor_of == "temperature"
    np.testing.assert_allclose(curves.floor[1] - curves.floor[0], np.ones(len(kept)), rtol=1e-5)


def test_figure_has_both_panels_and_every_method(write_scores) -> None:
    figure = ecdf_figure(all_curves(write_scores(), list(METHODS)), "CIFAR-10 RepVGG")
    assert [axis.get_title().split("  ")[0] for axis in figure.axes] == [
        "Linear utilities",
        "Rank-based utilities",
    ]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend[: len(METHODS)] == list(METHODS.values())
    assert legend[len(METHODS)] == "Noise floor of Temp. Scaling, 5–95%"
    assert "mean over 4 splits" in figure.legends[0].get_title().get_text()
    for axis in figure.axes:
        colors = [line.get_color() for line in axis.lines]
        assert [LOOKS[m].color for m in METHODS] == [c for c in colors if c != "#8C8C8C"]


def study(family, errors):
    """Errors {iteration: [users]} as the stage would have written them."""
    history = pd.DataFrame(0.0, index=range(len(errors)), columns=list(COLUMNS))
    history["iteration"] = list(errors)
    history["worst"] = [max(values) for values in errors.values()]
    for name, level in QUANTILES.items():
        history[name] = [np.quantile(values, level) for values in errors.values()]
    parts = [pd.DataFrame({"iteration": k, "error": values}) for k, values in errors.items()]
    floor = {"mean": 0.006, "q05": 0.005, "q95": 0.007}
    record = {"config": {"utilities": 3}, "n": 7000, "worst_noise_floor": floor}
    return FamilyResult(family, "#0072B2", "", history, pd.concat(parts), record)


STUDIES = [
    study("Aligned", {0: [0.1, 0.11, 0.12], 1: [0.01, 0.02, 0.03]}),
    study("Misaligned", {0: [0.2, 0.21, 0.22], 1: [0.02, 0.03, 0.09]}),
]


def test_a_study_has_a_panel_per_family_and_one_per_iteration() -> None:
    history, snapshots = history_figure(STUDIES, "CIFAR"), snapshot_figure(STUDIES, "CIFAR")
    assert [axis.get_title() for axis in history.axes] == ["Aligned users", "Misaligned users"]
    drawn = {tuple(line.get_ydata()) for line in history.axes[0].lines}
    assert {(0.12, 0.03), (0.22, 0.09)} <= drawn  # the worst user of both families
    assert [axis.get_title() for axis in snapshots.axes] == ["Before patching", "Iteration 1"]
    medians = [[line.get_xdata()[0] for line in axis.lines] for axis in snapshots.axes]
    assert medians == [[0.11, 0.21], [0.02, 0.03]]
