"""Figures of the appendix study on made-up histories."""

import numpy as np
import pandas as pd
import pytest

from pipeline.reporting.dynamics_figures import FamilyResult, history_figure, snapshot_figure
from pipeline.scoring.dynamics_study import COLUMNS, QUANTILES


def result(family, errors, floor=None):
    """Errors {iteration: [users]} as the stage would have written them."""
    history = pd.DataFrame(0.0, index=range(len(errors)), columns=list(COLUMNS))
    history["iteration"] = list(errors)
    history["worst"] = [max(values) for values in errors.values()]
    for name, level in QUANTILES.items():
        history[name] = [np.quantile(values, level) for values in errors.values()]
    parts = [pd.DataFrame({"iteration": k, "error": values}) for k, values in errors.items()]
    record = {"config": {"utilities": 3}, "n": 7000, "worst_noise_floor": floor}
    return FamilyResult(family, history, pd.concat(parts), record)


FLOOR = {"mean": 0.006, "q05": 0.005, "q95": 0.007}
BOTH = [
    result("aligned", {0: [0.1, 0.11, 0.12], 1: [0.01, 0.02, 0.03]}, FLOOR),
    result("misaligned", {0: [0.2, 0.21, 0.22], 1: [0.02, 0.03, 0.09]}, FLOOR),
]


def legend_labels(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_history_has_a_panel_per_family_with_its_worst_user_and_the_others_in_grey():
    figure = history_figure(BOTH, "CIFAR")
    worst = {"Aligned users": [0.12, 0.03], "Misaligned users": [0.22, 0.09]}
    assert [axis.get_title() for axis in figure.axes] == list(worst)
    for axis in figure.axes:
        drawn = {tuple(line.get_ydata()): line for line in axis.lines}
        own = drawn[tuple(worst[axis.get_title()])]
        (other,) = (drawn[tuple(v)] for k, v in worst.items() if k != axis.get_title())
        assert own.get_linewidth() > other.get_linewidth()
        assert axis.get_yscale() == "log"
    labels = legend_labels(figure)
    assert labels[:2] == ["Aligned: worst user", "Aligned: 5–95% of users"]
    assert any("if calibrated" in label for label in labels)
    assert "3 users" in figure.legends[0].get_title().get_text()


def test_snapshots_have_a_panel_per_iteration_that_its_own_errors_fill():
    figure = snapshot_figure(BOTH, "CIFAR")
    assert [axis.get_title() for axis in figure.axes] == ["Before patching", "Iteration 1"]
    for axis, (low, high) in zip(figure.axes, [(0.1, 0.22), (0.01, 0.09)], strict=True):
        for patch in axis.patches:
            assert patch.get_data().values.sum() == pytest.approx(1)
        left, right = axis.get_xlim()
        assert left < low < high < right
        assert high - low > 0.9 * (right - left)
    medians = [[line.get_xdata()[0] for line in axis.lines] for axis in figure.axes]
    assert medians == [[0.11, 0.21], [0.02, 0.03]]


@pytest.mark.parametrize("errors", [{0: [0.0, 0.0]}, {0: [0.02, 0.02], 5: [0.0, 0.02]}])
def test_one_family_and_errors_of_zero(errors, tmp_path):
    one = [result("misaligned", errors)]
    for number, draw in enumerate((history_figure, snapshot_figure)):
        draw(one, "Costs $5 & <b>").savefig(tmp_path / f"{number}.svg")
    assert not any("if calibrated" in label for label in legend_labels(history_figure(one, "T")))
