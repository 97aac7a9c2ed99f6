from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import rgb_to_hsv, to_rgb

from metrics.ecdf import levels, thin
from metrics.plots.axes import log_ticks
from pipeline.harness.command import UnitsFailed
from pipeline.harness.runner import run_tasks
from pipeline.reporting.collect import Runs, UnitResult
from pipeline.reporting.curves import Curves, pooled_curves
from pipeline.reporting.drawings import Drawing, draw_all
from pipeline.reporting.failure_figures import WIDEST, _heading
from pipeline.reporting.failures import Failure
from pipeline.reporting.figures import ecdf_figure
from pipeline.reporting.names import METHODS, PEERS
from pipeline.reporting.style import LOOKS, look


def unit(method: str, split: int, errors: list[float], **floor: list[float]) -> UnitResult:
    arrays = {"linear": np.array(errors)}
    arrays |= {f"linear_floor_{key}": np.array(values) for key, values in floor.items()}
    return UnitResult("b", method, split, {}, {}, arrays)


def test_a_curve_is_the_mean_over_splits_of_the_sorted_errors() -> None:
    units = [unit("vector", 0, [0.3, 0.1, 0.2]), unit("vector", 1, [0.1, 0.7, 0.6])]
    curves = pooled_curves(units, ["vector"], "linear")
    np.testing.assert_allclose(curves.errors["vector"], [0.1, 0.4, 0.5])
    np.testing.assert_allclose(levels(3), [1 / 3, 2 / 3, 1])
    assert (curves.count, curves.splits, curves.floor) == (3, 2, None)


def test_the_floor_is_the_mean_over_splits_of_temperature_scalings() -> None:
    floors = [{"mean": [1.0, 2.0], "q05": [0.5, 1.0], "q95": [2.0, 4.0]} for _ in range(2)]
    floors[1]["q95"] = [4.0, 6.0]
    units = [unit("temperature", k, [1.0, 2.0], **floor) for k, floor in enumerate(floors)]
    units.append(unit("vector", 0, [1.0, 2.0], mean=[9.0, 9.0], q05=[9.0, 9.0], q95=[9.0, 9.0]))
    band = pooled_curves(units, ["vector", "temperature"], "linear").floor
    assert band is not None
    assert band.method == "temperature"
    np.testing.assert_allclose(band.high, [3.0, 5.0])


def test_unequal_numbers_of_utilities_are_an_error() -> None:
    units = [unit("vector", 0, [0.1, 0.2]), unit("vector", 1, [0.1])]
    with pytest.raises(ValueError, match="vector: splits were evaluated on different numbers"):
        pooled_curves(units, ["vector"], "linear")


def test_thinning_keeps_both_ends() -> None:
    assert thin(1500, 101)[[0, -1]].tolist() == [0, 1499]
    assert len(thin(1500, 101)) == 101
    assert thin(3, 101).tolist() == [0, 1, 2]


@pytest.fixture
def panels(write_runs):
    units = Runs(write_runs()).read_all("cifar10_repvgg", METHODS, range(4))
    return [pooled_curves(units, list(METHODS), family) for family in ("linear", "rank")]


def test_the_figure_says_what_its_curves_are_means_over(panels) -> None:
    def note(curves: Curves) -> str:
        return ecdf_figure([curves], "Some").legends[0].get_title().get_text()

    assert "mean over 4 splits; curves further left" in note(panels[0])
    assert "mean over 4 splits and over batches of 1,000 points; curves further left" in note(
        replace(panels[0], batch=1000)
    )


def test_figure_has_both_panels_labels_and_every_method(panels) -> None:
    figure = ecdf_figure(panels, "CIFAR-10 RepVGG")
    assert figure.get_suptitle() == "CIFAR-10 RepVGG"
    assert [axis.get_title().split("  ")[0] for axis in figure.axes] == [
        "Linear utilities",
        "Rank-based utilities",
    ]
    assert all("units of utility" in axis.get_xlabel() for axis in figure.axes)
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend[: len(METHODS)] == list(METHODS.values())
    assert legend[len(METHODS)] == "Noise floor of Temp. Scaling, 5–95%"
    for axis in figure.axes:
        colors = [line.get_color() for line in axis.lines]
        assert [LOOKS[m].color for m in METHODS] == [c for c in colors if c != "#8C8C8C"]


def test_nearly_constant_utilities_do_not_stretch_the_axis() -> None:
    errors = np.linspace(0.01, 0.1, 400)
    errors[:2] = [0.0, 1e-9]
    curves = pooled_curves([unit("vector", 0, errors.tolist())], ["vector"], "linear")
    assert ecdf_figure([curves], "T").axes[0].get_xlim()[0] > 0.005
    zero = pooled_curves([unit("vector", 0, [0.0, 0.0])], ["vector"], "linear")
    assert ecdf_figure([zero], "T").axes[0].get_xscale() == "linear"


