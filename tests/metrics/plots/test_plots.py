"""The public figures: what is drawn."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from metrics import InputError, TopK
from metrics.plots import plot_ecdf, plot_utility
from metrics.plots.ecdf import plain_log_axis, plain_number
from tests.metrics.test_diagram import forecast

ROOT = Path(__file__).resolve().parents[3]


def visible(figure):
    return [axis for axis in figure.axes if axis.get_visible()]


def test_importing_the_metrics_changes_no_environment_and_loads_no_matplotlib():
    program = (
        "import os, sys; before = dict(os.environ); import metrics, metrics.diagram; "
        "assert os.environ == before; assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_a_column_of_two_panels_for_each_method():
    p, labels = forecast(sharpen=3.0)
    figure = plot_utility(TopK(), {"before $": p, "after": forecast()[0]}, labels, title="Top $K$")
    axes = visible(figure)
    assert len(axes) == 4
    assert all(len(axis.patches) == 1 for axis in axes)  # shaded at the worst interval
    titles = [axis.get_title() for axis in axes if axis.get_title()]
    assert titles[0].startswith(r"before \$ (utility ")
    assert titles[1].startswith("after (utility ")
    figure.canvas.draw()


def test_ecdf_of_one_array_or_of_several():
    errors = np.random.default_rng(0).random(50)
    (axis,) = plot_ecdf({"a $5 method": errors, "b": errors / 2}).axes
    assert len(axis.lines) == 2
    height = axis.lines[0].get_ydata()
    assert height[0] == pytest.approx(1 / 50)
    assert height[-1] == 1
    assert len(plot_ecdf(errors).axes[0].lines) == 1


def test_figures_are_drawn_into_given_axes():
    p, labels = forecast()
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert plot_ecdf([0.1, 0.2], ax=left) is figure and len(left.lines) == 1
    assert plot_utility(TopK(), p, labels, ax=right) is figure and right.get_title()
    assert len(figure.axes) == 2
    with pytest.raises(InputError, match="one panel for 2 methods"):
        plot_utility(TopK(), {"a": p, "b": p}, labels, ax=right)


@pytest.mark.parametrize("errors", [{}, np.array([[0.1]]), np.array([np.nan])])
def test_nothing_to_draw_is_told(errors):
    with pytest.raises(InputError):
        plot_ecdf(errors)


@pytest.mark.parametrize(
    ("low", "high", "most", "expected"),
    [
        (0.02, 0.25, 4, [0.02, 0.05, 0.1, 0.2]),
        (0.1, 0.15, 4, [0.1, 0.12, 0.14]),  # less than a decade
        (1e-6, 1.0, 3, [1e-6, 1e-3, 1.0]),  # more decades than labels
    ],
)
def test_ticks_of_a_log_axis_are_round_and_few(low, high, most, expected):
    axis = Figure().subplots()
    axis.set_xscale("log")
    axis.set_xlim(low, high)
    plain_log_axis(axis.xaxis, (low, high), most)
    ticks = [tick for tick in axis.get_xticks() if low <= tick <= high]
    assert ticks == pytest.approx(expected)


def test_numbers_stand_without_exponents():
    assert [plain_number(value) for value in (5e-4, 1.0, 0.1 + 0.2)] == ["0.0005", "1", "0.3"]
