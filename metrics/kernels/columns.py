"""Ranges of running sums of utilities whose predictions are columns of a matrix.

Classes, top-K sums and products stand side by side in the rows of a matrix. The columns are read a
few at a time into memory of their own, so no transposed matrix is needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrics.kernels.buckets import range_by_buckets
from metrics.kernels.compiled import compiled

TILE = 8
"""Columns read together: neighbours share the cache lines of 64 bytes."""
ROWS = 64
"""Rows of a tile that are read column by column: their cache lines are fetched all at once."""


@compiled
def ranges_of_columns(
    matrix: Any,
    columns: Any,
    payoffs: Any,
    codes: Any,
    edges: Any,
    low: Any,
    high: Any,
    at_edges: Any,
    tolerance: float,
) -> None:
    """`range_by_buckets` of k columns of `matrix` [n, m]: low, high [k] and at_edges [k, edges]."""
    n = matrix.shape[0]
    v = np.empty((TILE, n))
    scratch = np.empty((3, n))
    places = np.empty((4, n), np.int32)
    for first in range(0, columns.size, TILE):
        width = min(TILE, columns.size - first)
        for start in range(0, n, ROWS):
            stop = min(n, start + ROWS)
            for k in range(width):
                column = columns[first + k]
                for i in range(start, stop):
                    v[k, i] = matrix[i, column]
        for k in range(first, first + width):
            low[k], high[k] = range_by_buckets(
                v[k - first], payoffs[k], codes, edges, scratch, places, at_edges[k], tolerance
            )


def short_codes(codes: Tensor, outcomes: int) -> NDArray[Any]:
    """Return `codes` as unsigned integers of 16 bits, of 32 where they do not suffice.

    Unsigned: no index to wrap around. Short: less to read. And kernels are compiled for one type.
    """
    return codes.to(torch.uint16 if outcomes <= 1 << 16 else torch.uint32).contiguous().numpy()
