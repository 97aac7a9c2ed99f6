"""Run many units with joblib, with a progress bar; one failure stops no other unit."""

from __future__ import annotations

import json
import re
import socket
import time
import traceback
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pipeline.harness.cache import Busy, Record, Save, is_current, made_by_one, publish
from pipeline.harness.command import UnitsFailed, is_user_error, one_line
from pipeline.harness.machine import core_count, device_name, free_memory, run_notes
from pipeline.harness.progress import Bar, print_summary, say
from pipeline.harness.units import Settings

BYTES_PER_LOGIT = 60
"""Memory of one process for each of a unit's n x C logits. Patching takes most, about 48 bytes."""
SECONDS_IDLE = 20
"""How long a worker process waits for work before it ends."""
KILLED = "a worker process was killed, perhaps out of memory; run it again with jobs=1"
NUMBER = re.compile(r"\d+(\.\d+)?(e[+-]?\d+)?")
"""Messages that differ in numbers alone are printed as one."""

Progress = Callable[[int, int, str], None]
T = TypeVar("T")


@dataclass(frozen=True)
class Task:
    """A unit to make: where it lies, what identifies it, and how to make it.

    Worker processes receive it by pickle, so `make` is a module's function, or a partial of one.
    """

    name: str
    row: str
    """The line of the closing table that counts it."""
    settings: Settings
    path: Path
    key: str
    size: int
    """Logits of its benchmark, n x C."""
    make: Callable[[str, Progress], tuple[Save, Record]]
    """From the device and a progress to what writes the arrays, and the record without its key."""

    def is_current(self) -> bool:
        """Whether the unit is up to date."""
        return is_current(self.path, self.key)

    @property
    def place(self) -> Path:
        """The unit's file below the folder of data, without its ending."""
        return self.path.relative_to(self.settings["paths"]["data"]).with_suffix("")


@dataclass(frozen=True)
class Outcome:
    """What became of one task."""

    task: Task
    seconds: float = 0.0
    error: str = ""
    details: str = ""
    """The traceback, where the error is not the user's."""
    is_busy: bool = False
    warnings: tuple[str, ...] = ()


def run_tasks(title: str, tasks: Sequence[Task], one_by_one: bool = False) -> None:
    """Make every unit that is not up to date, and print what was done.

    A unit that another process works on is left for the end; then this process waits for it.

    Args:
        one_by_one: for a few long tasks; each gets all cores and a bar of its own.

    Raises:
        UnitsFailed: the units that failed, after all others are done.
    """
    waiting = [task for task in tasks if task.settings["force"] or not task.is_current()]
    if not waiting:
        say(f"{title}: nothing to do, {len(tasks)} up to date")
        return
    outcomes: list[Outcome] = []
    try:
        outcomes += _each(title, waiting) if one_by_one else _side_by_side(title, waiting)
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


def _each(title: str, tasks: Sequence[Task]) -> Iterator[Outcome]:
    for task in tasks:
        with Bar(f"{title} {task.name}", 1) as bar:
            yield attempt(task, True, bar)


def _side_by_side(title: str, tasks: Sequence[Task]) -> Iterator[Outcome]:
    settings = tasks[0].settings
    device = device_name(settings["device"])
    jobs = job_count(settings["jobs"], [task.size for task in tasks], device)
    busy = []
    with Bar(title, len(tasks)) as bar:
        for outcome in _outcomes(tasks, jobs):
            if outcome.is_busy:
                busy.append(outcome.task)
                continue
            yield outcome
            bar.advance(outcome.task.name)
        if busy:
            say(f"waiting: another process works on {_first_of(busy)}")
        for task in busy:
            yield attempt(task, wait=True)
            bar.advance(task.name)


