"""Figures that are to be drawn, many at once: one takes seconds, a suite's take minutes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.harness.machine import core_count
from pipeline.harness.runner import check_outcomes, run_tasks
from pipeline.reporting.style import FORMATS, save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Drawing:
    """One figure: `make`, picklable, is called in the process that saves it."""

    make: Callable[[], Figure]
    folder: Path
    stem: str

    def save(self) -> None:
        """Draw it and write all formats."""
        save_figure(self.make(), self.folder, self.stem)

    @property
    def paths(self) -> list[Path]:
        """What `save` writes."""
        return [self.folder / f"{self.stem}.{suffix}" for suffix in FORMATS]

    def __str__(self) -> str:
        return self.stem


def draw_all(drawings: Sequence[Drawing], jobs: int | str) -> list[Path]:
    """Save all of them, in as many processes as pay; return the paths of the files.

    `jobs`: at most so many processes, `auto` one per core.

    Raises:
        UnitsFailed: some could not be drawn; the others are.
    """
    most = core_count() if jobs == "auto" else int(jobs)
    processes = max(1, min(most, len(drawings)))
    outcomes = run_tasks("figures", drawings, Drawing.save, processes, start_here=True)
    check_outcomes("figures", outcomes, len(drawings))
    return [path for drawing in drawings for path in drawing.paths]
