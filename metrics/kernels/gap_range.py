"""The range of a sorted running sum, read only in wide gaps of the predictions.

As `prefix_range` for one draw of the labels, but neighbours in the order of v that lie no further
apart than a tolerance count as tied. So it moves by no more than rounding where predictions do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from metrics.kernels.columns import short_codes
from metrics.kernels.compiled import compiled
from metrics.kernels.row_sort import descending_order
from metrics.kernels.threads import over_row_blocks

GRID = 2.0**32
"""Predictions are put in order as multiples of 1 / GRID, far below any tolerance of use: atoms that
rounding has torn apart are then equal, which is what the sort is fast at."""


def gap_range(predicted: Tensor, payoffs: Tensor, codes: Tensor, tolerance: float) -> Tensor:
    """Return max - min of the running sum of payoff - prediction, 0 included: float64 [b].

    Args:
        predicted: float64 [b, n], the predicted utilities v of b utilities at n points.
        payoffs: float64 [b, L], the realized utility of each outcome code.
        codes: integers [n] in [0, L), the outcome of each point.
        tolerance: the sum counts where the next v is further away than this, and at the end.
    """
    if predicted.device.type != "cpu":
        return gap_range_torch(predicted, payoffs, codes, tolerance)
    predicted = predicted.contiguous()
    order = descending_order((predicted * GRID).round()).numpy()
    v, table = predicted.numpy(), payoffs.contiguous().numpy()
    outcome, ranges = short_codes(codes, table.shape[1]), np.empty(len(v))

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        _ranges(v[part], order[part], table[part], outcome, tolerance, ranges[part])

    over_row_blocks(work, len(v), v.size)
    return torch.from_numpy(ranges)


def gap_range_torch(predicted: Tensor, payoffs: Tensor, codes: Tensor, tolerance: float) -> Tensor:
    """`gap_range` in plain torch: any device."""
    v, order = torch.sort(predicted, dim=1, descending=True, stable=True)
    sums = (payoffs.gather(1, codes.to(torch.int64)[order]) - v).cumsum(dim=1)
    ends = torch.nn.functional.pad(v[:, :-1] - v[:, 1:] > tolerance, (0, 1), value=True)
    counted = sums.where(ends, torch.zeros_like(sums))  # 0 is the empty prefix: always allowed
    return counted.amax(dim=1).clamp(min=0) - counted.amin(dim=1).clamp(max=0)


@compiled
def _ranges(v: Any, order: Any, payoffs: Any, codes: Any, tolerance: float, ranges: Any) -> None:
    """From the largest v downwards, which has the range of the sum upwards."""
    n = v.shape[1]
    for row in range(v.shape[0]):
        total = low = high = 0.0
        following = v[row, order[row, 0]]
        for j in range(n):
            i, value = order[row, j], following
            following = v[row, order[row, j + 1]] if j + 1 < n else -np.inf
            total += payoffs[row, codes[i]] - value
            if value - following > tolerance:
                low = min(low, total)
                high = max(high, total)
        ranges[row] = high - low
