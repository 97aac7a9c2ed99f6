"""Run many units with joblib, with a progress bar; one failure stops no other unit."""

from __future__ import annotations

import json
import re
import socket
import time
import traceback
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from pipeline.harness.cache import Busy, Save, is_current, made_by_one, publish
from pipeline.harness.command import UnitsFailed, is_user_error, one_line, without_breaks
from pipeline.harness.machine import core_count, device_name, free_memory, run_notes
from pipeline.harness.progress import Bar, print_summary, say
from pipeline.harness.units import Settings

BYTES_PER_LOGIT = 60
"""Memory of one process for each of a unit's n x C logits. Patching takes most, about 48 bytes."""
SECONDS_IDLE = 20
"""How long a worker process waits for work before it ends."""
KILLED = "a worker process was killed, perhaps out of memory; run it again with jobs=1"
NUMBER = re.compile(r"\d+(\.\d+)?(e[+-]?\d+)?")
"""Warnings that differ in numbers alone are told as one."""

Progress = Callable[[int, int, str], None]


class Task(Protocol):
    """A unit to make: where it lies, what identifies it, and how to make it. Picklable."""

    @property
    def settings(self) -> Settings: ...
    @property
    def path(self) -> Path: ...
    @property
    def key(self) -> str: ...
    @property
    def size(self) -> int:
        """Logits of its benchmark, n x C."""

    @property
    def row(self) -> str:
        """The line of the closing table that counts it."""

    def __str__(self) -> str: ...
    def make(self, device: str, progress: Progress) -> tuple[Save, dict[str, Any]]:
        """What writes the arrays, and the record without its key."""


T = TypeVar("T", bound=Task)


@dataclass(frozen=True)
class Outcome:
    """What became of one task."""

    task: Any
    seconds: float = 0.0
    error: str = ""
    details: str = ""
    """The traceback, where the error is not the user's."""
    is_busy: bool = False
    warnings: tuple[str, ...] = ()


def run_tasks(title: str, tasks: Sequence[T], one_by_one: bool = False) -> None:
    """Make every unit that is not up to date, and print what was done.

    A unit that another process works on is left for the end; then this one waits for it.

    Args:
        one_by_one: for a few long tasks; each gets all cores and a bar of its own.

    Raises:
        UnitsFailed: the units that failed, after all others are done.
    """
    waiting = [one for one in tasks if one.settings["force"] or not is_current(one.path, one.key)]
    if not waiting:
        say(f"{title}: nothing to do, {len(tasks)} up to date")
        return
    outcomes: list[Outcome] = []
    try:
        if one_by_one:
            for task in waiting:
                with Bar(f"{title} {task}", 1) as bar:
                    outcomes.append(attempt(task, True, bar))
        else:
            outcomes += _side_by_side(title, waiting)
    finally:
        _say_warnings(outcomes)
    _close(title, tasks, outcomes)


