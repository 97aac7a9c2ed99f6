"""Figures that are to be drawn, several at once: a suite's take half a minute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from joblib import Parallel, delayed

from pipeline.harness.machine import core_count
from pipeline.reporting.style import save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WORTH_A_PROCESS = 4
"""Figures that take as long as another process takes to start."""


@dataclass(frozen=True)
class Drawing:
    """One figure: `make`, picklable, is called in the process that saves it."""

    make: Callable[[], Figure]
    folder: Path
    stem: str

    def save(self) -> list[Path]:
        """Draw it and write all formats; returns their paths."""
        return save_figure(self.make(), self.folder, self.stem)


def draw_all(drawings: Sequence[Drawing], jobs: int | str) -> list[Path]:
    """Save all of them; return the paths of the files.

    Args:
        jobs: at most so many processes, `auto` one per core.
    """
    most = core_count() if jobs == "auto" else int(jobs)
    processes = max(1, min(most, len(drawings) // WORTH_A_PROCESS))
    written = Parallel(n_jobs=processes)(delayed(Drawing.save)(one) for one in drawings)
    return [path for paths in written for path in paths]
