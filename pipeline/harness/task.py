"""A task: one file to make, the key that identifies it, and whether the file has that key.

The words of the stages, each for one thing:

    unit        a benchmark, a calibrator and a split, which are fitted and scored (units.py).
    task        one file that a stage makes: the logits of a benchmark, the fit or the scores of a
                unit, … pipeline/tasks.py makes every task.
    key         a digest of all that decides what is in the file: settings, input and code.
    record      what a file says of itself, beside its arrays: its key and the facts of its making
                (cache.py).
    up to date  the file is there, undamaged, and its record has the task's key. `status` calls
                that done.
    stale       the file is there with another key: settings, input or code have changed since.

A stage makes every file that is not up to date. `status` calls such a file failed if the last try
ended with an error (run_log.py), else missing if it is absent or damaged, else stale.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .cache import Record, Save, record_of
from .settings import Settings

Progress = Callable[[int, int, str], None]  # pieces done, all pieces, the current one's name


def no_progress(done: int, total: int, what: str) -> None:
    """Show nothing."""


@dataclass(frozen=True)
class Task:
    """A file to make.

    Worker processes receive it by pickle, so `make` is a module's function, or a partial of one.
    """

    name: str
    """For messages."""
    settings: Settings
    path: Path
    """The file, an npz."""
    key: str
    make: Callable[[Progress], tuple[Save, Record]]
    """Called with a progress. It returns a function that writes the arrays, and the record without
    its key."""
    size: int = 0
    """The number of logits of its benchmark, n x C."""

    def is_up_to_date(self) -> bool:
        """Whether the file is there, undamaged, and has the task's key."""
        return (record_of(self.path) or {}).get("key") == self.key

    @property
    def place(self) -> Path:
        """The file below the folder of data, without its ending."""
        return self.path.relative_to(self.settings.paths.data).with_suffix("")
