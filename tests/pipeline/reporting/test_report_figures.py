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

from metrics.ecdf import thin
from pipeline.reporting.curves import Band, Curves, all_curves
from pipeline.reporting.drawings import Drawing, draw_all
from pipeline.reporting.figures import ecdf_figure
from pipeline.reporting.names import METHODS, PEERS
from pipeline.reporting.style import LOOKS
from pipeline.reporting.worst import Worst
from pipeline.reporting.worst_figures import WIDEST, _heading
from pipeline.scoring.files import ScoreFiles
from pipeline.scoring.tidy import FAMILIES
from tests.pipeline.reporting.conftest import LOGITS, scored, write


def curves_from(tmp_path, parts, utilities):
    """The linear curves of `parts`: per method the arrays of its one split."""
    facts = {
        "benchmark": "b",
        "evaluation": {"name": "default", "utilities": utilities, "utility_batch": None},
        "splits": {"count": 2, "calibration_fraction": 0.7},
        "logits": LOGITS,
        "calibrators": {},
    }
    written = {
        method: [
            scored(0, {"nll": 1.0}, arrays={f"{f}{k}": v for f in FAMILIES for k, v in own.items()})
        ]
        for method, own in parts.items()
    }
    return all_curves(write(ScoreFiles(tmp_path, "b"), written, facts), list(parts))[0]


def test_curves_and_floor_have_a_value_per_sampled_user(tmp_path) -> None:
    errors = np.sort(np.random.default_rng(0).random(1000))
    few = np.sort(np.random.default_rng(1).random(300))
    parts = {
        "vector": {"": errors},
        "temperature": {"": 2 * errors, "_floor_q05": few, "_floor_q95": few + 1},
    }
    curves = curves_from(tmp_path, parts, 1000)
    assert (curves.count, curves.splits, list(curves.errors)) == (1000, 2, list(parts))
    kept = thin(1000, 121)
    np.testing.assert_allclose(curves.errors["vector"][kept], errors[kept], rtol=1e-6)
    assert curves.floor is not None and curves.floor.method == "temperature"
    assert len(curves.floor.low) == 1000
    np.testing.assert_allclose(curves.floor.high - curves.floor.low, 1, rtol=1e-6)


def test_without_sampled_users_there_is_no_curve(tmp_path) -> None:
    facts = {"benchmark": "b", "logits": LOGITS, "calibrators": {}}
    scores = write(ScoreFiles(tmp_path, "b"), {"vector": [scored(0, {"nll": 1.0})]}, facts)
    assert all_curves(scores, ["vector"]) == []


@pytest.fixture
def panels(write_scores):
    return all_curves(write_scores(), list(METHODS))


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
    curves = Curves("linear", {"vector": errors}, None, 1)
    assert ecdf_figure([curves], "T").axes[0].get_xlim()[0] > 0.005
    zero = Curves("linear", {"vector": np.zeros(2)}, None, 1)
    assert ecdf_figure([zero], "T").axes[0].get_xscale() == "linear"


MANY = [
    *METHODS, "dirichlet_logits", "dirichlet_brier", "isotonic_raw",
    "isotonic_global", "patching_armijo", "patching_brier", *PEERS, "A method of <my> own at $5",
]  # fmt: skip


@pytest.mark.parametrize("methods", [MANY[:1], MANY[:8], MANY])
def test_neither_legend_nor_labels_are_cut_or_collide(methods) -> None:
    random = np.random.default_rng(0)
    errors = {m: np.sort(0.01 * np.exp(random.normal(size=9))) for m in methods}
    band = Band(*(np.sort(random.random(9)) for _ in range(2)), methods[0])
    figure = ecdf_figure([Curves("linear", errors, band, 1)] * 2, "Costs $5, or $6 <b>")
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


def elements(path: Path) -> Iterator[str]:
    return (element.tag.rpartition("}")[2] for element in ElementTree.parse(path).iter())


def test_files_hold_no_dates(panels, tmp_path: Path) -> None:
    # That they have the same bytes each time is tested on the whole report.
    paths = draw_all([Drawing(partial(ecdf_figure, panels, "Title"), tmp_path, "ecdf_digits")])
    assert [p.name for p in paths] == ["ecdf_digits.pdf", "ecdf_digits.svg", "ecdf_digits.png"]
    pdf, svg, png = (path.read_bytes() for path in paths)
    assert pdf.startswith(b"%PDF") and b"Date" not in pdf
    assert png.startswith(b"\x89PNG") and b"Software" not in png
    assert "path" in set(elements(paths[1])) and b"dc:date" not in svg


@pytest.mark.parametrize("name", ["class cat", "losses (utility: minus the loss)", "a name " * 12])
def test_the_line_above_a_panel_is_no_wider_than_the_panel(name: str) -> None:
    worst = Worst(name, 0.1, 0.05, -0.18, 0.0, 0.5, -0.1, {})
    lines = _heading("temperature", worst).splitlines()
    assert max(map(len, lines)) <= WIDEST
    assert " ".join(lines[1:]).replace(", ", " ") == f"{name.strip()} -.18 to .00"
