"""Run many tasks with workers and a progress bar; a task that fails stops no other task."""

import ctypes
import errno
import re
import socket
import time
import traceback
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pkgutil import resolve_name
from typing import Any, Literal, NoReturn, TypeVar

from .cache import publish
from .command import is_user_error, one_line
from .machine import core_count, free_memory, run_notes
from .progress import Bar, say, say_made
from .run_log import add_to_log
from .task import Progress, Task, no_progress
from .workers import UnitsFailed, can_fork, workers

BYTES_PER_LOGIT = 60  # of a process, per n x C of its task; patching takes most, about 48
FEW_LOGITS = 200_000  # of all tasks together; up to here score --quick is faster without workers
NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP)  # errors of a file system that cannot lock files
NUMBER = re.compile(r"\d+(\.\d+)?(e[+-]?\d+)?")  # equal but for numbers: printed once

Result = TypeVar("Result")


@dataclass(frozen=True)
class Outcome:
    """The outcome of one task."""

    task: Task
    state: Literal["made", "failed", "busy", "up to date"]
    """`busy`: another process works on it; `up to date`: another process has made it."""
    error: str = ""
    """One line; empty unless it failed."""
    traceback: str = ""
    """Of many lines; empty where the user caused the error."""
    warnings: Sequence[str] = ()
    """A line each."""


def run_tasks(
    title: str,
    tasks: Sequence[Task],
    one_by_one: bool = False,
    warned: list[str] | None = None,
) -> None:
    """Run every task that is not up to date, and print how many were made.

    Those that another process works on come last; then this process waits for them. `one_by_one` is
    for a few long tasks; each gets all cores and a bar of its own. UnitsFailed names the tasks that
    failed, after all others are done.

    Args:
        warned: lines of warnings are added to it, for the caller to print; else they are printed.
    """
    began = time.perf_counter()
    waiting = [task for task in tasks if task.settings.force or not task.is_up_to_date()]
    if not waiting:
        say_made(f"{title}: nothing to do, {len(tasks)} up to date")
        return
    make_all = _one_by_one if one_by_one else _side_by_side
    outcomes = list(make_all(title, waiting))
    failed = [outcome for outcome in outcomes if outcome.state == "failed"]
    messages = []
    for outcome in outcomes:
        messages += [(outcome.task.name, text) for text in outcome.warnings]
    lines = [f"warning: {line}" for line in _each_once(messages)]
    if warned is None or failed:  # a run that fails prints nothing later
        for line in lines:
            say(line)
    else:
        warned += lines
    made = [outcome for outcome in outcomes if outcome.state == "made"]
    n_up_to_date = len(tasks) - len(made) - len(failed)
    seconds = time.perf_counter() - began
    counts = f"{len(made)} made, {len(failed)} failed, {n_up_to_date} up to date"
    say_made(f"{title}: {counts}; {seconds:.1f} s")
    if failed:
        _raise_failures(title, failed, len(tasks))


def _raise_failures(title: str, failed: Sequence[Outcome], n_tasks: int) -> NoReturn:
    """Print the tracebacks of failed tasks, and raise UnitsFailed, which names them."""
    # Errors that are equal but for numbers have one traceback, that of the first.
    tracebacks = {NUMBER.sub("", outcome.error): outcome.traceback for outcome in reversed(failed)}
    for text in tracebacks.values():
        if text:
            say(text)
    lines = _each_once((outcome.task.name, outcome.error) for outcome in failed)
    message = "; ".join(lines)
    if n_tasks > 1:
        message = f"{title}: {len(failed)} of {n_tasks} failed: {message}"
    raise UnitsFailed(message)


def late(name: str, *arguments: Any) -> Any:
    """Call the function of a dotted name. Importing it takes seconds, so it is imported here."""
    return resolve_name(name)(*arguments)


