"""Sums of residuals in bins of equal width, from one pass over the probabilities.

Row by row, each probability adds to a bin of its own column. No column is copied, and no
temporary matrix is made.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array
from .compiled import compiled
from .threads import over_blocks, row_blocks

TOGETHER = 1 << 22
"""Probabilities of a block; each block has its own sums."""


def sums_in_bins(predicted: Array, occurred: Array, weights: Array | None, bins: int) -> Array:
    """Return the sums of u - v of m events by bin of v: float64 [m, bins].

    Bin k is [k/bins, (k+1)/bins); the last one is closed, and values outside [0, 1] are in the
    nearest bin.

    Args:
        predicted: float64 [n, m], the probabilities v of the events.
        occurred: int64 [n], which event occurred at each point; -1 for none of them.
        weights: float64 [n], of the points, or None.
    """
    of_points = np.ones(len(predicted)) if weights is None else weights

    def work(start: int, stop: int) -> Array:
        # The kernel is compiled for one kind of array: row by row in memory, and writable.
        rows = np.ascontiguousarray(predicted[start:stop])
        if not rows.flags.writeable:
            rows = rows.copy()
        sums = np.zeros((predicted.shape[1], bins))
        _add_residuals(rows, occurred[start:stop], of_points[start:stop], sums)
        return sums

    blocks = row_blocks(len(predicted), predicted.shape[1], TOGETHER)
    return np.sum(over_blocks(work, blocks), axis=0)


@compiled
def _add_residuals(rows: Any, occurred: Any, weights: Any, sums: Any) -> None:
    bins = sums.shape[1]
    for i in range(len(rows)):
        row, weight = rows[i], weights[i]
        for column in range(row.size):
            value = row[column]
            sums[column, min(max(np.int64(value * bins), 0), bins - 1)] -= weight * value
        # Without a branch: whether the event occurred is no pattern that a processor can guess.
        event = max(occurred[i], 0)
        gain = weight if occurred[i] >= 0 else 0.0
        sums[event, min(max(np.int64(row[event] * bins), 0), bins - 1)] += gain
