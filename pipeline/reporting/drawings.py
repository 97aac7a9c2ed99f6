"""Draw and save figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from matplotlib.figure import Figure

from calibrators.files import atomic_path
from pipeline.harness.progress import Bar
from pipeline.reporting.style import RC, house_style

# No creation dates and no version stamps: equal content gives equal bytes.
METADATA: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}
Drawings = Mapping[str, Callable[[], Figure]]
"""What draws each figure, by the stem of its files."""


def draw_all(drawings: Drawings, folder: Path) -> list[Path]:
    """Draw all figures and save them in `folder`, one after another; return the paths."""
    written: list[Path] = []
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
