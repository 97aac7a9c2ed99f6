"""Threads over blocks of rows; a library of matrix products (BLAS) works on one thread.

OpenBLAS adds in another order on two threads than on one. So each block is one product on one
thread, and the blocks are shared out to threads of our own. They depend on the shape alone: the
bits are the same for any number of threads.

The number of threads is `set_threads`, else OMP_NUM_THREADS, else the cores that this process may
use.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock, local
from typing import Any, TypeVar

import numpy as np

from ..arrays import Array

BLOCK_ELEMENTS = 1 << 18
"""Elements of a block: 2 MiB of float64, which a core's own cache holds."""
PRODUCT_ELEMENTS = 1 << 20
"""Elements of the larger factor, or of the result, in a block of a matrix product."""

LITTLE = 1 << 20
"""Logits up to which one thread is faster. Two wait for each other: on a busy machine logit-shift
patching of 7,000 points of a hundred classes took 34 core seconds in place of 9."""

THREADS = [int(os.environ.get("OMP_NUM_THREADS") or 0) or len(os.sched_getaffinity(0))]

Blocks = Sequence[tuple[int, int]]
Result = TypeVar("Result")


def get_threads() -> int:
    """Return the number of threads that this thread may share its blocks with, itself included."""
    return 1 if getattr(_here, "is_alone", False) else THREADS[0]


def set_threads(count: int) -> None:
    """Let this process work on so many threads, and BLAS on one: for a process of our own."""
    THREADS[0] = count
    for library in _blas_libraries("scipy.linalg" in sys.modules):
        library.set_num_threads(1)


def row_blocks(rows: int, columns: int, elements: int = BLOCK_ELEMENTS) -> Blocks:
    """Split `rows` rows of `columns` entries into (start, stop) blocks of at most `elements`.

    The split depends on the shape alone, so sums over blocks are the same for any thread count.
    """
    size = max(1, elements // columns)
    return [(start, min(rows, start + size)) for start in range(0, rows, size)]


def over_blocks(work: Callable[[int, int], Result], blocks: Blocks) -> list[Result]:
    """Return `work(start, stop)` of every block, in order; blocks are worked on by all threads."""
    threads = min(get_threads(), len(blocks))
    if threads <= 1:
        return [work(start, stop) for start, stop in blocks]
    with ThreadPoolExecutor(threads, initializer=_stay_alone) as pool:
        return list(pool.map(lambda block: work(*block), blocks))


def _stay_alone() -> None:
    """Let a thread that works on a block do all of it: blocks inside are not shared out again."""
    _here.is_alone = True


def product(left: Array, right: Array) -> Array:
    """Return left [n, k] @ right [k, m], the same bits for any number of threads: float64 [n, m].

    The longer side of the result is split into blocks.
    """
    result = np.empty((len(left), right.shape[1]))
    rows, columns = result.shape

    def of_rows(start: int, stop: int) -> None:
        np.matmul(left[start:stop], right, out=result[start:stop])

    def of_columns(start: int, stop: int) -> None:
        np.matmul(left, right[:, start:stop], out=result[:, start:stop])

    with blas_on_one_thread():
        if rows >= columns:
            over_blocks(of_rows, row_blocks(rows, max(right.shape), PRODUCT_ELEMENTS))
        else:
            over_blocks(of_columns, row_blocks(columns, max(left.shape), PRODUCT_ELEMENTS))
    return result


def by_row(matrix: Array) -> Array:
    """Return a matrix [b, n] row by row in memory, as kernels read it.

    Columns of a matrix [n, b] are copied 512 points at a time: in one go each number would be read
    from another page, which takes five times as long.
    """
    if matrix.flags.c_contiguous:
        return matrix
    rows = np.empty(matrix.shape)
    for start in range(0, matrix.shape[1], 512):
        rows[:, start : start + 512] = matrix[:, start : start + 512]
    return rows


# ---- One thread ----------------------------------------------------------------------------------


@contextmanager
def one_thread(wanted: bool = True) -> Iterator[None]:
    """Let this thread and BLAS work alone inside, if `wanted`.

    Threads that share small matrices mostly wait for each other. A Dirichlet fit to 7,000 points of
    a hundred classes took 1.8 core seconds with one thread and 7.9 with two, on a busy machine; it
    takes 2.8 with two if its solver works on one.
    """
    if not wanted:
        yield
        return
    before = getattr(_here, "is_alone", False)
    _here.is_alone = True
    try:
        with blas_on_one_thread():
            yield
    finally:
        _here.is_alone = before


_here = local()
"""Has `is_alone` in the threads that are inside `one_thread`; others go on as before."""


@contextmanager
def blas_on_one_thread() -> Iterator[None]:
    """Let BLAS work on one thread inside; the number before comes back when all have left.

    The setting is one of the whole process. A solver of small steps sets it once around all of
    them, because to come in costs 13 microseconds, and 2 where somebody is inside already.
    """
    with _lock:
        if not _inside:
            for library in _blas_libraries("scipy.linalg" in sys.modules):
                _before.append((library, library.get_num_threads()))
                library.set_num_threads(1)
        _inside.append(None)
    try:
        yield
    finally:
        with _lock:
            _inside.pop()
            while not _inside and _before:
                library, threads = _before.pop()
                library.set_num_threads(threads)


_lock = Lock()
_inside: list[None] = []
"""One entry for each `blas_on_one_thread` that has begun and not ended, in any thread."""
_before: list[tuple[Any, int]] = []
"""The libraries, and the numbers of their threads before the first of these."""


@cache
def _blas_libraries(with_scipys: bool) -> list[Any]:
    """Return NumPy's library of matrix products; SciPy has its own once `scipy.linalg` is there."""
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)
