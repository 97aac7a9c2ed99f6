"""Several files that appear together: none of a step that failed, none of two runs mixed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock


@contextmanager
def all_or_nothing(folder: Path, last: str) -> Iterator[Path]:
    """A folder whose files move to `folder` when the block ends well, the one named `last` last.

    Another process that does the same waits. What a killed run left is removed by the next one.
    """
    fresh, locks = folder / ".unfinished", folder / "data" / "locks"
    locks.mkdir(parents=True, exist_ok=True)
    with FileLock(locks / "results.lock"):
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        try:
            yield fresh
            names = sorted(path.name for path in fresh.iterdir())
            for name in sorted(names, key=last.__eq__):
                (fresh / name).replace(folder / name)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
