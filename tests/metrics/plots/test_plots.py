"""What all figures share: their axes, and that only they need matplotlib."""

import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from metrics.diagram import diagram_of
from metrics.plots.drawing import diagram_figure, plain_log_axis
from metrics.utilities.payoffs import TopK
from tests.metrics.test_diagram import forecast

ROOT = Path(__file__).resolve().parents[3]


def test_importing_the_metrics_changes_no_environment_and_loads_no_matplotlib():
    program = (
        "import os, sys; before = dict(os.environ); import metrics, metrics.diagram; "
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
    labels = axis.xaxis.get_major_formatter().format_ticks(expected)
    assert "e" not in "".join(labels) and [float(label) for label in labels] == expected
