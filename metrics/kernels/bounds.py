"""Upper bounds on UC of indicators, computed without a sort.

The bounds exclude most of the 2C utilities of U_CWE and U_topK from being the worst one. An audit
computes only the errors whose bound reaches the largest error so far.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from metrics.kernels.compiled import compiled

ROUNDING = 1e-9
"""Added to the bounds: sums in another order differ by less than this."""


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
    hit = torch.zeros_like(probabilities[0]).index_add_(0, labels, of_label)
    predicted = _column_sums(probabilities)
    return torch.stack([predicted, predicted - hit])


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
