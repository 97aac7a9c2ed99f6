"""Figures, and who wins: counts over benchmarks, written out by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from PIL import Image

from tests.pipeline.reporting.conftest import decided
from utility_calibration.metrics.plots.drawing import (
    CALIBRATED,
    EXPECTED,
    FLOOR_EDGE,
    GREY,
    WORST,
    WORST_NAME,
    columns_for,
    diagram_handles,
)
from utility_calibration.pipeline.reporting.figures import (
    MARKS,
    leaderboard_figure,
    place_figure,
    worst_figure,
)
from utility_calibration.pipeline.reporting.leaderboard import leaderboard_of
from utility_calibration.pipeline.reporting.looks import look
from utility_calibration.pipeline.reporting.names import TITLES
from utility_calibration.pipeline.reporting.study_figures import (
    STUDY_COLORS,
    Study,
    history_figure,
    rises_of,
    snapshot_figure,
)
from utility_calibration.pipeline.reporting.style import NOTE_COLOR, save_figure
from utility_calibration.pipeline.reporting.worst import Worst

LINES = [GREY, WORST, FLOOR_EDGE, NOTE_COLOR, *STUDY_COLORS.values(), *(c for _, c in MARKS)]
LINES += [look(method).color for method in TITLES]


def luminance(color):
    """Of WCAG 2; `color` in 0 … 1."""
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in color]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def contrast(color, page):
    high, low = sorted((luminance(color), luminance(page)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def dark(color):
    """As style.css shows a figure on a dark page: invert(.92) hue-rotate(180deg)."""
    inverted = 0.92 - 0.84 * np.array(color)
    grey = np.array([0.213, 0.715, 0.072])
    rotated = np.outer(np.ones(3), 2 * grey) - np.eye(3)
    return (rotated @ inverted).clip(0, 1)


@pytest.mark.parametrize("color", dict.fromkeys(LINES))
def test_every_line_is_seen_on_white_and_on_dark_pages(color):
    assert contrast(to_rgb(color), to_rgb("white")) >= 3
    assert contrast(dark(to_rgb(color)), dark(to_rgb("white"))) >= 3


@pytest.mark.parametrize(("count", "columns"), [(1, 1), (3, 3), (5, 3), (7, 4), (8, 4), (9, 3)])
def test_diagrams_leave_few_places_empty(count, columns):
    assert columns_for(count) == columns


PLACE = {
    "utility": 0, "error": 0.05, "is_beyond": True, "low": 0.44, "high": 0.87, "share": 0.34,
    "gap": 0.06, "gain": 0.02, "threshold": 0.4, "act_from": 0.47, "fresh_gain": 0.001,
    "fresh_half_width": 0.004,
}  # fmt: skip


def diagram_of_a_place():
    """A worst place with fifteen bins, as scoring/across_splits.py writes it."""
    at = np.linspace(0, 1, 15).round(3).tolist()
    bins = [[x, x / 2, x - 0.1, x + 0.1] for x in at]
    numbers = {"at": at, "curve": at, "low": at, "high": at, "bins": bins}
    density = [[0.0, 0.5, 0.25], [0.5, 1.0, 0.75]]
    return Worst(**PLACE | {"name": "class $cat", "diagram": {**numbers, "density": density}})


def test_a_legend_shows_each_part_as_it_is_drawn():
    figure = place_figure(diagram_of_a_place(), "Title", True)
    upper = figure.axes[0]
    drawn = dict(zip(*reversed(upper.get_legend_handles_labels()), strict=True))
    legend = {handle.get_label(): handle for handle in diagram_handles(look("uncalibrated").color)}
    assert {EXPECTED, CALIBRATED, WORST_NAME} <= set(drawn) and set(drawn) - {None} <= set(legend)
    line, in_legend = drawn[EXPECTED], legend[EXPECTED]
    assert line.get_linestyle() == in_legend.get_linestyle() == "--"
    assert line._dash_pattern[1] == in_legend._dash_pattern[1]
    assert drawn[WORST_NAME].get_facecolor() == legend[WORST_NAME].get_facecolor()
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == [*legend]


def test_no_text_of_a_figure_is_cut(tmp_path):
    """All axes with their labels, and the legends, lie on the canvas."""
    places = {method: diagram_of_a_place() for method in TITLES}
    for figure in (
        place_figure(diagram_of_a_place(), "Title", True),
        worst_figure(places, "Title", "cost"),
        leaderboard_figure(leaderboard_of(BENCHMARKS)),
    ):
        save_figure(figure, tmp_path, "figure", ("png",))
        renderer = FigureCanvasAgg(figure).get_renderer()
        whole = figure.bbox.padded(1)
        boxes = [axes.get_tightbbox(renderer) for axes in figure.axes if axes.get_visible()]
        boxes += [legend.get_window_extent(renderer) for legend in figure.legends]
        for box in boxes:
            assert whole.contains(*box.min) and whole.contains(*box.max), box


def test_a_png_has_a_palette(tmp_path):
    (path,) = save_figure(place_figure(diagram_of_a_place(), "T", True), tmp_path, "f", ("png",))
    with Image.open(path) as drawn:
        assert drawn.mode == "P" and drawn.getpixel((0, 0)) == drawn.getpixel((1, 1))
        assert drawn.convert("RGB").getpixel((0, 0)) == (255, 255, 255)


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
