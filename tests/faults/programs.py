"""Programs as a person starts them, each in a child that a fault strikes at a chosen moment.

Moments are counted in changes of files (a file opened for writing, renamed or removed, a folder
made). They are therefore the same on slow and fast machines.
"""

import errno
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from utility_calibration.pipeline import evaluate, fit, logits, report
from utility_calibration.scripts import score as scoring

CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")
OF_ONE_RUN = ("log", "locks")
"""Folders below data/ that say when, where and how long a run was; they differ between runs."""


class Fault(NamedTuple):
    """What happens to a program.

    how: "kill" (signal 9 at change number `at`), "full" (from change number `at` on no file can be
        opened for writing) or "read-only" (no change at all is possible).
    """

    how: str = "none"
    at: int = 0


class Ended(NamedTuple):
    """How a program ended: exit code (-9: killed), standard error, number of changes of files."""

    code: int | None
    errors: str
    changes: int


def score() -> None:
    """utility-calibration score on one file, with a calibrator to save."""
    sys.argv = [
        "score", "in/mine.npz", "--output", "out", "--jobs", "1", "--splits", "2", "--quick",
        "--methods", "temperature", "isotonic", "--save", "out/saved.npz",
        "--method", "temperature",
    ]  # fmt: skip
    scoring.main()


def stages() -> None:
    """Logits, fit, evaluate and report of a suite, whose figures are drawn in one format."""
    # The fonts of PDF files take a third of the time. This process runs nothing else.
    report.draw_all = partial(report.draw_all, formats=["svg"])
    for stage in (logits, fit, evaluate, report):
        sys.argv = [
            stage.__name__, "suite=digits", "suite.calibrators=[uncalibrated,vector]",
            "paths.precomputed=in", "paths.data=out/data", "paths.results=out/results", "jobs=1",
            "splits.count=2", "evaluation.utilities=20", "evaluation.floor_repetitions=20",
        ]  # fmt: skip
        stage.main()


PROGRAMS: dict[str, Callable[[], None]] = {"score": score, "stages": stages}


def fresh(folder: Path) -> Path:
    """`folder` with what the programs read, and nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "in").mkdir(parents=True)
    random = np.random.default_rng(0)
    for name, classes in (("mine", 3), ("digits", 10)):
        z = random.normal(scale=3.0, size=(90, classes)).astype(np.float32)
        labels = (z / 2 + random.gumbel(size=z.shape)).argmax(axis=1)
        np.savez(folder / f"in/{name}.npz", logits=z, labels=labels)
    return folder


def written(folder: Path) -> dict[str, bytes]:
    """Every file below out/ by its path, temporary files too, without the notes on one run."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted((folder / "out").rglob("*"))
        if path.is_file() and path.parent.name not in OF_ONE_RUN
    }


def start(program: str, folder: Path, fault: Fault = Fault()) -> Callable[[], Ended]:  # noqa: B008
    """Start a program in `folder`; calling the result waits for its end."""
    # The process that children are forked from has imported this module: a start takes no seconds.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    changes = context.Value("l", 0)
    errors = Path(tempfile.mkstemp(dir=folder, suffix=".errors")[1])
    child = context.Process(target=_child, args=(program, folder, fault, changes, errors))
    child.start()

    def end() -> Ended:
        child.join(300)
        return Ended(child.exitcode, errors.read_text(), changes.value)

    return end


def _child(program: str, folder: Path, fault: Fault, changes: Any, errors: Path) -> None:
    os.chdir(folder)
    for path, descriptor in ((str(errors), 2), (os.devnull, 1)):
        os.dup2(os.open(path, os.O_WRONLY), descriptor)
    sys.addaudithook(_watch(folder / "out", fault, changes))
    PROGRAMS[program]()


def _watch(folder: Path, fault: Fault, changes: Any) -> Callable[[str, tuple[Any, ...]], None]:
    """Count the changes below `folder`, and let the fault happen at its moment."""

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        opened = event == "open" and bool(arguments[2] & (os.O_WRONLY | os.O_RDWR))
        if not (opened or event in CHANGES) or isinstance(arguments[0], int):
            return
        path = Path(os.fsdecode(arguments[0])).absolute()
        if not path.is_relative_to(folder):
            return
        changes.value += 1
        if fault.how == "read-only":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))
        if changes.value < fault.at:
            return
        if fault.how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault.how == "full" and opened:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    return watch
