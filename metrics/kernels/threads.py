"""Blocks of rows on threads, for kernels that work without the interpreter's lock.

The number of threads is that of NumPy's and numba's: `set_threads`, else OMP_NUM_THREADS, else the
cores that this process may use.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array

BLOCK_ELEMENTS = 1 << 18
"""Elements of a block: 2 MiB of float64, which a core's own cache holds."""

LITTLE = 1 << 20
"""Logits up to which one thread is faster. Two wait for each other: on a busy machine logit-shift
patching of 7,000 points of a hundred classes took 34 core seconds in place of 9."""

THREADS = [int(os.environ.get("OMP_NUM_THREADS") or 0) or len(os.sched_getaffinity(0))]

Blocks = Sequence[tuple[int, int]]
Result = TypeVar("Result")


def row_blocks(rows: int, columns: int, elements: int = BLOCK_ELEMENTS) -> Blocks:
    """Split `rows` rows of `columns` entries into (start, stop) blocks of at most `elements`.

    The split depends on the shape alone, so sums over blocks are the same for any thread count.
    """
    size = max(1, elements // columns)
    return [(start, min(rows, start + size)) for start in range(0, rows, size)]


def over_blocks(work: Callable[[int, int], Result], blocks: Blocks) -> list[Result]:
    """Return `work(start, stop)` of every block, in order; blocks are worked on by all threads."""
    threads = min(THREADS[0], len(blocks))
    if threads <= 1:
        return [work(start, stop) for start, stop in blocks]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda block: work(*block), blocks))


def by_row(matrix: Array) -> NDArray[Any]:
    """Return a matrix [b, n] on the CPU row by row in memory, as kernels read it.

    Columns of a matrix [n, b] are copied 512 points at a time: in one go each number would be read
    from another page, which takes five times as long.
    """
    values = matrix
    if values.flags.c_contiguous:
        return values
    rows = np.empty(values.shape)
    for start in range(0, values.shape[1], 512):
        rows[:, start : start + 512] = values[:, start : start + 512]
    return rows


@contextmanager
def one_thread(wanted: bool = True) -> Iterator[None]:
    """Let torch work on one thread inside, if `wanted`.

    Threads that share small matrices mostly wait for each other. A Dirichlet fit to 7,000 points of
    a hundred classes took 1.8 core seconds with one thread and 7.9 with two, on a busy machine; it
    takes 2.8 with two if its solver works on one.
    """
    if not wanted or THREADS[0] == 1:
        yield
        return
    before, THREADS[0] = THREADS[0], 1
    try:
        with _libraries().limit(limits=1):
            yield
    finally:
        THREADS[0] = before


def get_threads() -> int:
    return THREADS[0]


def set_threads(count: int) -> None:
    """Let kernels and matrix products work on so many threads."""
    THREADS[0] = count
    for library in _libraries().lib_controllers:
        library.set_num_threads(count)


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
