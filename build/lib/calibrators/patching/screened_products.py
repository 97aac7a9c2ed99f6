"""Predictions of sampled utilities: of all in float32, and of some in float64.

In float32 they are good enough to tell which utilities can be the worst. For U_lin, rows that are
almost constant are added up off their plateau (`flat_rows`); for U_rank, ranks are grouped
(`rank_groups`). What is left are dense products.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from calibrators.patching.flat_rows import flat_products, flat_rows
from calibrators.patching.rank_groups import RankGroups, group_ranks, sums_at
from calibrators.patching.state import PatchedForecast
from metrics.kernels.compiled import compiled
from metrics.kernels.threads import over_row_blocks

GROUPING = 5e-5
"""How far predictions of U_rank may be off for being computed from groups of ranks."""
MANY_CLASSES = 256
"""With fewer, a dense product is as fast as anything."""
FEW_UTILITIES = 16
"""So few predictions of dense rows take no longer than reading the rows."""
ROWS_AT_ONCE = 4096
"""Rows of a dense product at a time: their copy stays in the cache."""


@dataclass(frozen=True)
class Products(ABC):
    """Predictions of utilities with `payoffs` float64 [b, C] for a forecast on the CPU.

    Valid until the forecast moves.
    """

    state: PatchedForecast
    payoffs: Tensor

    @property
    @abstractmethod
    def margin(self) -> float:
        """How far predictions in float32 may be off."""

    @property
    @abstractmethod
    def codes(self) -> Tensor:
        """The outcome of each point, in the order of predictions: int64 [n]."""

    @abstractmethod
    def write_single(self, out: Tensor) -> None:
        """Write all predictions to `out` float32 [b, n]."""

    @abstractmethod
    def exact(self, chosen: Tensor) -> Tensor:
        """Return those of some utilities: float64 [k, n]."""


@dataclass(frozen=True)
class LinearProducts(Products):
    """Of U_lin, payoffs by class: points with flat rows come first."""

    @cached_property
    def flat(self) -> Tensor:
        """Points with flat rows: int64."""
        return torch.nonzero(self._is_flat).flatten()

    @cached_property
    def others(self) -> Tensor:
        """All other points: int64."""
        return torch.nonzero(~self._is_flat).flatten()

    @cached_property
    def points(self) -> Tensor:
        """Both: int64 [n]."""
        return torch.cat([self.flat, self.others])

    @cached_property
    def _is_flat(self) -> Tensor:
        n, classes = self.state.probabilities.shape
        if classes < MANY_CLASSES:
            return torch.zeros(n, dtype=torch.bool)
        return flat_rows(self.state.probabilities, self.state.order)

    @property
    def margin(self) -> float:
        """Every row of probabilities adds up to one."""
        return _rounding(self.payoffs.shape[1], self.payoffs.abs().amax(dim=1))

    @property
    def codes(self) -> Tensor:
        """Labels."""
        return self.state.labels[self.points]

    def write_single(self, out: Tensor) -> None:
        """Flat rows, then the others."""
        self._write(self.payoffs, out)

    def exact(self, chosen: Tensor) -> Tensor:
        """As for all, or by one product where picking rows costs as much as it spares."""
        payoffs = self.payoffs[chosen]
        if len(chosen) <= FEW_UTILITIES or len(self.flat) < len(self.others):
            predicted = payoffs @ self.state.probabilities.T
            return predicted[:, self.points] if len(self.flat) else predicted
        out = torch.empty(len(chosen), len(self.state.labels), dtype=torch.float64)
        self._write(payoffs, out)
        return out

    def _write(self, payoffs: Tensor, out: Tensor) -> None:
        count, p = len(self.flat), self.state.probabilities
        if not count:
            _write_product(payoffs, p, None, out)
            return
        flat_products(p, self.state.order, self.flat, payoffs, out[:, :count])
        _write_product(payoffs, p, self.others, out[:, count:])


@dataclass(frozen=True)
class RankProducts(Products):
    """Of U_rank, payoffs by rank in descending order."""

    @cached_property
    def groups(self) -> RankGroups | None:
        """None for few classes: nothing would be spared."""
        if self.payoffs.shape[1] < MANY_CLASSES:
            return None
        return group_ranks(self.payoffs, GROUPING)

    @property
    def margin(self) -> float:
        """Sums of ranked probabilities are at most one each."""
        if self.groups is None:
            return _rounding(self.payoffs.shape[1], drops(self.payoffs).abs().sum(dim=1))
        weights = self.groups.weights
        return self.groups.error + _rounding(weights.shape[1], weights.abs().sum(dim=1))

    @property
    def codes(self) -> Tensor:
        """Ranks of the labels."""
        return self.state.ranks

    def write_single(self, out: Tensor) -> None:
        """From groups of ranks."""
        if self.groups is None:
            _write_product(drops(self.payoffs), self.state.top_sums, None, out)
            return
        sums = sums_at(self.state.top_sums, self.groups.ends)
        torch.matmul(self.groups.weights.float(), sums.T, out=out)

    def exact(self, chosen: Tensor) -> Tensor:
        """By one product."""
        return drops(self.payoffs[chosen]) @ self.state.top_sums.T


def drops(payoffs: Tensor) -> Tensor:
    """Return the weights w [b, C] with Σ_k θ_k p_(k) = Σ_K w_K (p_(1) + … + p_(K)) for any p."""
    return payoffs - torch.nn.functional.pad(payoffs[:, 1:], (0, 1))


def _rounding(terms: int, scales: Tensor) -> float:
    """Bound the error of sums of products in float32, in any order: (terms + 2) u `scales`.

    That pays for flat rows, too: half as many terms and one more, of 5/3 the size of other rows'.
    """
    return 1.01 * (terms + 2) * 2.0**-24 * float(scales.max())


def _write_product(weights: Tensor, matrix: Tensor, rows: Tensor | None, out: Tensor) -> None:
    """out [b, k] = `weights` [b, m] @ `matrix`[rows] [k, m]ᵀ, in the precision of `out`."""
    weights, count = weights.to(out.dtype), out.shape[1]
    copy = torch.empty(min(count, ROWS_AT_ONCE), matrix.shape[1], dtype=out.dtype)
    for first in range(0, count, ROWS_AT_ONCE):
        part = slice(first, min(first + ROWS_AT_ONCE, count))
        taken = copy[: part.stop - first]
        if rows is None:
            taken.copy_(matrix[part])
        else:
            _take_rows(matrix, rows[part], taken)
        torch.matmul(weights, taken.T, out=out[:, part])


@compiled
def _take(matrix: Any, rows: Any, taken: Any) -> None:
    for i in range(rows.size):
        source, target = matrix[rows[i]], taken[i]
        for j in range(source.size):
            target[j] = source[j]


def _take_rows(matrix: Tensor, rows: Tensor, taken: Tensor) -> None:
    """taken = matrix[rows], in the precision of `taken`."""
    values, chosen, written = matrix.numpy(), rows.numpy(), taken.numpy()

    def work(start: int, stop: int) -> None:
        _take(values, chosen[start:stop], written[start:stop])

    over_row_blocks(work, len(chosen), written.size)
