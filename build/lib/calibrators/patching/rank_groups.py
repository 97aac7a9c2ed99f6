"""Predictions of U_rank from the sums of groups of ranks, off by no more than a known error.

v = Σ_k θ_k p_(k), where the payoffs θ and the ranked probabilities p both fall with the rank k.
With the mean payoff of a group of m ranks in place of each of its own, the group's part of v is too
small by the covariance of two falling sequences: by nothing at least, and at most by m/4 times the
range of θ times the range of p (Grüss). On the simplex every ranked p is a mixture of those that
are 1/j on the first j ranks and zero after, and such a one varies within one group only. So v is
too small by at most the largest m/4 · range of θ · 1/(1 + ranks before the group).

Far down the ranking probabilities are small and sorted payoffs lie close: at C = 1000 a quarter of
the columns gives v to 5e-5.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from metrics.kernels.compiled import compiled
from metrics.kernels.threads import over_row_blocks


class RankGroups(NamedTuple):
    """v ≈ `weights` [b, G] @ the sums of the `ends` [G] largest probabilities, off by `error`."""

    ends: Tensor
    weights: Tensor
    error: float


def group_ranks(payoffs: Tensor, error: float) -> RankGroups:
    """Group the ranks of valuations that fall with the rank; fewer groups for a larger `error`.

    Args:
        payoffs: float64 [b, C] by rank, each row sorted in descending order.
        error: the largest that is allowed.
    """
    # Predictions too small by 0 … 2 `error` are off by `error` once that is added to them.
    ends = torch.from_numpy(_group_ends(payoffs.numpy(), 2 * error))
    starts = torch.cat([ends.new_zeros(1), ends[:-1]])
    sums = torch.nn.functional.pad(payoffs.cumsum(dim=1), (1, 0))
    means = (sums[:, ends] - sums[:, starts]) / (ends - starts)
    weights = -torch.diff(means, dim=1, append=torch.zeros_like(means[:, :1]))
    weights[:, -1] += error  # the last sum is one
    return RankGroups(ends, weights, error)


@compiled
def _group_ends(payoffs: Any, gap: float) -> Any:
    """Make each group, from the first on, as long as predictions too small by `gap` allow."""
    classes = payoffs.shape[1]
    ends = np.empty(classes, np.int64)
    groups = start = 0
    for k in range(1, classes + 1):
        widest = 0.0
        if k < classes:
            for row in range(payoffs.shape[0]):
                widest = max(widest, payoffs[row, start] - payoffs[row, k])
        if k == classes or (k + 1 - start) / 4 * widest / (start + 1) > gap:
            ends[groups] = k
            groups += 1
            start = k
    return ends[:groups].copy()


@compiled
def _pick(matrix: Any, columns: Any, picked: Any) -> None:
    row = np.empty(matrix.shape[1], np.float32)
    for i in range(matrix.shape[0]):
        for j in range(row.size):  # read from end to end it comes faster than column by column
            row[j] = matrix[i, j]
        for k in range(columns.size):
            picked[i, k] = row[columns[k]]


def sums_at(top_sums: Tensor, ends: Tensor) -> Tensor:
    """Return the sums of the `ends` [G] largest probabilities of each row: float32 [n, G]."""
    sums, columns = top_sums.numpy(), ends.numpy() - 1
    picked = np.empty((len(sums), len(columns)), np.float32)

    def work(start: int, stop: int) -> None:
        _pick(sums[start:stop], columns, picked[start:stop])

    over_row_blocks(work, len(sums), sums.size)
    return torch.from_numpy(picked)
