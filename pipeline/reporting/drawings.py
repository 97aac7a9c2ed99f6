"""Figures that are to be drawn, several at once: a suite's take half a minute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from joblib import Parallel, delayed

from pipeline.harness.machine import core_count
from pipeline.reporting.style import save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WORTH_A_PROCESS = 4
"""Figures that take as long as another process takes to start."""


class Drawing(NamedTuple):
    """One figure: `make`, picklable, is called in the process that saves it."""

    make: Callable[[], Figure]
    folder: Path
    stem: str


def draw_all(drawings: Sequence[Drawing], jobs: int | str) -> list[Path]:
    """Save all of them, in at most `jobs` processes (`auto`: one per core); return the paths."""
    most = core_count() if jobs == "auto" else int(jobs)
    processes = max(1, min(most, len(drawings) // WORTH_A_PROCESS))
    written = Parallel(n_jobs=processes)(delayed(_draw)(one) for one in drawings)
    return [path for paths in written for path in paths]


def _draw(drawing: Drawing) -> list[Path]:
    return save_figure(drawing.make(), drawing.folder, drawing.stem)
