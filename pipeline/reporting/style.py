"""The one look of every figure, and how figures are saved."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from PIL import Image

from utility_calibration.metrics.atomic import atomic_path
from utility_calibration.metrics.plots.drawing import plain

from ..harness.parallel import all_called

NOTE_COLOR = "#555555"
PNG_COLORS = 256
"""A palette of so many colours halves a PNG, and nobody sees it: figures have few colours."""
RC: Any = {  # what differs from matplotlib's defaults
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "lines.solid_capstyle": "round",
    "savefig.dpi": 130.0,
    "pdf.fonttype": 42,
    "svg.hashsalt": "utility-calibration",
}
# No creation dates and no version stamps: equal content gives equal bytes.
METADATA: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}
Drawings = Mapping[str, Callable[[], Figure]]  # what draws each figure, by the stem of its files


def legend_below(figure: Figure, handles: Sequence[Any], title: str) -> Legend:
    """A legend under the axes, with a note in small print; the figure grows for its rows."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    how: dict[str, Any] = {"handlelength": 3.2, "title": title, "title_fontsize": 8.5}
    for columns in range(min(len(handles), 6), 0, -1):
        legend = figure.legend(handles=handles, loc="outside lower center", ncols=columns, **how)
        if columns == 1 or legend.get_window_extent(renderer).width <= 0.98 * figure.bbox.width:
            break
        legend.remove()
    legend.get_title().set_color(NOTE_COLOR)
    rows = -(-len(handles) // columns)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + 0.2 * max(0, rows - 2))
    return legend


@contextmanager
def house_style() -> Iterator[None]:
    """Within the block matplotlib starts from its defaults and follows RC."""
    for name in ("matplotlib", "fontTools"):  # dozens of remarks on fonts at level INFO
        logging.getLogger(name).setLevel(logging.ERROR)
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RC)
        yield


@contextmanager
def titled_figure(width: float, height: float, title: str = "") -> Iterator[Figure]:
    """A figure of this size in inches, in the house style within the block."""
    with house_style():
        figure = Figure(figsize=(width, height), layout="constrained")
        if title:
            figure.suptitle(plain(title), fontsize=11.5, fontweight="bold")
        yield figure


def draw_all(
    drawings: Drawings, folder: Path, jobs: int | str, formats: Sequence[str] = tuple(METADATA)
) -> list[Path]:
    """Draw all figures and save them in `folder`, side by side; return the paths."""
    calls = {stem: partial(_drawn, make, folder, stem, formats) for stem, make in drawings.items()}
    return [path for paths in all_called("Figures", calls, jobs).values() for path in paths]


def _drawn(
    make: Callable[[], Figure], folder: Path, stem: str, formats: Sequence[str]
) -> list[Path]:
    return save_figure(make(), folder, stem, formats)


def save_figure(
    figure: Figure, folder: Path, stem: str, formats: Sequence[str] = tuple(METADATA)
) -> list[Path]:
    """Write `<stem>.pdf`, `.svg` and `.png` atomically, the same bytes for the same figure.

    The SVG says its title, for those who do not see it.
    """
    paths = {suffix: folder / f"{stem}.{suffix}" for suffix in formats}
    with house_style():
        # The layout depends on the resolution: one layout for all formats.
        figure.set_dpi(RC["savefig.dpi"])
        engine = figure.get_layout_engine()
        if engine:
            engine.execute(figure)
        figure.set_layout_engine(None)
        title = figure.get_suptitle().replace("\\$", "$") or stem
        for suffix, path in paths.items():
            with atomic_path(path) as temporary:
                said = {"Title": title} if suffix == "svg" else {}
                figure.savefig(temporary, format=suffix, metadata=METADATA[suffix] | said)
                if suffix == "png":
                    _take_palette(temporary)
    return list(paths.values())


def _take_palette(path: Path) -> None:
    """Write a PNG again with a palette of its colours."""
    with Image.open(path) as drawn:
        dpi = drawn.info["dpi"]
        reduced = drawn.convert("RGB").quantize(PNG_COLORS, dither=Image.Dither.NONE)
    reduced.save(path, format="PNG", optimize=True, dpi=dpi)
