"""Worker processes of a program: forks of it, which share all that it has imported.

They start when a step first has work for them, and serve every later step. A fork works on one
thread, because threads of OpenMP do not survive it. Where that is not enough, and on other systems
than Linux, each worker starts from nothing.
"""

from __future__ import annotations

import os
import platform
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:  # a run with nothing to do needs none of these
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing.connection import Connection

SHARED = ("scoring.fitted", "scoring.held_out")  # of pipeline/: what makes fits and scores
PACKAGE = __package__.rpartition(".")[0]
KILLED = (
    "a worker process ended, perhaps killed for want of memory, or a script of your own lacks "
    "`if __name__ == '__main__'`; run it again with jobs=1"
)
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # read as libraries load

Result = TypeVar("Result")


class UnitsFailed(RuntimeError):
    """Some units of a stage failed; the others are done and stay. One line."""


class Workers:
    """The workers of a program, none at first; all end with the stack."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack, self.count, self.are_forks = stack, 0, False
        self.pool: ProcessPoolExecutor | None = None

    def results(
        self,
        title: str,
        calls: Sequence[Callable[[], Result]],
        jobs: int,
        threads: int = 1,
    ) -> Iterator[Result]:
        """What the calls return, in the order in which they end.

        Runs `jobs` calls at a time. A single one needs no worker: this process makes it.
        """
        if jobs <= 1:
            return (call() for call in calls)
        self._start(jobs, threads)
        return self._in_turn(title, calls, jobs)

    def _start(self, count: int, threads: int) -> None:
        """Start `count` workers, unless enough are there already."""
        if self.pool and count <= self.count:
            return
        self.stack.close()
        self.count, self.are_forks = count, can_fork(threads)
        self.pool = self.stack.enter_context(_pool(count, threads, self.are_forks))

    def _in_turn(
        self, title: str, calls: Sequence[Callable[[], Result]], jobs: int
    ) -> Iterator[Result]:
        from concurrent.futures import FIRST_COMPLETED, wait
        from concurrent.futures.process import BrokenProcessPool

        assert self.pool is not None
        waiting = iter(calls)
        try:
            running = {self.pool.submit(call) for call in islice(waiting, jobs)}
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                running |= {self.pool.submit(call) for call in islice(waiting, len(done))}
                yield from (future.result() for future in done)
        except BrokenProcessPool as error:
            self.pool = None  # a later step starts others
            raise UnitsFailed(f"{title}: {KILLED}") from error


_of_program: Workers | None = None


@contextmanager
def workers() -> Iterator[Workers]:
    """The program's workers, the same ones in blocks within blocks.

    They end when the outermost block ends, and at once if it fails.
    """
    global _of_program
    if _of_program is not None:
        yield _of_program
        return
    with ExitStack() as stack:
        _of_program = Workers(stack)
        try:
            yield _of_program
        finally:
            _of_program = None


def can_fork(threads: int = 1) -> bool:
    """Whether workers with so many threads may be forks."""
    has_one_thread = os.environ.get(THREADS[0], str(threads)) == "1"
    return platform.system() == "Linux" and has_one_thread


@contextmanager
def _pool(count: int, threads: int, are_forks: bool) -> Iterator[ProcessPoolExecutor]:
    """Start `count` workers, which end with this process, however it ends.

    Each has `threads` threads, and NumPy's and SciPy's libraries have one. The environment's
    OMP_NUM_THREADS is stronger than both.
    """
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    context = get_context("fork" if are_forks else "spawn")
    if are_forks:
        for name in SHARED:
            import_module(f"{PACKAGE}.{name}")
    ended, ours = context.Pipe(duplex=False)
    share = None if THREADS[0] in os.environ else threads
    begin = (_begin_fork, (ended, ours)) if are_forks else (_begin, (ended, share))
    pool = ProcessPoolExecutor(count, context, *begin)
    try:
        with _starting():
            for _ in range(count):
                pool.submit(os.getpid)
        yield pool
        pool.shutdown()
    finally:
        ours.close()
        pool.shutdown(cancel_futures=True)
        ended.close()


@contextmanager
def _starting() -> Iterator[None]:
    """Within it processes start: with one thread for matrices, and deaf to Ctrl-C from the first.

    Ctrl-C reaches every process of a terminal. This one answers it, and SIGTERM, when the block has
    ended: a worker that is half started would print a traceback.
    """
    added = [name for name in THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    can_block = hasattr(signal, "pthread_sigmask")  # not on Windows
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if can_block else set()
    late: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()  # the only one to set handlers
    answers = {
        number: signal.signal(number, lambda number, _: late.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
        if is_main
    }
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]
        if can_block:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, answer in answers.items():
            signal.signal(number, answer)
        if late:
            signal.raise_signal(late[0])


def _begin_fork(ended: Connection, ours: Connection) -> None:
    """Begin a worker that is a fork.

    It closes its copy of the program's end of the pipe. Else the pipe would stay open when the
    program ends, and nobody would notice.
    """
    from threadpoolctl import threadpool_limits

    ours.close()
    threadpool_limits(1)  # NumPy's and SciPy's libraries were loaded before the fork
    _begin(ended, 1)


def _begin(ended: Connection, threads: int | None) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if threads is not None:
        from utility_calibration.metrics.kernels.threads import set_threads

        set_threads(threads)
    threading.Thread(target=_end_with_program, args=(ended,), daemon=True).start()


def _end_with_program(ended: Connection) -> None:
    """Wait until the other end of the pipe closes, as it does even where the program is killed."""
    ended.poll(None)
    os._exit(1)
