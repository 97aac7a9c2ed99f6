"""The range of a sorted running sum, read only in wide gaps of the predictions.

As `prefix_range` for one draw of the labels, but neighbours in the order of v that lie no further
apart than a tolerance count as tied. So it moves by no more than rounding where predictions do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from metrics.kernels.buckets import range_by_buckets
from metrics.kernels.columns import TILE, ranges_of_columns, short_codes
from metrics.kernels.compiled import compiled
from metrics.kernels.threads import over_row_blocks

NO_EDGES = np.empty(0, np.int64)


def gap_range(predicted: Tensor, payoffs: Tensor, codes: Tensor, tolerance: float) -> Tensor:
    """Return max - min of the running sum of payoff - prediction, 0 included: float64 [b].

    Args:
        predicted: float64 [b, n], the predicted utilities v of b utilities at n points.
        payoffs: float64 [b, L], the realized utility of each outcome code.
        codes: integers [n] in [0, L), the outcome of each point.
        tolerance: > 0; the sum counts where the next v is further away than this, and at the end.
    """
    if predicted.device.type != "cpu":
        return gap_range_torch(predicted, payoffs, codes, tolerance)
    v, table = predicted.contiguous().numpy(), payoffs.contiguous().numpy()
    outcome, ranges = short_codes(codes, table.shape[1]), np.empty(len(v))

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        _ranges(v[part], table[part], outcome, NO_EDGES, tolerance, ranges[part])

    over_row_blocks(work, len(v), v.size)
    return torch.from_numpy(ranges)


def gap_range_of_columns(
    matrix: Tensor, columns: Tensor, payoffs: Tensor, codes: Tensor, tolerance: float
) -> Tensor:
    """`gap_range` of the utilities whose predictions are `columns`, int64 [b], of `matrix` [n, m].

    They are read in place, a few at a time.
    """
    if matrix.device.type != "cpu":
        return gap_range_torch(matrix[:, columns].T, payoffs, codes, tolerance)
    v, table, chosen = matrix.numpy(), payoffs.contiguous().numpy(), columns.numpy()
    outcome, count = short_codes(codes, table.shape[1]), len(chosen)
    low, high, at_edges = np.empty(count), np.empty(count), np.empty((count, 0))

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        found = low[part], high[part], at_edges[part]
        ranges_of_columns(v, chosen[part], table[part], outcome, NO_EDGES, *found, tolerance)

    over_row_blocks(work, count, len(v) * count, TILE)
    return torch.from_numpy(high - low)


def gap_range_torch(predicted: Tensor, payoffs: Tensor, codes: Tensor, tolerance: float) -> Tensor:
    """`gap_range` in plain torch: any device."""
    v, order = torch.sort(predicted, dim=1, descending=True, stable=True)
    sums = (payoffs.gather(1, codes.to(torch.int64)[order]) - v).cumsum(dim=1)
    ends = torch.nn.functional.pad(v[:, :-1] - v[:, 1:] > tolerance, (0, 1), value=True)
    counted = sums.where(ends, torch.zeros_like(sums))  # 0 is the empty prefix: always allowed
    return counted.amax(dim=1).clamp(min=0) - counted.amin(dim=1).clamp(max=0)


@compiled
def _ranges(v: Any, payoffs: Any, codes: Any, edges: Any, tolerance: float, ranges: Any) -> None:
    rows, n = v.shape
    scratch, places = np.empty((3, n)), np.empty((4, n), np.int32)
    at_edges = np.empty(0)
    for row in range(rows):
        low, high = range_by_buckets(
            v[row], payoffs[row], codes, edges, scratch, places, at_edges, tolerance
        )
        ranges[row] = high - low
