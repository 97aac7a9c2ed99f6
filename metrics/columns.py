"""UC of utilities whose predictions are columns of a matrix: classes, top-K sums, products.

The columns are read a few at a time into memory of their own, so no transposed matrix is needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from metrics.bucket_range import range_by_buckets
from metrics.compiled import compiled
from metrics.prefix_range import over_row_blocks

TILE = 8
"""Columns read together: neighbours share the cache lines of 64 bytes."""


@compiled
def _errors_of_columns(
    matrix: Any, columns: Any, payoffs: Any, codes: Any, worth: float, errors: Any
) -> None:
    n = matrix.shape[0]
    v = np.empty((TILE, n))
    scratch = np.empty((3, n))
    places = np.empty((4, n), np.int32)
    none = np.empty(0, np.int64)
    nothing = np.empty(0)
    for first in range(0, columns.size, TILE):
        width = min(TILE, columns.size - first)
        for i in range(n):
            for k in range(width):
                v[k, i] = matrix[i, columns[first + k]]
        for k in range(width):
            table = payoffs[first + k]
            low, high = range_by_buckets(
                v[k], table, codes, none, worth * n, scratch, places, nothing
            )
            errors[first + k] = (high - low) / n


def errors_of_columns(
    matrix: Tensor, columns: Tensor, payoffs: Tensor, codes: Tensor, worth: float = -1.0
) -> Tensor:
    """Return UC of the utilities in k columns, on the CPU: float64 [k].

    Args:
        matrix: float64 [n, m], row-major: predicted utilities, a column per utility.
        columns: int64 [k].
        payoffs: [k, L], the realized utility of each outcome code.
        codes: int64 [n] in [0, L).
        worth: of utilities whose UC is at most this, any smaller number may be returned.
    """
    v, table, outcome = matrix.numpy(), payoffs.contiguous().numpy(), codes.numpy()
    chosen = columns.numpy()
    errors = np.empty(len(chosen))

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        _errors_of_columns(v, chosen[part], table[part], outcome, worth, errors[part])

    over_row_blocks(work, len(chosen), v.shape[0] * len(chosen))
    return torch.from_numpy(errors)
