"""Several files that appear together: none of a step that failed, none of two runs mixed."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from pipeline.harness.progress import say_written

PREFIX = ".unfinished-"


@contextmanager
def all_or_nothing(folder: Path, last: str) -> Iterator[Path]:
    """A folder whose files move to `folder` when the block ends well, the one named `last` last.

    What an exception or a killed run left is removed, by the next run at the latest.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(folder)
    with TemporaryDirectory(prefix=PREFIX, dir=folder) as fresh, _held(Path(fresh)):
        yield Path(fresh)
        names = sorted(path.name for path in Path(fresh).iterdir())
        for name in sorted(names, key=last.__eq__):
            say_written((Path(fresh) / name).replace(folder / name))


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Lock `folder`: the system ends the lock with the process, however that ends.

    Raises `BlockingIOError` where another process holds it.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _remove_leftovers(folder: Path) -> None:
    for leftover in folder.glob(f"{PREFIX}*"):
        try:
            with _held(leftover):
                shutil.rmtree(leftover, ignore_errors=True)
        except OSError:  # of a run that goes on, or just gone
            continue
