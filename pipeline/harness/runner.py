"""Run many units: in processes where that pays, with a progress bar; one failure stops no other."""

from __future__ import annotations

import os
import re
import threading
import time
import traceback
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from pipeline.harness.command import (
    UnitsFailed,
    end_fast,
    is_user_error,
    one_line,
    without_breaks,
)
from pipeline.harness.locks import Busy
from pipeline.harness.machine import core_count, device_name, free_memory, has_no_gpu
from pipeline.harness.progress import FAILED, RUN, UP_TO_DATE, Bar, print_summary, say
from pipeline.harness.units import Settings

BYTES_PER_LOGIT = 60
"""What a process takes at most for each of a unit's logits, n x C; patching most, about 48."""
TINY = 200_000
"""Logits below which a unit may take less time than starting a process."""
SECONDS_TO_START = 5.0
"""What starting processes costs, imports included; less saving than that is not worth it."""
KILLED = "a worker process was killed, perhaps out of memory; run again with jobs=1"
SECONDS_IDLE = 300.0
"""How long processes wait for more."""
THREADS = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"),
    *("VECLIB_MAXIMUM_THREADS", "NUMBA_NUM_THREADS", "NUMEXPR_NUM_THREADS"),
)
"""What libraries read their number of threads from."""
NUMBER = re.compile(r"\d+(\.\d+)?(e[+-]?\d+)?")
"""What differs between warnings that are told as one."""
SECONDS_BETWEEN_LOOKS = 1.0
"""How often a unit that another process works on is looked at again."""


class Task(Protocol):
    """What a runner runs: anything picklable that can say what it is."""

    @property
    def settings(self) -> Settings:
        """Its configuration."""

    def __str__(self) -> str: ...


class SizedTask(Task, Protocol):
    """A task among many."""

    @property
    def size(self) -> int:
        """Its logits, n x C."""


T = TypeVar("T", bound=Task)
A = TypeVar("A")
"""Anything that can say what it is."""
S = TypeVar("S", bound=SizedTask)


@dataclass(frozen=True)
class Outcome:
    """What became of one task: its seconds, and the error in one line if it failed."""

    task: Any
    seconds: float
    error: str | None = None
    details: str = ""
    """The traceback, where the error is not the user's."""
    busy: str = ""
    """Who else works on it; it was left for later."""
    by_another: bool = False
    """It turned out to be done, by another process."""
    warnings: tuple[str, ...] = ()
    """What it warned of, a line each."""


