"""Run jobs where `hydra/launcher` says: submitit (Slurm, this machine), joblib, Ray, or right here.

Hydra's own launchers end a sweep with the first job that is killed, cancelled or refused. The
engines and their settings are the same here, but every job ends with one line, and its log's path.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from pipeline.harness.command import Terminated, UnitsFailed, UsageError, one_line
from pipeline.harness.machine import core_count
from pipeline.harness.progress import say

SECONDS_BETWEEN_LOOKS = 2.0
SECONDS_TO_END = 20.0
"""How long jobs on this machine have to end when the sweep is stopped."""
LOOKS_BETWEEN_QUESTIONS = 5
"""Slurm is asked less often than files are looked at."""
WAITING_ITS_TURN = (
    *("None", "Priority", "Resources", "Dependency", "JobArrayTaskLimit", "BeginTime"),
    *("Cleaning", "Prolog", "Licenses"),
)
"""Slurm's reasons of a pending job that end by themselves."""
NEVER = ("PartitionTimeLimit", "PartitionNodeLimit", "BadConstraints")
"""Those that no waiting ends."""


class Job(Protocol):
    """Something picklable that runs when called, and can say what it is."""

    def __call__(self) -> None: ...

    def __str__(self) -> str: ...


@dataclass(frozen=True)
class Ended:
    """A job that ended: the error in one line if it failed, and where its output lies."""

    job: Any
    error: str | None = None
    log: Path | None = None


Settings = dict[str, Any]
"""`hydra.launcher` as plain values."""


class TimeLimit(RuntimeError):
    """The engine's time limit came; the units done until then stay. One line."""


Group = tuple[Sequence[Job], Settings]
"""Jobs and the engine's settings for them; the groups of a call have one engine."""


def run_jobs(groups: Sequence[Group], folder: Path) -> Iterator[Ended]:
    """Run all jobs; each is yielded when it ends, in whatever order that is.

    Jobs of all groups wait in Slurm's queue at once, or with `queue` for a core; other engines take
    one group after another.
    `folder` is where logs go, of the engines that write some.
    """
    target = _engine(groups[0][1])
    keep_logs = writes_logs(groups[0][1])
    groups = [group for group in groups if group[0]]
    if keep_logs:
        return _on_submitit(groups, folder, "slurm" if target == "SlurmLauncher" else "local")
    engines: dict[str, Callable[[Sequence[Job], Settings], Iterator[Ended]]] = {
        "BasicLauncher": _here, "JoblibLauncher": _on_joblib, "RayLauncher": _on_ray,
    }  # fmt: skip
    if target not in engines:
        raise UsageError(f"hydra/launcher: {target} is none of slurm, queue, cores, ray_cluster")
    return chain.from_iterable(engines[target](*group) for group in groups)


def runs_here(launcher: Mapping[str, Any]) -> bool:
    """Whether jobs run in this very process, one after another: then fewer are better."""
    return _engine(launcher) == "BasicLauncher"


def writes_logs(launcher: Mapping[str, Any]) -> bool:
    """Whether what jobs print goes to files instead of here."""
    return _engine(launcher) in ("SlurmLauncher", "LocalLauncher")


