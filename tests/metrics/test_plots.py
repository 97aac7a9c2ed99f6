"""Figures: the display in scikit-learn's manner, diagrams, eCDFs, and axes."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from tests.metrics.test_diagram import forecast
from tests.refusals import refuses
from utility_calibration.metrics import (
    ClassWise,
    Linear,
    TopK,
    utility_calibration,
)
from utility_calibration.metrics.diagram import diagram_of
from utility_calibration.metrics.plots import UtilityDisplay, drawing
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
    assert display.ax_.patches[0].get_x() == display.worst.low


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


@pytest.mark.parametrize(("kind", "drawn"), [("reliability", "dots"), ("running", "lines")])
def test_a_diagram_says_its_error_and_that_by_chance(binary, kind, drawn):
    p, y = binary
    sharp = p**2 / (p**2).sum(axis=1, keepdims=True)
    alone = UtilityDisplay.from_predictions(sharp, y, utility=ClassWise(), kind=kind)
    numbers = f"{alone.worst.error:.3g}", f"{alone.by_chance:.3g}"
    assert all(number in alone.ax_.get_title() for number in numbers)
    # By chance alone, as the record of the class says it, of other draws.
    result = ClassWise().evaluate(sharp, y)
    assert alone.worst.error == pytest.approx(result.error)
    assert alone.by_chance == pytest.approx(result.floor.q95, rel=0.15)
    first, second = (
        UtilityDisplay.from_predictions(q, y, kind=kind, name=name, ax=alone.ax_)
        for name, q in (("before", sharp), ("after", p))
    )
    lines = [text.get_text() for text in alone.ax_.get_legend().get_texts()]
    assert any(f"{first.worst.error:.3g}" in line and "before" in line for line in lines)
    assert any(f"{second.worst.error:.3g}" in line and "after" in line for line in lines)
    assert lines.count("worst range") == 1
    assert sum(f"95 % of the {drawn}" in line for line in lines) == 1


def test_dots_of_few_points_are_fainter_and_a_rug_shows_the_points(binary):
    p, y = binary
    p = np.concatenate([p, np.tile([[0.05, 0.95]], (400, 1))])
    y = np.concatenate([y, np.ones(400, int)])
    display = UtilityDisplay.reliability(p, y)
    share = display.frame().share
    assert share.sum() == pytest.approx(1) and share.idxmax() > 5
    faces = [c for c in display.ax_.collections if len(c.get_facecolors()) == len(share)]
    opacity = faces[0].get_facecolors()[:, 3]
    np.testing.assert_allclose(opacity, np.sqrt(share / share.max()))
    assert np.isin(display.rug.round(9), p.max(axis=1).round(9)).all()
    assert len(display.rug) == 200
    dashed = [line for line in display.ax_.lines if line.get_label() == "as predicted"]
    (handle,) = [
        handle
        for handle in display.ax_.get_legend().get_lines()
        if handle.get_label() == "as predicted"
    ]
    assert handle.get_linestyle() == dashed[0].get_linestyle() == "--"


def luminance(color):
    channels = np.array(to_rgb(color))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("color", [drawing.GREY, drawing.WORST])
@pytest.mark.parametrize("paper", ["white", "black"])
def test_lines_are_seen_on_light_and_dark_paper_and_on_the_shade(color, paper):
    shade = 0.15 * np.array(to_rgb(drawing.WORST)) + 0.85 * np.array(to_rgb(paper))
    for ground in (to_rgb(paper), tuple(shade)):
        darker, lighter = sorted([luminance(color), luminance(ground)])
        assert (lighter + 0.05) / (darker + 0.05) >= 3


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
    assert any(text.get_text().startswith("Named: ") for text in axes.get_legend().get_texts())
    with refuses("y", row=0, number="maybe"):
        UtilityDisplay.from_estimator(Named(), p, ["maybe"] * 400)


def test_wrong_options_are_named_and_reversed_arguments_told_what_comes_first(binary):
    for field, value in (("kind", "roc"), ("event", 2), ("ax", [0]), ("sample_weight", 1)):
        options = {"kind": "decision_curve", field: value}
        with refuses(field):
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
    diagrams = [diagram_of(TopK(), *forecast(sharpen=s), repetitions=20)[0] for s in (3.0, 1.0)]
    panels = list(zip(["before $", "after"], diagrams, strict=True))
    figure = diagram_figure(panels, "Top $K$", ["C0", "C1"])
    axes = [axis for axis in figure.axes if axis.get_visible()]
    assert len(axes) == 4
    for axis, diagram in zip(axes, [*diagrams, *diagrams], strict=True):
        shaded = axis.patches[0].get_extents().transformed(axis.transData.inverted())
        worst = diagram.worst
        np.testing.assert_allclose([shaded.x0, shaded.x1], [worst.low, worst.high], atol=1e-9)
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