def test_methods_are_told_apart_by_colour_and_by_line_style() -> None:
    assert {*METHODS, *PEERS} == set(LOOKS)
    assert len({style.color for style in LOOKS.values()}) == len(LOOKS)
    assert len({style.dash for style in LOOKS.values()}) == len(LOOKS)


def test_variants_share_their_methods_line_and_have_a_look_of_their_own() -> None:
    variants = ["isotonic", "isotonic_raw", "isotonic_global", "isotonic_mine"]
    looks = [look(variant) for variant in variants]
    assert len({style.dash for style in looks}) == 1
    assert len({(style.color, style.marker) for style in looks}) == len(variants)
    hues = [rgb_to_hsv(to_rgb(style.color))[0] for style in looks]
    assert hues == pytest.approx([hues[0]] * len(hues), abs=0.02)


MANY = [
    *METHODS, "dirichlet_logits", "dirichlet_brier", "isotonic_raw",
    "isotonic_global", "patching_armijo", "patching_brier", *PEERS, "A method of <my> own at $5",
]  # fmt: skip


@pytest.mark.parametrize("methods", [MANY[:1], MANY[:8], MANY])
def test_neither_legend_nor_labels_are_cut_or_collide(methods) -> None:
    random = np.random.default_rng(0)
    floors = {key: sorted(random.random(9)) for key in ("mean", "q05", "q95")}
    units = [unit(m, 0, list(0.01 * np.exp(random.normal(size=9))), **floors) for m in methods]
    figure = ecdf_figure([pooled_curves(units, methods, "linear")] * 2, "Costs $5, or $6 <b>")
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    legend = figure.legends[0].get_window_extent(renderer)
    assert legend.x0 >= 0 and legend.y0 >= 0 and legend.x1 <= figure.bbox.x1
    assert len(figure.legends[0].get_texts()) == len(methods) + 2
    for axis in figure.axes:
        assert axis.get_tightbbox(renderer).y0 >= legend.y1 - 1
        shown = [label for label in axis.get_xticklabels() if label.get_text()]
        boxes = sorted(label.get_window_extent(renderer).intervalx.tolist() for label in shown)
        assert len(boxes) >= 2
        assert all(left[1] < right[0] for left, right in pairwise(boxes))


@pytest.mark.parametrize(("low", "high"), [(0.011, 0.013), (0.001, 0.05), (1e-7, 3.0)])
def test_log_ticks_are_few_round_numbers_within_the_limits(low, high) -> None:
    ticks = log_ticks(low, high, 6)
    assert 2 <= len(ticks) <= 6
    assert all(low <= tick <= high for tick in ticks)
    assert ticks == sorted(ticks)


def elements(path: Path) -> Iterator[str]:
    return (element.tag.rpartition("}")[2] for element in ElementTree.parse(path).iter())


def test_files_hold_no_dates(panels, tmp_path: Path) -> None:
    # That they have the same bytes each time is tested on the whole report.
    paths = draw_all([Drawing(partial(ecdf_figure, panels, "Title"), tmp_path, "ecdf_digits")], 1)
    assert [p.name for p in paths] == ["ecdf_digits.pdf", "ecdf_digits.svg", "ecdf_digits.png"]
    pdf, svg, png = (path.read_bytes() for path in paths)
    assert pdf.startswith(b"%PDF") and b"Date" not in pdf
    assert png.startswith(b"\x89PNG") and b"Software" not in png
    assert "path" in set(elements(paths[1])) and b"dc:date" not in svg


def test_figures_drawn_in_other_processes_have_the_same_bytes(panels, tmp_path: Path) -> None:
    make = partial(ecdf_figure, panels, "Title")
    here, there = (Drawing(make, tmp_path / name, "ecdf") for name in ("here", "there"))
    here.save()
    run_tasks("figures", [there], Drawing.save, jobs=2)  # no start here: the pace is not known
    for path, other in zip(here.paths, there.paths, strict=True):
        assert path.read_bytes() == other.read_bytes()


def test_a_figure_that_fails_is_named_and_the_others_are_drawn(panels, tmp_path, capsys) -> None:
    wrong = Drawing(partial(ecdf_figure, [None], "Title"), tmp_path, "wrong")
    right = Drawing(partial(ecdf_figure, panels, "Title"), tmp_path, "right")
    with pytest.raises(UnitsFailed, match="figures: 1 of 2 failed"):
        draw_all([wrong, right], jobs=1)
    assert "failed: wrong: AttributeError" in capsys.readouterr().out
    assert all(path.is_file() for path in right.paths)


@pytest.mark.parametrize("name", ["class cat", "losses (utility: minus the loss)", "a name " * 12])
def test_the_line_above_a_panel_is_no_wider_than_the_panel(name: str) -> None:
    failure = Failure(name, 0.1, 0.05, -0.18, 0.0, 0.5, -0.1, {})
    lines = _heading("temperature", failure).splitlines()
    assert max(map(len, lines)) <= WIDEST
    assert " ".join(lines[1:]).replace(", ", " ") == f"{name.strip()} -.18 to .00"