def job_count(jobs: int | str, sizes: Sequence[int], are_there: bool = False) -> int:
    """The number of processes that work on tasks of `sizes` (n x C each) at the same time.

    `auto` is this process alone for little work, unless workers `are_there`. Otherwise it is one
    process per core, or fewer where the memory is short. Each process has its share of
    the cores as threads when it starts: all of them if there is one process, and one where all
    cores are busy, because threads that share small matrices mostly wait.
    """
    if len(sizes) < 2:
        return 1
    if jobs != "auto":
        return min(int(jobs), len(sizes))
    if sum(sizes) <= FEW_LOGITS and not are_there:
        return 1
    largest = max(1, *sizes)
    fitting_into_memory = max(1, free_memory() // (BYTES_PER_LOGIT * largest))
    return min(core_count(), fitting_into_memory, len(sizes))


def _one_by_one(title: str, tasks: Sequence[Task]) -> Iterator[Outcome]:
    for task in tasks:
        with Bar(f"{title} {task.name}", 1) as bar:
            yield attempt(task, wait=True, progress=bar)


def _side_by_side(title: str, tasks: Sequence[Task]) -> Iterator[Outcome]:
    settings = tasks[0].settings
    busy = []
    calls = [partial(attempt, task, wait=False) for task in tasks]
    sizes = [task.size for task in tasks]
    with workers() as pool:
        jobs = job_count(settings.jobs, sizes, are_there=pool.pool is not None)
        # Counting the cores takes a moment, which a single process saves.
        threads = max(1, core_count() // jobs) if jobs > 1 else 1
        outcomes = pool.results(title, calls, jobs, threads)
        with Bar(title, len(tasks)) as bar:  # its thread would not survive a fork
            for outcome in outcomes:
                if outcome.state == "busy":
                    busy.append(outcome.task)
                else:
                    bar.advance(outcome.task.name)
                    yield outcome
            for task in busy:
                say(f"waiting: another process works on {task.name}")
                yield attempt(task, wait=True)
                bar.advance(task.name)


def all_called(
    title: str, calls: Mapping[str, Callable[[], Result]], jobs: int | str
) -> dict[str, Result]:
    """What each call returns, by its name. Workers call it, if they are there or cost little.

    Without calls nothing is started, and no bar is shown.
    """
    if not calls:
        return {}
    results: dict[str, Result] = {}
    named_calls = [partial(_named, name, call) for name, call in calls.items()]
    with workers() as pool:
        cost_little = pool.pool is not None or can_fork()
        count = job_count(jobs, [0] * len(calls), are_there=cost_little)
        pairs = pool.results(title, named_calls, count)
        with Bar(title, len(calls)) as bar:
            for name, result in pairs:
                results[name] = result
                bar.advance(name)
    return {name: results[name] for name in calls}


def _named(name: str, call: Callable[[], Result]) -> tuple[str, Result]:
    return name, call()


def attempt(task: Task, wait: bool, progress: Progress = no_progress) -> Outcome:
    """Run a task unless it is up to date, one process at a time, and log the run.

    The lock ends with the process that holds it, even if that process is killed. `wait`: for
    another process that works on the same task.
    """
    from filelock import FileLock, Timeout  # a run with nothing to do needs none of these

    data = task.settings.paths.data
    lock = data / "locks" / f"{'-'.join(task.place.parts)}.lock"
    error, details = "", ""
    began, core_seconds = time.perf_counter(), time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        try:
            with FileLock(lock, timeout=-1 if wait else 0):
                if not task.settings.force and task.is_up_to_date():
                    return Outcome(task, "up to date")
                save, record = task.make(progress)
                publish(task.path, save, {"key": task.key, **record})
                del save, record  # they hold the arrays of the file
                _return_memory()
        except Exception as failure:
            if isinstance(failure, Timeout) and not wait:
                return Outcome(task, "busy")
            error = one_line(failure)
            if isinstance(failure, OSError) and failure.errno in NO_LOCKS:
                error = f"{data}: files cannot be locked here ({error}); use a local paths.data"
            if not is_user_error(failure):
                error = f"{type(failure).__name__}: {error}"
                details = traceback.format_exc()
    lines = [" ".join(str(warning.message).split()) for warning in caught]
    messages = tuple(dict.fromkeys(lines))  # each once
    notes = {
        "unit": task.place.as_posix(),
        "key": task.key,
        "seconds": time.perf_counter() - began,
        "core_seconds": time.process_time() - core_seconds,
        "error": error,
        "warnings": messages,
        **run_notes(),
    }
    add_to_log(data / "log" / f"runs-{socket.gethostname()}.jsonl", notes)
    return Outcome(task, "failed" if error else "made", error, details, messages)


def _return_memory() -> None:
    """Return free memory to the system: the C library of Linux keeps it, and the peak grows."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def _each_once(messages: Iterable[tuple[str, str]]) -> Iterator[str]:
    """One line per message, with the first task that has it, from pairs of name and message."""
    groups: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for name, message in messages:
        groups[NUMBER.sub("", message)].append((name, message))
    for (name, message), *others in groups.values():
        more = f" and {len(others)} more" if others else ""
        yield f"{name}{more}: {message}"
