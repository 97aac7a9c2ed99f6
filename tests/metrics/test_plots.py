"""Figures: the display in scikit-learn's manner, diagrams, eCDFs, and axes."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from tests.metrics.test_diagram import forecast
from tests.refusals import refuses
from utility_calibration.metrics import (
    Linear,
    TopK,
    utility_calibration,
)
from utility_calibration.metrics.diagram import diagram_of
from utility_calibration.metrics.plots import UtilityDisplay
from utility_calibration.metrics.plots.drawing import diagram_figure
from utility_calibration.metrics.shown import dkw_band, levels, thin
from utility_calibration.metrics.uc import ecdf

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def binary():
    random = np.random.default_rng(0)
    p = random.random(400)
    return np.stack([1 - p, p], axis=1), (random.random(400) < p).astype(int)


def test_the_bins_of_a_reliability_diagram_are_means_of_their_points(binary):
    p, y = binary
    frame = UtilityDisplay.from_predictions(p, y, bins=1).frame()
    assert len(frame) == 1
    assert frame.predicted[0] == pytest.approx(p.max(axis=1).mean())
    assert frame.realized[0] == pytest.approx(np.mean(p.argmax(axis=1) == y))
    assert frame.noise_low[0] < frame.predicted[0] < frame.noise_high[0]


def test_the_steps_of_an_ecdf_are_the_errors_of_the_class(binary):
    p, y = binary
    payoffs = np.random.default_rng(1).random((20, 2))
    frame = UtilityDisplay.ecdf(p, y, Linear(payoffs)).frame()
    v, u = p @ payoffs.T, payoffs.T[y]
    errors = [utility_calibration(v[:, m], u[:, m]) for m in range(20)]
    np.testing.assert_allclose(frame.error, np.sort(errors), atol=1e-12)
    assert frame.share.iloc[-1] == 1


def test_the_range_of_the_running_difference_is_the_error(binary):
    p, y = binary
    display = UtilityDisplay.from_predictions(p**2 / (p**2).sum(1)[:, None], y, kind="running")
    assert np.ptp([0, *display.frame().difference]) == pytest.approx(display.worst.error)
    (shade,) = display.ax_.patches
    assert shade.get_x() == display.worst.low


def test_forecasts_share_the_axes_of_an_ecdf(binary):
    p, y = binary
    users, ax = Linear.sample(50, 2, seed=0), Figure().subplots()
    for name in ("a $5 method", "b"):
        UtilityDisplay.ecdf(p, y, users, name=name, ax=ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [r"a \$5 method", "b"]
    assert ax.lines[0].get_color() != ax.lines[1].get_color() and len(ax.collections) == 2
    ax.figure.canvas.draw()


def test_a_decision_curve_counts_hits_and_weighs_false_alarms(binary):
    p, y = binary
    frame = UtilityDisplay.decision_curve(p, y).frame()
    acts = p[:, 1] >= 0.25
    expected = np.mean(acts & (y == 1)) - np.mean(acts & (y == 0)) / 3
    assert frame.net_benefit[frame.threshold == 0.25].item() == pytest.approx(expected)
    always = np.mean(y == 1) - np.mean(y == 0) / 3
    assert frame.act_always[frame.threshold == 0.25].item() == pytest.approx(always)


class Named:
    """An estimator whose classes have names."""

    classes_ = np.array(["no", "yes"])

    def predict_proba(self, X):
        return X


def test_an_estimator_draws_into_the_given_axes_under_its_name(binary):
    p, y = binary
    axes, names = Figure().subplots(), np.array(["no", "yes"])
    display = UtilityDisplay.from_estimator(Named(), p, names[y], ax=axes, utility=TopK())
    assert display.ax_ is axes and display.figure_ is axes.figure
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["Named"]
    with refuses("y", row=0, number="maybe"):
        UtilityDisplay.from_estimator(Named(), p, ["maybe"] * 400)


def test_wrong_options_are_named_and_reversed_arguments_told_what_comes_first(binary):
    for field, value in (("kind", "roc"), ("event", 2), ("ax", [0]), ("sample_weight", 1)):
        with refuses(field):
            options = {"kind": "decision_curve", field: value}
            UtilityDisplay.from_predictions(*binary, **options)
    with refuses("probabilities", fix="probabilities come first"):
        UtilityDisplay.from_predictions(*binary[::-1])


def test_importing_the_metrics_changes_no_environment_and_loads_no_matplotlib():
    program = (
        "import os, sys; before = dict(os.environ); import utility_calibration.metrics.diagram; "
        "assert os.environ == before; assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_a_column_of_two_panels_for_each_diagram():
    diagrams = [diagram_of(TopK(), *forecast(sharpen=s), repetitions=20) for s in (3.0, 1.0)]
    panels = list(zip(["before $", "after"], diagrams, strict=True))
    figure = diagram_figure(panels, "Top $K$", ["C0", "C1"])
    axes = [axis for axis in figure.axes if axis.get_visible()]
    assert len(axes) == 4
    assert all(len(axis.patches) == 1 for axis in axes)  # shaded at the worst interval
    titles = [axis.get_title() for axis in axes if axis.get_title()]
    assert titles == [r"before \$", "after"]
    figure.canvas.draw()


def test_levels_count_the_utilities_up_to_an_error_and_a_drawn_ecdf_keeps_both_ends():
    errors, shares = ecdf([0.3, 0.1, 0.2, 0.1])
    np.testing.assert_array_equal(errors, [0.1, 0.1, 0.2, 0.3])
    np.testing.assert_array_equal(shares, levels(4))
    assert levels(4).tolist() == [0.25, 0.5, 0.75, 1.0]
    assert (thin(9, 3).tolist(), thin(2, 5).tolist()) == ([0, 4, 8], [0, 1])


def test_the_band_has_massarts_width():
    assert dkw_band(1500) == pytest.approx(0.0351, abs=1e-4)
    assert dkw_band(100, 0.5) == pytest.approx(math.sqrt(math.log(4) / 200))
