"""The one look of every figure, and how figures are saved.

Colours are the Okabe-Ito set, its blue darkened away from the sky blue; for other packages' methods
(thin lines) Tol's muted set. Readers with a colour vision deficiency can tell both apart, and line
styles do so in print. A variant shares its method's hue and line, not its shade and marker.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.legend import Legend

from utility_calibration.calibrators.files import atomic_path
from utility_calibration.metrics.plots.drawing import plain

from ..harness.progress import Bar
from .names import SHOWN, VARIANT_WORDS, family

Dash = Literal["solid"] | tuple[float, tuple[float, ...]]


@dataclass(frozen=True)
class LineLook:
    """How a method is drawn."""

    color: str
    dash: Dash = "solid"
    width: float = 1.6
    marker: str = ""

    @property
    def line(self) -> dict[str, Any]:
        """As matplotlib's `plot` takes it, the marker aside."""
        return {"color": self.color, "linestyle": self.dash, "linewidth": self.width}


OTHER = LineLook("#7A7A7A", (0, (4, 1, 2, 1)))
MARKERS = "osD^vPX"
SHADES = ((1.0, 0.35), (0.0, 0.3))
"""Of variants: a grey (0: black, 1: white), and how much of the way to it their colour is."""
FLOOR_FILL, FLOOR_EDGE, NOTE_COLOR = "#D0D0D0", "#8C8C8C", "#555555"
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
METADATA: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}
Drawings = Mapping[str, Callable[[], Figure]]  # what draws each figure, by the stem of its files


def look(method: str) -> LineLook:
    """The look that conf/calibrator asks for; a variant has its family's, shaded and marked."""
    root, base = family(method), OTHER
    if shown := SHOWN.get(root):
        dash: Dash = "solid" if shown["dash"] == "solid" else (0, tuple(shown["dash"]))
        base = LineLook(shown["color"], dash, shown.get("width", LineLook.width))
    if method in SHOWN:
        return base
    variant = method[len(root) + 1 :] or method
    number = [*VARIANT_WORDS, variant].index(variant)
    grey, amount = SHADES[number % len(SHADES)]
    red, green, blue = (part + amount * (grey - part) for part in to_rgb(base.color))
    color, marker = to_hex((red, green, blue)), MARKERS[number % len(MARKERS)]
    return replace(base, color=color, width=1.3, marker=marker)


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


def draw_all(drawings: Drawings, folder: Path) -> list[Path]:
    """Draw all figures and save them in `folder`, one after another; return the paths."""
    written = []
    with Bar("Figures", len(drawings)) as bar:
        for stem, make in drawings.items():
            written += save_figure(make(), folder, stem)
            bar.advance(stem)
    return written


def save_figure(figure: Figure, folder: Path, stem: str) -> list[Path]:
    """Write `<stem>.pdf`, `.svg` and `.png` atomically, the same bytes for the same figure."""
    paths = {suffix: folder / f"{stem}.{suffix}" for suffix in METADATA}
    with house_style():
        # The layout depends on the resolution: one layout for all formats.
        figure.set_dpi(RC["savefig.dpi"])
        if engine := figure.get_layout_engine():
            engine.execute(figure)
        figure.set_layout_engine(None)
        for suffix, path in paths.items():
            with atomic_path(path) as temporary:
                figure.savefig(temporary, format=suffix, metadata=METADATA[suffix])
    return list(paths.values())