def _outcomes(tasks: Sequence[Task], jobs: int) -> Iterator[Outcome]:
    if jobs == 1:
        yield from (attempt(task, wait=False) for task in tasks)
        return
    from joblib import Parallel, delayed, parallel_config
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    # A worker that keeps much memory after a large unit is replaced; there is nothing to do.
    warnings.filterwarnings("ignore", message="A worker stopped while some jobs")
    left = {task.path: task for task in tasks}
    try:
        with parallel_config(backend="loky", idle_worker_timeout=SECONDS_IDLE):
            work = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
            for outcome in work(delayed(attempt)(task, wait=False) for task in tasks):
                del left[outcome.task.path]
                yield outcome
    except TerminatedWorkerError:
        yield from (Outcome(task, error=KILLED) for task in left.values())


def attempt(task: Task, wait: bool, progress: Progress = lambda *_: None) -> Outcome:
    """Make one unit; its exception and its warnings become part of the outcome and of the log."""
    began, core_seconds = time.perf_counter(), time.process_time()
    error, details = "", ""
    data = Path(task.settings["paths"]["data"])

    def make() -> None:
        save, record = task.make(device_name(task.settings["device"]), progress)
        publish(task.path, save, {"key": task.key, **record})

    with warnings.catch_warnings(record=True) as caught:
        lock = data / "locks" / f"{'-'.join(task.place.parts)}.lock"
        try:
            made = made_by_one(task.path, task.key, lock, make, task.settings["force"], wait)
        except Busy:
            return Outcome(task, is_busy=True)
        except Exception as failure:
            made, error = True, one_line(failure)
            if not is_user_error(failure):
                error, details = f"{type(failure).__name__}: {error}", traceback.format_exc()
    seconds = time.perf_counter() - began
    messages = tuple(dict.fromkeys(" ".join(str(one.message).split()) for one in caught))
    if made:
        notes = {
            "unit": task.place.as_posix(),
            "key": task.key,
            "seconds": seconds,
            "core_seconds": time.process_time() - core_seconds,
            "error": error,
            "warnings": messages,
            **run_notes(),
        }
        _log(data / "log" / f"runs-{socket.gethostname()}.jsonl", json.dumps(notes))
    return Outcome(task, seconds, error, details, warnings=messages)


def _log(path: Path, line: str) -> None:
    """Append a line to the log of runs. A full disk loses the line and nothing else."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
    except OSError:
        return


def _close(title: str, tasks: Sequence[Task], outcomes: Sequence[Outcome]) -> None:
    """Print what was done, a line per `row`, and raise UnitsFailed where something failed."""
    failed = [outcome for outcome in outcomes if outcome.error]
    if len(tasks) == 1:
        if failed:
            if failed[0].details:
                say(failed[0].details.rstrip())
            raise UnitsFailed(f"{tasks[0].name}: {failed[0].error}")
        say(f"{title}: {tasks[0].name}, {outcomes[0].seconds:.1f} s")
        return
    run = {outcome.task.path: outcome for outcome in outcomes}
    rows: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for task in tasks:
        outcome, counts = run.get(task.path), rows[task.row]
        state = "up to date" if outcome is None else "failed" if outcome.error else "run"
        counts[state] += 1
        counts["seconds"] += outcome.seconds if outcome else 0.0
    print_summary(title, rows)
    for group in _alike((outcome.error, outcome) for outcome in failed):
        first = group[0]
        say(f"{first.details}failed: {_first_of([one.task for one in group])}: {first.error}")
    if failed:
        raise UnitsFailed(f"{title}: {len(failed)} of {len(tasks)} failed; the others are done")


def _say_warnings(outcomes: Sequence[Outcome]) -> None:
    """Print each warning once."""
    raised = [(message, outcome.task) for outcome in outcomes for message in outcome.warnings]
    for group in _alike((message, (message, task)) for message, task in raised):
        say(f"warning: {_first_of([task for _, task in group])}: {group[0][0]}")


def _alike(pairs: Iterable[tuple[str, T]]) -> list[list[T]]:
    """The second of each pair, those together whose messages differ in numbers alone."""
    groups: dict[str, list[T]] = defaultdict(list)
    for message, item in pairs:
        groups[NUMBER.sub("", message)].append(item)
    return list(groups.values())


def _first_of(tasks: Sequence[Task]) -> str:
    return tasks[0].name + (f" and {len(tasks) - 1} more" if len(tasks) > 1 else "")
