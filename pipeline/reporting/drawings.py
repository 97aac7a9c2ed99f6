"""Draw and save figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from calibrators.files import atomic_path
from pipeline.harness.progress import Bar
from pipeline.reporting.style import RC, house_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("pdf", "svg", "png")
# No creation dates and no version stamps: equal content gives equal bytes.
METADATA: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}


class Drawing(NamedTuple):
    """One figure: `make` draws it; `folder` and `stem` say where its files go."""

    make: Callable[[], Figure]
    folder: Path
    stem: str


def draw_all(drawings: Sequence[Drawing]) -> list[Path]:
    """Draw and save all figures, one after another; return the paths."""
    written: list[Path] = []
    with Bar("Figures", len(drawings)) as bar:
        for drawing in drawings:
            written += save_figure(drawing.make(), drawing.folder, drawing.stem)
            bar.advance(drawing.stem)
    return written


def save_figure(figure: Figure, folder: Path, stem: str) -> list[Path]:
    """Write `<stem>.pdf`, `.svg` and `.png` atomically, the same bytes for the same figure."""
    written = []
    with house_style():
        _lay_out(figure)
        for suffix in FORMATS:
            path = folder / f"{stem}.{suffix}"
            with atomic_path(path) as temporary:
                figure.savefig(temporary, format=suffix, metadata=METADATA[suffix])
            written.append(path)
    return written


def _lay_out(figure: Figure) -> None:
    """Lay out once for all formats: it takes as long as drawing."""
    figure.set_dpi(RC["savefig.dpi"])
    if engine := figure.get_layout_engine():
        engine.execute(figure)
    figure.set_layout_engine(None)
