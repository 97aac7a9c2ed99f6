"""Worker processes that start with the libraries of fits and scores already imported.

On Linux a server process imports them once, and each worker is a fork of it. Other systems, and a
TMPDIR with a very long path, start each worker from nothing.
"""

import os
import platform
import signal
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection

IMPORTED_ONCE = ("scoring.fitted", "scoring.held_out")  # of pipeline/: what makes fits and scores
PACKAGE = __package__.rpartition(".")[0]
LONGEST = 70  # bytes of TMPDIR; the server's socket lies in it, and Linux allows 107 for its path
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")  # read as libraries load


@contextmanager
def worker_pool(jobs: int, threads: int) -> Iterator[ProcessPoolExecutor]:
    """Start `jobs` workers, each with `threads` threads of torch, as soon as they get work.

    NumPy and SciPy get one thread. The environment's OMP_NUM_THREADS is stronger than both. The
    workers end with this process, however it ends, and at once if the block ends by an exception.
    """
    has_server = platform.system() == "Linux" and len(os.fsencode(tempfile.gettempdir())) <= LONGEST
    context = get_context("forkserver" if has_server else "spawn")
    if has_server:
        context.set_forkserver_preload([f"{PACKAGE}.{name}" for name in IMPORTED_ONCE])
    ended, ours = context.Pipe(duplex=False)
    share = None if THREADS[0] in os.environ else threads
    pool = ProcessPoolExecutor(jobs, context, _begin, (ended, share))
    try:
        yield pool
        pool.shutdown()
    finally:
        ours.close()
        pool.shutdown(cancel_futures=True)
        ended.close()


@contextmanager
def starting() -> Iterator[None]:
    """Within it processes start: with one thread for matrices, and deaf to Ctrl-C from the first.

    Ctrl-C reaches every process of a terminal. This one answers it, and SIGTERM, when the block has
    ended: a worker that is half started would look for semaphores that are gone.
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


def _begin(ended: Connection, threads: int | None) -> None:
    import torch  # in this process, not in the one that waits

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if threads is not None:
        torch.set_num_threads(threads)
    threading.Thread(target=_end_with_program, args=(ended,), daemon=True).start()


def _end_with_program(ended: Connection) -> None:
    """Wait until the other end of the pipe closes, as it does even where the program is killed."""
    ended.poll(None)
    os._exit(1)
