"""The output of a stage at work: a bar on a terminal, else a line every few seconds."""

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Self

from rich import progress
from rich.console import Console

NARROWEST = 20  # letters; COLUMNS=0 in the environment would leave no place for any


class OpenConsole(Console):
    """A console that goes on without a reader, such as a closed pager: the run is not lost."""

    def on_broken_pipe(self) -> None:
        """Write to nowhere from now on."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


console = OpenConsole(soft_wrap=True)
if console.width < NARROWEST:
    console.width = 80
_IS_HUSHED: ContextVar[bool] = ContextVar("_IS_HUSHED", default=False)
SECONDS_BETWEEN_LINES = 15.0  # at least, without a terminal (a log file, a cluster job)


class Bar:
    """Progress over `total` pieces, as a context manager. Calling it sets an absolute state."""

    def __init__(self, title: str, total: int) -> None:
        self.title = title
        self.total = total
        self.done = 0
        self.last_line = time.monotonic()
        self.live = progress.Progress(
            progress.TextColumn("{task.fields[title]}", style="bold", markup=False),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(),
            progress.TimeRemainingColumn(),
            progress.TextColumn("{task.description}", markup=False),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self.task = self.live.add_task("", total=total, title=title)

    def __enter__(self) -> Self:
        self.live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.live.stop()

    def __call__(self, done: int, total: int, what: str = "") -> None:
        """`done` of `total` pieces are finished; `what` names the current one."""
        self.done, self.total = done, total
        self.live.update(self.task, completed=done, total=total, description=what)
        if self.live.disable and time.monotonic() - self.last_line >= SECONDS_BETWEEN_LINES:
            self.last_line = time.monotonic()
            say_made(f"{self.title}: {done} of {total} ({what})")

    def advance(self, what: str = "") -> None:
        """One more piece is finished, which is called `what`."""
        self(self.done + 1, self.total, what)


def say(text: str) -> None:
    """Print one line without markup."""
    console.print(text, highlight=False, markup=False)


@contextmanager
def hushed() -> Iterator[None]:
    """Say nothing of what stages make: a program that runs several says itself what comes of it."""
    token = _IS_HUSHED.set(True)
    try:
        yield
    finally:
        _IS_HUSHED.reset(token)


def say_made(text: str) -> None:
    """Print one line on what a stage has made, unless it is `hushed`."""
    if not _IS_HUSHED.get():
        say(text)


def say_files(paths: Iterable[Path]) -> None:
    """Say which files or folders were written; what differs only in its ending shares a line."""
    endings_of: dict[Path, list[str]] = {}
    for path in paths:
        endings_of.setdefault(path.with_suffix(""), []).append(path.suffix)
    for stem, endings in endings_of.items():
        ending = endings[0]
        if len(endings) > 1:
            ending = f".{{{','.join(text.removeprefix('.') for text in endings)}}}"
        say_made(f"wrote {stem}{ending}")