def cores_of_a_job(launcher: Mapping[str, Any]) -> int:
    """Cores that the engine gives a job: those asked for, else its share of this machine's."""
    if "ray" in launcher:  # one unless told otherwise
        return max(1, int((launcher["ray"].get("remote") or {}).get("num_cpus") or 1))
    if asked := launcher.get("cpus_per_task"):
        return max(1, int(asked))
    at_once = launcher.get("n_jobs") or 1  # joblib's; negative: all cores
    return max(1, core_count() // at_once) if at_once > 0 else 1


def _engine(launcher: Mapping[str, Any]) -> str:
    return str(launcher["_target_"]).rpartition(".")[2]


def run_and_tell(groups: Sequence[Group], folder: Path) -> Iterator[Ended]:
    """`run_jobs`, with one line as each ends."""
    total = sum(len(jobs) for jobs, _ in groups)
    for count, one in enumerate(run_jobs(groups, folder) if total else (), 1):
        log = f"; log: {one.log}" if one.log else ""
        what = f"failed: {one.job}: {one.error}{log}" if one.error else f"done: {one.job}"
        say(f"[{count}/{total}] {what}")
        yield one


def counted(jobs: Sequence[object]) -> str:
    """`1 job`, `2 jobs`."""
    return f"{len(jobs)} job" + ("s" if len(jobs) != 1 else "")


def failure_lines(ended: Sequence[Ended]) -> Iterator[str]:
    """How many jobs are done, and what failed, equal errors told once."""
    failed = [one for one in ended if one.error]
    yield f"sweep: {len(ended) - len(failed)} of {counted(ended)} done, {len(failed)} failed"
    groups: dict[str, list[Ended]] = {}
    for one in failed:
        groups.setdefault(str(one.error), []).append(one)
    for error, group in groups.items():
        yield f"failed, {counted(group)}: {error}"
        yield from (f"    {one.job}" + (f": {one.log}" if one.log else "") for one in group)


def check_failures(ended: Sequence[Ended]) -> None:
    """Raise `UnitsFailed` where a job failed."""
    if failed := [one for one in ended if one.error]:
        raise UnitsFailed(
            f"{len(failed)} of {counted(ended)} failed; what is done stays, run it again"
        )


def _attempt(job: Job) -> str | None:
    """The error of a job in one line, or None."""
    try:
        job()
    except Exception as error:
        return one_line(error)
    return None


def _here(jobs: Sequence[Job], launcher: Settings) -> Iterator[Ended]:
    return (Ended(job, _attempt(job)) for job in jobs)


def _on_joblib(jobs: Sequence[Job], launcher: Settings) -> Iterator[Ended]:
    from joblib import Parallel, delayed

    def numbered(number: int, job: Job) -> tuple[int, str | None]:
        return number, _attempt(job)

    pool = Parallel(n_jobs=launcher["n_jobs"], return_as="generator_unordered", batch_size=1)
    unfinished = dict(enumerate(jobs))
    try:
        for number, error in pool(delayed(numbered)(*pair) for pair in enumerate(jobs)):
            yield Ended(unfinished.pop(number), error)
    except RuntimeError as error:  # loky's, when a worker was killed: the pool is lost
        yield from (Ended(job, f"a worker was killed: {error}") for job in unfinished.values())


def _on_ray(jobs: Sequence[Job], launcher: Settings) -> Iterator[Ended]:
    import ray  # type: ignore[import-not-found, unused-ignore]

    ray.init(**launcher["ray"]["init"])
    try:
        asked = launcher["ray"]["remote"]
        if refused := _no_node_has(asked, [node["Resources"] for node in ray.nodes()]):
            yield from (Ended(job, refused) for job in jobs)
            return
        start = ray.remote(**asked)(_attempt).remote
        running = {start(job): job for job in jobs}
        while running:
            (ended, *_), _ = ray.wait(list(running), num_returns=1)
            job = running.pop(ended)
            try:
                yield Ended(job, ray.get(ended))
            except ray.exceptions.RayError as error:
                first = str(error).strip().partition("\n")[0]
                yield Ended(job, f"its worker was killed: {type(error).__name__}: {first}")
    finally:
        ray.shutdown()


def _no_node_has(asked: Settings, nodes: Sequence[dict[str, float]]) -> str | None:
    """Ray would wait for such a node for ever."""
    for key, name in (("num_cpus", "CPU"), ("num_gpus", "GPU"), ("memory", "memory")):
        most = max((node.get(name, 0) for node in nodes), default=0)
        if (wanted := asked.get(key) or 0) > most:
            return f"no node can run it: hydra.launcher.ray.remote.{key}={wanted}, at most {most:g}"
    return None


@dataclass
class Resumable:
    """What submitit calls: after its time limit or a preemption the job is queued again."""

    job: Job

    def __call__(self) -> None:
        again: Any = signal.getsignal(signal.SIGUSR2)

        def time_limit(number: int, frame: FrameType | None) -> None:
            try:
                again(number, frame)
            except Exception as error:  # not an Exception from here on: no unit is to catch it
                raise Terminated(str(error)) from error

        def terminated(number: int, frame: FrameType | None) -> None:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
            print("terminated; finished units are kept, run the sweep again", flush=True)
            sys.exit(143)

        signal.signal(signal.SIGUSR2, time_limit)
        signal.signal(signal.SIGTERM, terminated)
        try:
            self.job()
        except Terminated as error:
            raise TimeLimit(f"past its time limit; {error}") from None

    def checkpoint(self) -> Any:
        """What is queued again: the same, as finished units are up to date."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def _on_submitit(groups: Sequence[Group], folder: Path, cluster: str) -> Iterator[Ended]:
    try:
        executors = [_executor(launcher, folder, cluster) for _, launcher in groups]
    except RuntimeError as error:
        raise UsageError(f"hydra/launcher={cluster}: {one_line(error)}") from error
    # The local executor would start all at once.
    most = max((launcher.get("cpus_per_task") or 1 for _, launcher in groups), default=1)
    at_once = max(1, core_count() // most)
    waiting = [(number, job) for number, (jobs, _) in enumerate(groups) for job in jobs]
    running = dict[Any, tuple[int, Job]]()
    look, last = 0, LOOKS_BETWEEN_QUESTIONS - 1
    try:
        while waiting or running:
            count = len(waiting) if cluster == "slurm" else at_once - len(running)
            starting, waiting = waiting[:count], waiting[count:]
            for number, executor in enumerate(executors):
                if own := [job for of, job in starting if of == number]:
                    with _signals_wait():
                        submitted, refused = _submitted(executor, own)
                        running |= {one: (number, job) for one, job in submitted.items()}
                    yield from refused
            if running and cluster == "slurm" and look % LOOKS_BETWEEN_QUESTIONS == last:
                next(iter(running)).watcher.update()
                _cancel_what_never_starts(running)
            look += 1
            for one in [one for one in running if one.done()]:
                number, job = running.pop(one)
                yield Ended(job, _error_of(one, groups[number][1]), Path(one.paths.stdout))
            if running:
                time.sleep(SECONDS_BETWEEN_LOOKS)
    finally:
        _leave(running, cluster)


@contextmanager
def _signals_wait() -> Iterator[None]:
    """SIGTERM and Ctrl-C take effect at the end: no job is submitted and yet unknown to us."""
    came: list[int] = []
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {one: signal.signal(one, lambda number, _: came.append(number)) for one in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


def _submitted(executor: Any, jobs: Sequence[Job]) -> tuple[dict[Any, Job], list[Ended]]:
    """The jobs by their submissions, or all refused with the reason."""
    from submitit.core.utils import FailedJobError

    before = signal.getsignal(signal.SIGINT)
    if executor.cluster == "local":  # its processes inherit this: Ctrl-C is for the sweep to handle
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        submitted = executor.submit_array([Resumable(job) for job in jobs])
    except FailedJobError as error:
        return {}, [Ended(job, f"refused: {_last_line(error)}") for job in jobs]
    finally:
        signal.signal(signal.SIGINT, before)
    first = submitted[0].job_id
    say(f"{executor.cluster}: {counted(submitted)}, from {first}; logs: {executor.folder}")
    return dict(zip(submitted, jobs)), []


def _leave(running: Iterable[Any], cluster: str) -> None:
    """Of a sweep that is stopped: end its jobs on this machine, say how those on Slurm end."""
    if cluster == "slurm":
        if numbers := dict.fromkeys(one.job_id.partition("_")[0] for one in running):
            say(f"slurm: its jobs go on; to end them: scancel {' '.join(numbers)}")
        return
    end = time.monotonic() + SECONDS_TO_END
    while (left := [one for one in running if not one.done()]) and time.monotonic() < end:
        for submission in left:  # repeatedly: submitit ignores it until a job is unpickled
            with suppress(ProcessLookupError):
                os.kill(int(submission.job_id), signal.SIGTERM)
        time.sleep(0.5)
    if left:  # amid a long product, which no signal interrupts
        processes = " ".join(one.job_id for one in left)
        say(f"{cluster}: these processes still run, to their unit's end: {processes}")


def _executor(launcher: Settings, folder: Path, cluster: str) -> Any:
    """As Hydra's launcher makes it of the same settings."""
    import submitit

    general = (
        *("timeout_min", "cpus_per_task", "gpus_per_node", "tasks_per_node", "mem_gb", "nodes"),
        *("name", "stderr_to_stdout"),
    )
    own = {key: value for key, value in launcher.items() if value is not None}
    for key in ("_target_", "submitit_folder"):
        own.pop(key, None)
    first = {}
    if "max_num_timeout" in own:
        first["slurm_max_num_timeout"] = own.pop("max_num_timeout")
    executor = submitit.AutoExecutor(folder=folder, cluster=cluster, **first)
    executor.update_parameters(
        **{key if key in general else f"{cluster}_{key}": value for key, value in own.items()}
    )
    return executor


def _error_of(submission: Any, launcher: Settings) -> str | None:
    """Why a submitted job failed, in one line."""
    error = submission.exception()
    if error is None:
        return None
    if submission.paths.result_pickle.exists():
        return _last_line(error)
    state = str(submission.state).partition(" ")[0]
    told = {
        "CANCELLED": "cancelled",
        "TIMEOUT": f"past its time limit, timeout_min={launcher['timeout_min']}",
        "OUT_OF_MEMORY": "out of memory",
        "NODE_FAIL": "its node failed",
    }
    return told.get(state, "killed, perhaps out of memory")


def _last_line(error: Exception) -> str:
    """Of a traceback that submitit quotes: the exception, without its module."""
    trace = str(error).partition("You can check full logs")[0]
    said = [line.strip() for line in trace.splitlines() if line.strip(" -")]
    name, colon, message = said[-1].partition(": ")
    return message if colon and name.replace(".", "").isidentifier() else said[-1]


def _cancel_what_never_starts(running: Iterable[Any]) -> None:
    """Tell why jobs wait where that is not their turn; cancel those that would wait for ever."""
    ids = ",".join(submission.job_id for submission in running)
    asked = ["squeue", "--noheader", "--array", "--states=PENDING", "--format=%i|%r", "--jobs", ids]
    answer = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    for line in answer.splitlines():
        number, _, reason = line.strip().partition("|")
        if reason.startswith(NEVER):
            say(f"job {number}: Slurm says {reason}, it would wait for ever: cancelled")
            subprocess.run(["scancel", number], check=False)
        elif not reason.startswith(WAITING_ITS_TURN):
            say(f"job {number} waits: {reason}")
