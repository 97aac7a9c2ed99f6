"""Predictions of sampled utilities: of all in float32, and of some in float64.

In float32 they are good enough to tell which utilities can be the worst. Rows that are almost
constant are added up off their plateau (`flat_rows`), ranks of the others are grouped
(`rank_groups`), and what is left is a dense product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from calibrators.flat_rows import flat_products, flat_rows
from calibrators.patched_forecast import PatchedForecast
from calibrators.rank_groups import RankGroups, group_ranks, sums_at
from metrics.compiled import compiled
from metrics.threads import over_row_blocks

GROUPING = 5e-5
"""How far predictions of U_rank may be off for being computed from groups of ranks."""
MANY_CLASSES = 256
"""With fewer, a dense product is as fast as anything."""
ROWS_AT_ONCE = 4096
"""Rows of a dense product at a time: their copy stays in the cache."""


class Rows:
    """The rows of a forecast on the CPU, until its next move: first flat ones, then the others.

    Attributes:
        flat, others: int64, their points.
        points: int64 [n], the point of each row.
    """

    def __init__(self, state: PatchedForecast) -> None:
        self.state = state
        n, classes = state.probabilities.shape
        self.flat, self.others = torch.arange(0), torch.arange(n)
        if classes >= MANY_CLASSES:
            flat = flat_rows(state.probabilities, state.order)
            self.flat, self.others = torch.nonzero(flat).flatten(), torch.nonzero(~flat).flatten()
        self.points = torch.cat([self.flat, self.others])

    def write_flat(self, payoffs: Tensor, by_rank: bool, out: Tensor) -> Tensor:
        """Write the predictions of the flat rows to `out` [b, n]; return where the others go."""
        count, p = len(self.flat), self.state.probabilities
        if count:
            flat_products(p, self.state.order, self.flat, payoffs, by_rank, out[:, :count])
        return out[:, count:]

    def others_of(self, matrix: Tensor, dtype: torch.dtype) -> Iterator[tuple[slice, Tensor]]:
        """Yield a part of the other rows of `matrix` [n, m] at a time; valid until the next one."""
        for first in range(0, len(self.others), ROWS_AT_ONCE):
            part = slice(first, min(first + ROWS_AT_ONCE, len(self.others)))
            if len(self.flat):
                yield part, _taken(matrix, self.others[part], dtype)
            else:
                yield part, matrix[part].to(dtype)


@dataclass(frozen=True)
class Products:
    """Predictions of `payoffs` float64 [b, C] by class, or by rank (in descending order)."""

    rows: Rows
    payoffs: Tensor
    by_rank: bool

    @cached_property
    def groups(self) -> RankGroups | None:
        """Of the ranks, for rows that are not flat; None if they save too little."""
        if not self.by_rank or self.payoffs.shape[1] < MANY_CLASSES:
            return None
        return group_ranks(self.payoffs, GROUPING)

    @cached_property
    def margin(self) -> float:
        """How far predictions in float32 may be off."""
        # Probabilities add up to one; ranked sums are at most one each.
        margin = _rounding(self.payoffs.shape[1], self.payoffs.abs().amax(dim=1))
        if self.groups is not None:
            grouped = _rounding(len(self.groups.ends), self.groups.weights.abs().sum(dim=1))
            return max(margin, grouped + self.groups.error)
        if self.by_rank:
            return _rounding(self.payoffs.shape[1], drops(self.payoffs).abs().sum(dim=1))
        return margin

    def write_single(self, out: Tensor) -> None:
        """Write all to `out` float32 [b, n]."""
        rest = self.rows.write_flat(self.payoffs, self.by_rank, out)
        if self.groups is not None:
            sums = sums_at(self.rows.state.top_sums, self.rows.others, self.groups.ends)
            torch.matmul(self.groups.weights.float(), sums.T, out=rest)
        else:
            self._write_others(self.payoffs, rest)

    def exact(self, chosen: Tensor) -> Tensor:
        """Return the predictions of some utilities: float64 [k, n]."""
        out = torch.empty(len(chosen), len(self.rows.points), dtype=torch.float64)
        rest = self.rows.write_flat(self.payoffs[chosen], self.by_rank, out)
        self._write_others(self.payoffs[chosen], rest)
        return out

    def _write_others(self, payoffs: Tensor, out: Tensor) -> None:
        state = self.rows.state
        weights = drops(payoffs) if self.by_rank else payoffs
        source = state.top_sums if self.by_rank else state.probabilities
        for part, rows in self.rows.others_of(source, out.dtype):
            torch.matmul(weights.to(out.dtype), rows.T, out=out[:, part])


def drops(payoffs: Tensor) -> Tensor:
    """Return the weights w [b, C] with Σ_k θ_k p_(k) = Σ_K w_K (p_(1) + … + p_(K)) for any p."""
    return payoffs - torch.nn.functional.pad(payoffs[:, 1:], (0, 1))


def _rounding(terms: int, scales: Tensor) -> float:
    """Bound the error of sums of products in float32, in any order: (terms + 2) u `scales`.

    Six more terms pay for flat rows: at most half as many terms, whose sizes add up to at most 5/3
    of another row's.
    """
    return 1.01 * (terms + 8) * 2.0**-24 * float(scales.max())


@compiled
def _take(matrix: Any, rows: Any, taken: Any) -> None:
    for i in range(rows.size):
        taken[i] = matrix[rows[i]]


def _taken(matrix: Tensor, rows: Tensor, dtype: torch.dtype) -> Tensor:
    """Return `matrix`[rows] in another precision."""
    taken = torch.empty(len(rows), matrix.shape[1], dtype=dtype)
    values, chosen, written = matrix.numpy(), rows.numpy(), taken.numpy()

    def work(start: int, stop: int) -> None:
        _take(values, chosen[start:stop], written[start:stop])

    over_row_blocks(work, len(chosen), written.size)
    return taken
