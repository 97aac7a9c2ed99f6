"""Figures of the appendix study on made-up histories."""

import numpy as np
import pandas as pd
import pytest

from pipeline.dynamics_study import COLUMNS, QUANTILES
from pipeline.reporting.dynamics_figures import FamilyResult, history_figure, snapshot_figure


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


def test_history_has_the_worst_user_of_both_families():
    figure = history_figure(BOTH, "CIFAR")
    axis = figure.axes[0]
    lines = [line.get_ydata().tolist() for line in axis.lines if len(line.get_ydata()) == 2]
    assert [0.12, 0.03] in lines
    assert [0.22, 0.09] in lines
    assert (axis.get_yscale(), axis.get_title()) == ("log", "CIFAR")
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[:2] == ["Aligned: worst user", "Misaligned: worst user"]
    assert any("if calibrated" in label for label in labels)
    assert "3 users" in figure.legends[0].get_title().get_text()


def test_snapshots_have_a_row_per_family_and_a_column_per_iteration():
    figure = snapshot_figure(BOTH, "CIFAR")
    titles = [axis.get_title() for axis in figure.axes]
    assert titles == ["Before patching", "Iteration 1", "", ""]
    assert [axis.texts[0].get_text() for axis in figure.axes] == [
        "median 0.11\nworst 0.12", "median 0.02\nworst 0.03",
        "median 0.21\nworst 0.22", "median 0.03\nworst 0.09",
    ]  # fmt: skip
    for axis in figure.axes:
        shares = axis.patches[0].get_data().values
        assert shares.sum() == pytest.approx(1)
    assert len({axis.get_xlim() for axis in figure.axes}) == 1


@pytest.mark.parametrize("errors", [{0: [0.0, 0.0]}, {0: [0.02, 0.02], 5: [0.0, 0.02]}])
def test_one_family_and_errors_of_zero(errors, tmp_path):
    one = [result("misaligned", errors)]
    for number, draw in enumerate((history_figure, snapshot_figure)):
        draw(one, "Title").savefig(tmp_path / f"{number}.svg")
    labels = [text.get_text() for text in history_figure(one, "T").legends[0].get_texts()]
    assert not any("if calibrated" in label for label in labels)