def job_count(jobs: int | str, sizes: Sequence[int], device: str) -> int:
    """Processes for units of `sizes` (n x C each): `jobs` itself, or by the rule behind `auto`."""
    if jobs != "auto":
        return max(1, int(jobs))
    if device.startswith("cuda"):
        return 1
    largest = max(1, *sizes)
    cores, fit = core_count(), max(1, free_memory() // (BYTES_PER_LOGIT * largest))
    threads = -(-cores // fit)  # where memory is short, each process has so many: no core is idle
    return min(cores // threads, len(sizes))


def run_stage(
    title: str,
    tasks: Sequence[T],
    is_done: Callable[[T], bool],
    function: Callable[..., object],
    run: Callable[[str, Callable[..., object], Sequence[T]], list[Outcome]],
    row: Callable[[T], str] = str,
) -> list[T]:
    """What all stages do: `function` of the tasks not done (`force`: of all); say what was done.

    `run`: how, such as `side_by_side` and `one_by_one`. Returns the tasks that were done already.
    Raises UnitsFailed after all others have been run.
    """
    waiting = [task for task in tasks if task.settings["force"] or not is_done(task)]
    outcomes = run(title, function, waiting) if waiting else []
    names = {str(task) for task in waiting}
    kept = [task for task in tasks if str(task) not in names]
    close(title, outcomes, kept, row)
    return kept


def side_by_side(
    title: str, function: Callable[[S], object], tasks: Sequence[S], device: str | None = None
) -> list[Outcome]:
    """Run many tasks of a known size, in as many processes as pay; `device`: not the settings'."""
    sizes = [task.size for task in tasks]
    settings = tasks[0].settings
    jobs = job_count(settings["jobs"], sizes, device or device_name(settings["device"]))
    return run_tasks(title, tasks, function, jobs, start_here=max(sizes) < TINY)


def one_by_one(title: str, function: Callable[..., object], tasks: Sequence[T]) -> list[Outcome]:
    """Run a few long tasks, `function(task, progress=...)`, each with a bar of its own."""

    def attempts(waiting: Sequence[T]) -> Iterator[Outcome]:
        for task in waiting:
            with Bar(f"{title} {task}", 1) as bar:
                outcome = attempt(partial(function, progress=bar), task)
            _say_warnings([outcome])
            yield outcome

    return list(_until_nobody_else_works(tasks, attempts))


def run_tasks(
    title: str,
    tasks: Sequence[A],
    function: Callable[[A], object],
    jobs: int,
    start_here: bool = False,
) -> list[Outcome]:
    """`function(task)` for every task, in `jobs` processes; outcomes in order of finishing.

    A task that another process works on is left for later; `function` returns False where that one
    has done it in the meantime.

    `start_here`: begin in this process and start others once the pace of the tasks says that it
    pays, for tasks that may be tiny; where processes wait for tasks already, these do all.
    """
    outcomes: list[Outcome] = []
    attempts = partial(_outcomes, function=function, jobs=jobs, start_here=start_here)
    try:
        with Bar(title, len(tasks)) as bar:
            for outcome in _until_nobody_else_works(tasks, attempts):
                outcomes.append(outcome)
                bar.advance(str(outcome.task))
    finally:  # where it is stopped, too: a unit that is done will not warn again
        _say_warnings(outcomes)
    return outcomes


def _until_nobody_else_works(
    tasks: Sequence[A], attempts: Callable[[Sequence[A]], Iterator[Outcome]]
) -> Iterator[Outcome]:
    """The outcomes of `attempts`; what another process works on is attempted again, at the end."""
    waiting, told = list(tasks), set[str]()
    while waiting:
        later: list[Outcome] = []
        for outcome in attempts(waiting):
            if outcome.busy:
                later.append(outcome)
            else:
                yield outcome
        waiting = [outcome.task for outcome in later]
        if waiting:
            if later[0].busy not in told:
                say(f"waiting: {later[0].busy}")
                told.add(later[0].busy)
            time.sleep(SECONDS_BETWEEN_LOOKS)


def _outcomes(
    tasks: Sequence[A], function: Callable[[A], object], jobs: int, start_here: bool
) -> Iterator[Outcome]:
    waiting = list(tasks)
    ready = _ready()
    if start_here and ready > jobs >= len(tasks) > 1:  # more do, but large tasks lack threads there
        jobs = ready
    saving = 0.0 if start_here and ready != jobs else float("inf")
    while waiting and (jobs == 1 or saving < SECONDS_TO_START):
        outcome = attempt(function, waiting.pop(0))
        if len(waiting) < len(tasks) - 1:  # the first one pays for imports and tells nothing
            saving = outcome.seconds * len(waiting) * (1 - 1 / jobs)
        yield outcome
    if waiting:
        yield from _in_processes(waiting, function, jobs)


@contextmanager
def workers_starting(
    settings: Settings, tasks: int, warm_up: Callable[[], object]
) -> Iterator[None]:
    """Have processes for so many tasks start and `warm_up`, while this one does the block.

    They wait SECONDS_IDLE for `run_tasks` that has use for as many; none start where this process
    does it all, and it is no matter where they can't.
    """
    on_cpu = has_no_gpu(settings["device"])
    jobs = job_count(settings["jobs"], [TINY] * tasks, "cpu") if on_cpu else 1
    try:
        with suppress(OSError, RuntimeError):  # no more processes, or one of them was killed
            for _ in range(jobs if jobs > 1 else 0):
                _workers(jobs).submit(attempt, _call, warm_up)
        yield
    except BaseException:
        end_workers()
        raise


def _call(function: Callable[[], object]) -> object:
    return function()


def _in_processes(
    tasks: Sequence[A], function: Callable[[A], object], jobs: int
) -> Iterator[Outcome]:
    from joblib.externals.loky import BrokenProcessPool

    # loky replaces a worker that keeps 300 MB after a large unit; there is nothing to be done.
    warnings.filterwarnings("ignore", message="A worker stopped while some jobs")

    def submitted() -> dict[Future[Outcome], A]:
        return {_workers(jobs).submit(attempt, function, task): task for task in tasks}

    try:
        futures = submitted()
    except BrokenProcessPool:  # one was killed while it waited
        end_workers()
        futures = submitted()
    try:
        for future in as_completed(futures):
            try:
                yield future.result()
            except BrokenProcessPool:
                end_workers()
                yield Outcome(futures[future], 0.0, KILLED)
        for one in _started:
            one.used = time.monotonic()
    except BaseException:  # interrupted or terminated: the units under way are given up
        end_workers()
        raise


@dataclass
class _Workers:
    """Processes that share the cores, and when they last had something to do."""

    number: int
    pool: Any
    used: float


_started: list[_Workers] = []
"""Those that wait for tasks: one or none."""


def _ready() -> int:
    """How many processes wait; none after SECONDS_IDLE."""
    fresh = [one.number for one in _started if time.monotonic() - one.used < SECONDS_IDLE]
    return fresh[0] if fresh else 0


def _workers(jobs: int) -> Any:
    """A pool of so many processes: the one that there is, as they are slow to start."""
    # Where processes are started: `status` and stages with nothing to do have no use for it.
    from joblib.externals.loky import ProcessPoolExecutor

    if not _started or _started[0].number != jobs:
        end_workers()
        pool = ProcessPoolExecutor(
            jobs,
            timeout=SECONDS_IDLE,
            initializer=_begin,
            initargs=(os.getpid(),),
            env=dict.fromkeys(THREADS, str(max(1, core_count() // jobs))),
        )
        _started.append(_Workers(jobs, pool, 0.0))
    _started[0].used = time.monotonic()
    return _started[0].pool


def end_workers() -> None:
    """Kill the processes that wait for tasks, if any."""
    while _started:
        _started.pop().pool.shutdown(wait=True, kill_workers=True)


def _begin(parent: int) -> None:
    """End this process soon after `parent` was killed; by itself it would wait for minutes."""
    end_fast()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def messages_of(raised: Sequence[warnings.WarningMessage]) -> list[str]:
    """What was warned of, once and a line each."""
    return list(dict.fromkeys(without_breaks(warning.message) for warning in raised))


def attempt(function: Callable[[A], object], task: A) -> Outcome:
    """Run one task; its exception, its warnings and a returned False become part of the outcome."""
    with warnings.catch_warnings(record=True) as raised:
        outcome = _attempt(function, task)
    return replace(outcome, warnings=tuple(messages_of(raised)))


def _attempt(function: Callable[[A], object], task: A) -> Outcome:
    began = time.perf_counter()
    try:
        made = function(task)
    except Busy as error:
        return Outcome(task, 0.0, busy=one_line(error))
    except Exception as error:
        details = "" if is_user_error(error) else traceback.format_exc()
        name = "" if is_user_error(error) else f"{type(error).__name__}: "
        return Outcome(task, time.perf_counter() - began, name + one_line(error), details)
    return Outcome(task, time.perf_counter() - began, by_another=made is False)


def close(
    title: str, outcomes: Sequence[Outcome], up_to_date: Sequence[T], row: Callable[[T], str]
) -> None:
    """Print what a stage did, one line per value of `row(task)`.

    Raises:
        UnitsFailed: some did not succeed; equal errors are told once.
    """
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    total = len(outcomes) + len(up_to_date)
    if total == 1 and failed:
        if failed[0].details:
            say(failed[0].details.rstrip())  # several lines: not part of the error's one line
        raise UnitsFailed(f"{failed[0].task}: {failed[0].error}")
    if not outcomes:
        say(f"{title}: nothing to do, {total} up to date")
        return
    if total == 1:
        how = "made by another process" if outcomes[0].by_another else ""
        say(f"{title}: {outcomes[0].task}, {how or f'{outcomes[0].seconds:.1f} s'}")
        return
    rows = defaultdict[str, dict[str, float]](lambda: defaultdict(float))
    for outcome in outcomes:
        counts = rows[row(outcome.task)]
        counts[FAILED if outcome.error else UP_TO_DATE if outcome.by_another else RUN] += 1
        counts["seconds"] += outcome.seconds
    for task in up_to_date:
        rows[row(task)][UP_TO_DATE] += 1
    print_summary(title, rows)
    check_outcomes(title, outcomes, total)


def check_outcomes(title: str, outcomes: Sequence[Outcome], total: int) -> None:
    """Tell what failed of `total` tasks, equal errors once.

    Raises:
        UnitsFailed: something did.
    """
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    for line in _grouped(failed):
        say(line)
    if failed:
        raise UnitsFailed(f"{title}: {len(failed)} of {total} failed; the others are done")


def _grouped(failed: Sequence[Outcome]) -> list[str]:
    """One line per error, or place in the code, and how many tasks it hit; the first traceback."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in failed:
        where = outcome.details.rpartition("\n  File")[2] or outcome.error or ""
        groups.setdefault(where.strip().rpartition("\n")[0] or where, []).append(outcome)
    return [
        f"{group[0].details}failed: {_first_of([one.task for one in group])}: {group[0].error}"
        for group in groups.values()
    ]


def warning_lines(raised: Iterable[tuple[object, str]]) -> Iterator[str]:
    """Tasks and what they warned of; warnings that are equal but for numbers are one line."""
    groups: dict[str, list[tuple[object, str]]] = {}
    for task, message in raised:
        groups.setdefault(NUMBER.sub("", message), []).append((task, message))
    for group in groups.values():
        yield f"warning: {_first_of([task for task, _ in group])}: {group[0][1]}"


def _say_warnings(outcomes: Sequence[Outcome]) -> None:
    for line in warning_lines((one.task, message) for one in outcomes for message in one.warnings):
        say(line)


def _first_of(tasks: Sequence[object]) -> str:
    return f"{tasks[0]}" + (f" and {len(tasks) - 1} more" if len(tasks) > 1 else "")
