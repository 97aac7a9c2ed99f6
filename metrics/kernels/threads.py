"""Blocks of rows on threads, for kernels that work without the interpreter's lock.

The number of threads is torch's (`torch.set_num_threads`). Large products on the CPU (`product`)
take NumPy's, which `OPENBLAS_NUM_THREADS` or threadpoolctl set.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

INLINE_ELEMENTS = 40_000
"""Fewer elements than this are not worth handing to threads."""
BLOCK_ELEMENTS = 1 << 18
"""Elements of a block: 2 MiB of float64, which a core's own cache holds."""

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
    threads = min(torch.get_num_threads(), len(blocks))
    if threads <= 1:
        return [work(start, stop) for start, stop in blocks]
    results: dict[int, Result] = {}
    pending = list(range(len(blocks)))[::-1]

    def work_on() -> None:
        while pending:
            try:
                block = pending.pop()
            except IndexError:  # another thread took the last one
                return
            results[block] = work(*blocks[block])

    # The caller works too: waking a thread takes longer than many a block.
    with ThreadPoolExecutor(threads - 1) as pool:
        helpers = [pool.submit(work_on) for _ in range(threads - 1)]
        work_on()
        for helper in helpers:
            helper.result()
    return [results[block] for block in range(len(blocks))]


def over_row_blocks(
    work: Callable[[int, int], None], rows: int, elements: int, unit: int = 1
) -> None:
    """Call `work(start, stop)` over blocks of rows, on threads if `elements` is worth it.

    For work on every row by itself. Four blocks per thread even out rows of unequal cost; a block
    has a multiple of `unit` rows.
    """
    threads = torch.get_num_threads()
    if threads == 1 or rows == 1 or elements < INLINE_ELEMENTS:
        work(0, rows)
        return
    size = max(1, -(-rows // (4 * threads * unit))) * unit
    over_blocks(work, [(start, min(rows, start + size)) for start in range(0, rows, size)])
