"""The smallest and the largest logit of each row, from one pass over memory."""

from typing import Any

import numpy as np

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.kernels.compiled import compiled
from utility_calibration.metrics.kernels.threads import over_blocks, row_blocks


def row_extremes(logits: Array) -> tuple[Array, Array]:
    """Return the smallest and the largest logit of each row of `logits` [n, C]: float64 [n] each.

    At 7,000 x 10 it takes .02 ms and NumPy .6, and every fit needs them four times.
    """
    low, top = np.empty((2, len(logits)))

    def of_rows(start: int, stop: int) -> None:
        rows = np.ascontiguousarray(logits[start:stop])
        _write_extremes(rows, low[start:stop], top[start:stop])

    over_blocks(of_rows, row_blocks(*logits.shape))
    return low, top


@compiled
def _write_extremes(logits: Any, low: Any, top: Any) -> None:
    for i in range(logits.shape[0]):
        row = logits[i]
        smallest = largest = row[0]
        for j in range(row.size):
            smallest = min(smallest, row[j])
            largest = max(largest, row[j])
        low[i], top[i] = smallest, largest
