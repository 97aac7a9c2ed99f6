"""What checks of probabilities and the top class need of every row, from one pass over memory.

A matrix of 35,000 x 1,000 probabilities does not fit into a cache, so each pass over it waits for
the memory. Smallest and largest value, sums and top classes took four passes and 82 milliseconds;
together they take 49.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array
from .buckets import sum_and_extremes
from .compiled import compiled
from .threads import over_blocks, row_blocks

TOGETHER = 1 << 21
"""Probabilities of a block. On fewer than two blocks, a pool of threads would take longer than the
work: 7,000 points of a hundred classes took .5 milliseconds on two threads and .3 on one."""


class RowFacts(NamedTuple):
    """What is known of a matrix [n, C].

    Attributes:
        smallest, largest: the extremes of all values; of no use with a NaN, which a sum shows.
        sums: [n], of each row.
        top: int64 [n], the first column with the largest value of each row.
    """

    smallest: float
    largest: float
    sums: Array
    top: Array


def facts_of_rows(matrix: Array) -> RowFacts:
    """Return what is known of the rows of a float64 matrix [n, C]."""
    sums, top = np.empty(len(matrix)), np.empty(len(matrix), np.int64)

    def work(start: int, stop: int) -> Array:
        # The kernel is compiled for one kind of array: row by row in memory, and writable.
        rows = np.ascontiguousarray(matrix[start:stop])
        if not rows.flags.writeable:
            rows = rows.copy()
        extremes, of_row = np.empty((2, 2))
        _find_facts(
            rows,
            rows.view(np.int64),
            of_row,
            of_row.view(np.int64),
            extremes,
            sums[start:stop],
            top[start:stop],
        )
        return extremes

    extremes = over_blocks(work, row_blocks(len(matrix), matrix.shape[1], TOGETHER))
    smallest, largest = np.stack(extremes).T
    return RowFacts(float(smallest.min()), float(largest.max()), sums, top)


@compiled
def _find_facts(
    rows: Any, bits: Any, of_row: Any, bits_of_row: Any, extremes: Any, sums: Any, top: Any
) -> None:
    """Write sums and top classes of `rows`, and the extremes of all; `of_row` is memory."""
    extremes[0], extremes[1] = np.inf, -np.inf
    for i in range(len(rows)):
        row = rows[i]
        sums[i] = sum_and_extremes(row, bits[i], bits_of_row)
        extremes[0] = min(extremes[0], of_row[0])
        extremes[1] = max(extremes[1], of_row[1])
        column = 0
        while column < row.size - 1 and row[column] != of_row[1]:
            column += 1
        top[i] = column
