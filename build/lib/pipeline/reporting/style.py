"""The one look of every figure: fonts, sizes, and a fixed colour and line style per method.

Colours are the Okabe-Ito set, told apart by readers with a colour vision deficiency; the line
styles tell the methods apart in print without colour. A method keeps both in every figure.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import matplotlib
from matplotlib.figure import Figure

from pipeline.harness.artifacts import atomic_path
from pipeline.reporting.names import family

Dash = Literal["solid"] | tuple[float, tuple[float, ...]]


@dataclass(frozen=True)
class LineLook:
    """How a method is drawn."""

    color: str
    dash: Dash = "solid"
    width: float = 1.6


LOOKS: dict[str, LineLook] = {
    "uncalibrated": LineLook("#000000", (0, (1, 1.2))),
    "dirichlet": LineLook("#E69F00", (0, (6, 1.5))),
    "isotonic": LineLook("#0072B2", (0, (6, 1.5, 1, 1.5))),
    "temperature": LineLook("#009E73", (0, (3, 1.2))),
    "vector": LineLook("#CC79A7", (0, (3, 1.2, 1, 1.2, 1, 1.2))),
    "patching": LineLook("#D55E00", "solid", width=2.2),
}
OTHER = LineLook("#56B4E9", (0, (4, 1, 2, 1)))

FLOOR_FILL = "#D0D0D0"
FLOOR_EDGE = "#8C8C8C"
NOTE_COLOR = "#555555"

RC: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titleweight": "regular",
    "axes.labelsize": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 9.0,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "lines.solid_capstyle": "round",
    "figure.dpi": 100.0,
    "savefig.dpi": 200.0,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "utility-calibration",
}
FORMATS = ("pdf", "svg", "png")
# No creation dates and no version stamps: equal content gives equal bytes.
METADATA: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}


def look(method: str) -> LineLook:
    """The look of a method; a variant shares its family's."""
    return LOOKS.get(family(method), OTHER)


@contextmanager
def house_style() -> Iterator[None]:
    """Within the block matplotlib starts from its defaults and follows RC.

    Its remarks on glyphs and fonts, dozens of lines where a program logs at level INFO, are muted.
    """
    for name in ("matplotlib", "fontTools"):
        logging.getLogger(name).setLevel(logging.WARNING)
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RC)
        yield


def save_figure(figure: Figure, folder: Path, stem: str) -> list[Path]:
    """Write `<stem>.pdf`, `.svg` and `.png` atomically, the same bytes for the same figure."""
    written = []
    for suffix in FORMATS:
        path = folder / f"{stem}.{suffix}"
        with house_style(), atomic_path(path) as temporary:
            figure.savefig(temporary, format=suffix, metadata=METADATA[suffix])
        written.append(path)
    return written
