"""Upper bounds on UC without a sort: which utilities can be the worst at all.

Throw the points into buckets by predicted utility and keep, per bucket, the sums of the positive
and of the negative residuals. Inside a bucket the running sum cannot rise above its value at the
bucket's start plus the positive part, nor fall below it minus the negative part, whatever the
order there. So the range of the running sum is bounded in one pass, and an audit computes exactly
only utilities whose bound exceeds the largest exact error so far.

Utilities that are indicators need no buckets: the sum of all positive residuals and that of all
negative ones already exclude most of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from metrics.kernels.compiled import compiled
from metrics.kernels.threads import over_row_blocks

BUCKETS = 2048
ROUNDING = 1e-9
"""Added to the bounds: sums in another order differ by less than this."""


@compiled
def _range_bound(rise: Any, fall: Any) -> float:
    """Bound the range of a running sum that rises and falls by these sums in each bucket."""
    total = highest = lowest = 0.0
    for bucket in range(rise.size):
        highest = max(highest, total + rise[bucket])
        lowest = min(lowest, total - fall[bucket])
        total += rise[bucket] - fall[bucket]
    return highest - lowest


@compiled
def _bounds_of_rows(
    predicted: Any, payoffs: Any, codes: Any, low: float, scale: float, bounds: Any
) -> None:
    n = predicted.shape[1]
    rise = np.empty(BUCKETS)
    fall = np.empty(BUCKETS)
    for row in range(predicted.shape[0]):
        rise[:] = 0.0
        fall[:] = 0.0
        for i in range(n):
            v = predicted[row, i]
            bucket = min(max(int((v - low) * scale), 0), BUCKETS - 1)
            residual = payoffs[row, codes[i]] - v
            rise[bucket] += max(residual, 0.0)
            fall[bucket] += max(-residual, 0.0)
        bounds[row] = _range_bound(rise, fall) / n


def calibration_error_bounds(
    predicted: Tensor, payoffs: Tensor, codes: Tensor, low: float, high: float
) -> Tensor:
    """Return an upper bound on UC of each of b utilities: float64 [b].

    Args:
        predicted: [b, n], predicted utilities.
        payoffs: [b, L], the realized utility of each outcome code.
        codes: int64 [n] in [0, L).
        low, high: where most predictions lie; sets the buckets, not the validity of the bounds.
    """
    if predicted.device.type != "cpu":
        return bounds_torch(predicted, payoffs, codes, low, high)
    bounds = np.empty(len(predicted))
    v, table, outcome = predicted.numpy(), payoffs.contiguous().numpy(), codes.numpy()
    given = low, BUCKETS / (high - low)

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        _bounds_of_rows(v[part], table[part], outcome, *given, bounds[part])

    over_row_blocks(work, len(v), v.size)
    return torch.from_numpy(bounds) + ROUNDING


def bounds_torch(
    predicted: Tensor, payoffs: Tensor, codes: Tensor, low: float, high: float
) -> Tensor:
    """`calibration_error_bounds` in plain torch: any device."""
    place = ((predicted - low) * (BUCKETS / (high - low))).clamp(0, BUCKETS - 1).to(torch.int64)
    residual = payoffs.to(predicted.dtype)[:, codes] - predicted
    empty = torch.zeros(len(predicted), BUCKETS, dtype=predicted.dtype, device=predicted.device)
    rise = empty.scatter_add(1, place, residual.clamp(min=0))
    fall = empty.scatter_add(1, place, (-residual).clamp(min=0))
    before = torch.nn.functional.pad((rise - fall).cumsum(dim=1)[:, :-1], (1, 0))
    highest = (before + rise).amax(dim=1).clamp(min=0)
    lowest = (before - fall).amin(dim=1).clamp(max=0)
    return (highest - lowest) / predicted.shape[1] + ROUNDING


def indicator_bounds(sums: Tensor, hits: Tensor, n: int) -> Tensor:
    """Return an upper bound on UC of utilities that are 1 for some outcomes and 0 else: [C].

    A sum over an interval is at most that of all positive residuals, and at least that of all
    negative ones. Here those are 1 - v at the hits and -v at the misses.

    Args:
        sums: float64 [2, C], of the predictions of all n points, and of those that miss.
        hits: int64 [C], the number of points that hit.
    """
    predicted, missed = sums
    return torch.maximum(hits - (predicted - missed), missed) / n + ROUNDING


def class_wise_sums(probabilities: Tensor, labels: Tensor) -> Tensor:
    """Return the `sums` of U_CWE, on any device: labels int64 [n] miss all classes but their own.

    Args:
        probabilities: float64 [n, C].
        labels: int64 [n].
    """
    of_label = probabilities.gather(1, labels[:, None])[:, 0]
    own = torch.zeros_like(probabilities[0]).index_add_(0, labels, of_label)
    predicted = _column_sums(probabilities)
    return torch.stack([predicted, predicted - own])


def top_k_sums(top_sums: Tensor, ranks: Tensor) -> Tensor:
    """Return the `sums` of U_topK, on any device: a rank misses all smaller K.

    Args:
        top_sums: float64 [n, C], sums of the K largest probabilities.
        ranks: int64 [n], the rank of each label, from 0.
    """
    classes = top_sums.shape[1]
    if top_sums.device.type == "cpu":
        sums = np.zeros(classes)
        _sum_of_misses(top_sums.numpy(), ranks.numpy(), sums)
        missed = torch.from_numpy(sums)
    else:
        outside = ranks[:, None] > torch.arange(classes, device=ranks.device)
        missed = (top_sums * outside).sum(dim=0)
    return torch.stack([_column_sums(top_sums), missed])


@compiled
def _sum_of_misses(top_sums: Any, ranks: Any, sums: Any) -> None:
    for i in range(ranks.size):
        for k in range(ranks[i]):
            sums[k] += top_sums[i, k]


def _column_sums(matrix: Tensor) -> Tensor:
    """As a product, which runs at the speed of memory; torch's sum takes twice as long."""
    return torch.ones(len(matrix), dtype=matrix.dtype, device=matrix.device) @ matrix