def job_count(jobs: int | str, sizes: Sequence[int], device: str) -> int:
    """How many processes work on units of `sizes` (n x C each) at the same time.

    `auto` is one process per core, or fewer where the memory is short, and one on a GPU.
    """
    if jobs != "auto":
        return min(int(jobs), len(sizes))
    if device.startswith("cuda"):
        return 1
    fitting = max(1, free_memory() // (BYTES_PER_LOGIT * max(1, *sizes)))
    return min(core_count(), fitting, len(sizes))


def _side_by_side(title: str, tasks: Sequence[Task]) -> list[Outcome]:
    settings = tasks[0].settings
    device = device_name(settings["device"])
    jobs = job_count(settings["jobs"], [task.size for task in tasks], device)
    outcomes: list[Outcome] = []
    with Bar(title, len(tasks)) as bar:
        later = []
        for outcome in _outcomes(tasks, jobs, wait=False):
            if outcome.is_busy:
                later.append(outcome.task)
                continue
            outcomes.append(outcome)
            bar.advance(str(outcome.task))
        if later:
            say(f"waiting: another process works on {_first_of(later)}")
        for outcome in _outcomes(later, 1, wait=True):
            outcomes.append(outcome)
            bar.advance(str(outcome.task))
    return outcomes


def _outcomes(tasks: Sequence[Task], jobs: int, wait: bool) -> Iterator[Outcome]:
    if jobs == 1:
        yield from (attempt(task, wait) for task in tasks)
        return
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    # A worker that keeps much memory after a large unit is replaced; there is nothing to do.
    warnings.filterwarnings("ignore", message="A worker stopped while some jobs")
    left = {str(task): task for task in tasks}
    try:
        with parallel_config(backend="loky", idle_worker_timeout=SECONDS_IDLE):
            work = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
            for outcome in work(delayed(attempt)(task, wait) for task in tasks):
                left.pop(str(outcome.task))
                yield outcome
    except TerminatedWorkerError:
        yield from (Outcome(task, error=KILLED) for task in left.values())


def attempt(task: Task, wait: bool, progress: Progress | None = None) -> Outcome:
    """Make one unit; its exception and its warnings become part of the outcome and of the log."""
    began, error, details = time.perf_counter(), "", ""
    core_seconds = time.process_time()
    data = Path(task.settings["paths"]["data"])
    where = task.path.relative_to(data) if task.path.is_relative_to(data) else Path(task.path.name)
    lock = data / "locks" / f"{'-'.join(where.parts)}.lock"
    with warnings.catch_warnings(record=True) as raised:
        try:
            made = made_by_one(
                task.path,
                task.key,
                lock,
                lambda: _make(task, progress or _silent),
                force=task.settings["force"],
                wait=wait,
            )
        except Busy:
            return Outcome(task, is_busy=True)
        except Exception as failure:
            made, error = True, one_line(failure)
            if not is_user_error(failure):
                error, details = f"{type(failure).__name__}: {error}", traceback.format_exc()
    seconds = time.perf_counter() - began
    told = tuple(dict.fromkeys(without_breaks(one.message) for one in raised))
    if made:
        notes = {
            "unit": str(where.with_suffix("")),
            "key": task.key,
            "seconds": seconds,
            "core_seconds": time.process_time() - core_seconds,
            "error": error,
            "warnings": told,
            **run_notes(),
        }
        _log(data, notes)
    return Outcome(task, seconds, error, details, warnings=told)


def _silent(done: int, total: int, what: str = "") -> None:
    """The progress of a unit among many, which no bar shows."""


def _make(task: Task, progress: Progress) -> None:
    save, record = task.make(device_name(task.settings["device"]), progress)
    publish(task.path, save, {"key": task.key, **record})


def _log(data: Path, notes: dict[str, Any]) -> None:
    """Append one line to the log of runs. A full disk loses the line and nothing else."""
    path = data / "log" / f"runs-{socket.gethostname()}.jsonl"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(notes) + "\n")
    except OSError:
        return


def _close(title: str, tasks: Sequence[Task], outcomes: Sequence[Outcome]) -> None:
    """Print what was done, a line per `row`, and raise UnitsFailed where something failed."""
    failed = [outcome for outcome in outcomes if outcome.error]
    if len(tasks) == 1:
        if failed:
            if failed[0].details:
                say(failed[0].details.rstrip())
            raise UnitsFailed(f"{tasks[0]}: {failed[0].error}")
        say(f"{title}: {tasks[0]}, {outcomes[0].seconds:.1f} s")
        return
    run = {str(outcome.task): outcome for outcome in outcomes}
    rows: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for task in tasks:
        outcome, counts = run.get(str(task)), rows[task.row]
        state = "up to date" if outcome is None else "failed" if outcome.error else "run"
        counts[state] += 1
        counts["seconds"] += outcome.seconds if outcome else 0.0
    print_summary(title, rows)
    for line in _error_lines(failed):
        say(line)
    if failed:
        raise UnitsFailed(f"{title}: {len(failed)} of {len(tasks)} failed; the others are done")


def _error_lines(failed: Sequence[Outcome]) -> Iterator[str]:
    """Errors with the same text but for numbers are one line, after the first one's traceback."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in failed:
        groups.setdefault(NUMBER.sub("", outcome.error), []).append(outcome)
    for group in groups.values():
        units = _first_of([one.task for one in group])
        yield f"{group[0].details}failed: {units}: {group[0].error}"


def _say_warnings(outcomes: Sequence[Outcome]) -> None:
    groups: dict[str, list[tuple[object, str]]] = {}
    for outcome in outcomes:
        for message in outcome.warnings:
            groups.setdefault(NUMBER.sub("", message), []).append((outcome.task, message))
    for group in groups.values():
        say(f"warning: {_first_of([task for task, _ in group])}: {group[0][1]}")


def _first_of(tasks: Sequence[object]) -> str:
    return f"{tasks[0]}" + (f" and {len(tasks) - 1} more" if len(tasks) > 1 else "")
