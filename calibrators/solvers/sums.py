"""Sums over blocks of rows, the same bits for any number of threads."""

from collections.abc import Callable, Sequence
from typing import Any

from utility_calibration.metrics.kernels.threads import Blocks, over_blocks

AT_ONCE = 8  # blocks whose results are in memory together


def summed(work: Callable[[int, int], Sequence[Any]], blocks: Blocks) -> list[Any]:
    """Return the sum over all blocks of each number or array that `work(start, stop)` returns.

    Threads share the blocks. The sums are made in the order of the blocks, so they do not depend on
    the number of threads.
    """
    totals: list[Any] = []
    for first in range(0, len(blocks), AT_ONCE):
        for parts in over_blocks(work, blocks[first : first + AT_ONCE]):
            if totals:
                totals = [total + part for total, part in zip(totals, parts, strict=True)]
            else:
                totals = list(parts)
    return totals
