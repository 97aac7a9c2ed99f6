"""What a person sees while a stage works: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.style import Style
from rich.table import Table
from rich.text import Text

console = Console(soft_wrap=True)

SECONDS_BETWEEN_LINES = 15.0
"""Without a terminal (a log file, a cluster job): at most one line in this time."""
COUNTED = RUN, UP_TO_DATE, FAILED = "run", "up to date", "failed"
"""What a stage's closing table says of tasks."""


class Bar:
    """Progress over `total` pieces, as a context manager. Calling it sets an absolute state."""

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total, self.done = title, total, 0
        self._began = self._last_line = time.monotonic()
        self._live = Progress(
            TextColumn("[bold]{task.fields[title]}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.description}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._live.add_task("", total=total, title=title)

    def __enter__(self) -> Bar:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def __call__(self, done: int, total: int, what: str = "") -> None:
        """`done` of `total` pieces are finished (see `pipeline.sources.result.Progress`)."""
        self.done, self.total = done, total
        self._live.update(self._task, completed=done, total=total, description=what)
        late = time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES
        if self._live.disable and done < total and late:
            self._last_line = time.monotonic()
            say(self._line(what))

    def advance(self, what: str = "") -> None:
        """One more piece, the one called `what`, is finished."""
        self(self.done + 1, self.total, what)

    def _line(self, what: str) -> str:
        seconds = time.monotonic() - self._began
        text = f"{self.title}: {self.done}/{self.total} after {seconds:.0f} s"
        if self.done:  # before the first piece is done, nothing tells the pace
            text += f", about {seconds / self.done * (self.total - self.done):.0f} s left"
        return text + (f" ({what})" if what else "")


def say(text: str) -> None:
    """Print one line as it is."""
    console.print(text, highlight=False, markup=False)


def say_written(path: Path, more: str = "") -> None:
    """Tell that a file was written; a terminal that knows how opens it on a click (OSC 8)."""
    link = Style(link=path.absolute().as_uri())
    console.print(Text.assemble("wrote ", (str(path), link), more), highlight=False)


def say_files(paths: Iterable[Path]) -> None:
    """Tell which files were written, one line for those that differ in their endings only."""
    stems: dict[Path, list[str]] = {}
    for path in paths:
        stems.setdefault(path.with_suffix(""), []).append(path.suffix[1:])
    for stem, endings in stems.items():
        say(f"wrote {stem}.{endings[0] if len(endings) == 1 else '{' + ','.join(endings) + '}'}")


def print_summary(title: str, rows: Mapping[str, Mapping[str, float]]) -> None:
    """The closing table of a stage: per row how many tasks were COUNTED as what, and `seconds`."""
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for heading in (*COUNTED, "seconds"):
        table.add_column(heading, justify="right")
    for name, row in rows.items():
        table.add_row(name, *(f"{row[key]:.0f}" for key in COUNTED), f"{row['seconds']:.1f}")
    console.print(table)
