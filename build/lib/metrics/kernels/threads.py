"""Threads for compiled kernels, which work without the interpreter's lock."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch

INLINE_ELEMENTS = 40_000
"""Fewer elements than this are not worth handing to threads."""


def over_row_blocks(
    work: Callable[[int, int], None], rows: int, elements: int, unit: int = 1
) -> None:
    """Call `work(start, stop)` over blocks of rows, on threads if `elements` is worth it.

    Four blocks per thread even out rows of unequal cost; a block has a multiple of `unit` rows. The
    thread count is torch's, so one setting governs the products and the kernels.
    """
    threads = torch.get_num_threads()
    if threads == 1 or rows == 1 or elements < INLINE_ELEMENTS:
        work(0, rows)
        return
    size = max(1, -(-rows // (4 * threads * unit))) * unit
    pending = list(range(0, rows, size))[::-1]

    def work_on() -> None:
        while pending:
            try:
                start = pending.pop()
            except IndexError:  # another thread took the last one
                return
            work(start, min(rows, start + size))

    # The caller works too: waking a thread takes longer than many a block.
    with ThreadPoolExecutor(threads - 1) as pool:
        helpers = [pool.submit(work_on) for _ in range(threads - 1)]
        work_on()
        for helper in helpers:
            helper.result()
