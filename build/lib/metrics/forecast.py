"""A forecast and its outcomes: what all utility classes share, computed once.

rank(p, j) is the position of class j in descending order of p, ties broken by class index, so the
ranks of a row are a permutation (paper, Example 3.6; zero-based here).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from metrics.kernels.compiled import compiled
from metrics.kernels.row_sort import argsort_short_rows
from metrics.kernels.threads import over_row_blocks


def rank_rows(probabilities: Tensor) -> Tensor:
    """Return the classes of each row in descending order of probability: int64/int32 [n, C]."""
    if probabilities.device.type != "cpu":
        return torch.sort(probabilities, dim=1, descending=True, stable=True).indices
    values = probabilities.contiguous().numpy()
    order = np.empty(values.shape, np.int32)

    def work(start: int, stop: int) -> None:
        argsort_short_rows(values[start:stop], order[start:stop])

    over_row_blocks(work, values.shape[0], values.size)
    return torch.from_numpy(order)


@compiled
def _count_ahead(p: Any, labels: Any, ranks: Any) -> None:
    """Write the number of classes ahead of each of `labels` [R, n]."""
    for i in range(p.shape[0]):
        for draw in range(labels.shape[0]):
            label = labels[draw, i]
            own = p[i, label]
            ahead = 0
            for j in range(label):
                ahead += p[i, j] >= own
            for j in range(label + 1, p.shape[1]):
                ahead += p[i, j] > own
            ranks[draw, i] = ahead


def _ranks_of_draw(probabilities: Tensor, labels: Tensor) -> Tensor:
    """As `_count_ahead` for labels [n], in plain torch."""
    of_label = probabilities.gather(1, labels[:, None])
    columns = torch.arange(probabilities.shape[1], device=labels.device)
    tied_before = (probabilities == of_label) & (columns < labels[:, None])
    return ((probabilities > of_label) | tied_before).sum(dim=1)


def first_alike(rows: Tensor) -> Tensor | None:
    """Return for each row of `rows` [n, C] the number of its first equal; None if all differ.

    One column tells most rows apart, so only the others are compared as a whole.
    """
    _, group, sizes = torch.unique(rows[:, 1], return_inverse=True, return_counts=True)
    doubtful = torch.nonzero(sizes[group] > 1).flatten()
    if not len(doubtful):
        return None
    different, which = torch.unique(rows[doubtful], dim=0, return_inverse=True)
    if len(different) == len(doubtful):
        return None
    first = torch.full((len(different),), len(rows), device=rows.device)
    first.scatter_reduce_(0, which, doubtful, "amin")
    alike = torch.arange(len(rows), device=rows.device)
    alike[doubtful] = first[which]
    return alike


@dataclass(frozen=True)
class Forecast:
    """Probabilities float64 [n, C] with their ranking, computed when first asked for."""

    probabilities: Tensor

    @property
    def n(self) -> int:
        """Number of points."""
        return self.probabilities.shape[0]

    @property
    def classes(self) -> int:
        """Number of classes C."""
        return self.probabilities.shape[1]

    @cached_property
    def order(self) -> Tensor:
        """[n, C]: the class at each rank."""
        return rank_rows(self.probabilities)

    @cached_property
    def ranked(self) -> Tensor:
        """[n, C]: each row's probabilities in descending order."""
        return self.probabilities.gather(1, self.order.to(torch.int64))

    @cached_property
    def top_sums(self) -> Tensor:
        """[n, C]: probability of the K most probable classes, K = 1 … C."""
        return self.ranked.cumsum(dim=1)

    @cached_property
    def alike(self) -> Tensor | None:
        """[n]: the first point with the same probabilities; None if all differ."""
        return first_alike(self.probabilities)

    @cached_property
    def ranked_alike(self) -> Tensor | None:
        """[n]: the first point with the same probabilities in descending order; None likewise."""
        return first_alike(self.ranked)

    def outcomes(self, labels: Tensor) -> Outcomes:
        """Return the outcomes of `labels` int64 [n] or [R, n] (R draws)."""
        return Outcomes(labels.reshape(-1, self.n), forecast=self)

    def ranks_of(self, labels: Tensor) -> Tensor:
        """Return the rank of each label int64 [R, n], from 0: more probable classes, ties by class.

        Comparisons instead of the ranking: n C of them for each draw.
        """
        if labels.device.type != "cpu":
            return torch.stack([_ranks_of_draw(self.probabilities, draw) for draw in labels])
        ranks = torch.empty(labels.shape, dtype=torch.int64)
        p, y, out = self.probabilities.numpy(), labels.numpy(), ranks.numpy()

        def work(start: int, stop: int) -> None:
            _count_ahead(p[start:stop], y[:, start:stop], out[:, start:stop])

        over_row_blocks(work, self.n, p.size * len(y) // 8)  # a comparison costs next to nothing
        return ranks

    def redraw(self, uniforms: Tensor) -> Outcomes:
        """Return outcomes drawn from the forecast itself by inverse CDF.

        Args:
            uniforms: float64 [R, n] in [0, 1); the same numbers give paired draws across methods.

        The classes stand in descending order, so the wanted position is usually among the first;
        rows that do not sum to one are drawn from after division by their sum, rows of zeros
        uniformly.
        """
        sums = self.top_sums
        zero = sums[:, -1] == 0
        if bool(zero.any()):
            evenly = torch.arange(1, self.classes + 1, dtype=sums.dtype, device=sums.device)
            sums = torch.where(zero[:, None], evenly, sums)
        target = uniforms.T.to(sums.device) * sums[:, -1:]
        ranks = torch.searchsorted(sums, target.contiguous(), right=True)
        ranks = ranks.clamp(max=self.classes - 1)
        labels = self.order.to(torch.int64).gather(1, ranks)
        return Outcomes(labels.T.contiguous(), ranks.T.contiguous())


@dataclass(frozen=True)
class Outcomes:
    """The true class of each point and its rank in the forecast, for R draws of the labels.

    labels: int64 [R, n]. The ranks are computed when first asked for, by `forecast`, unless they
    are known.
    """

    labels: Tensor
    known_ranks: Tensor | None = None
    forecast: Forecast | None = None

    @cached_property
    def ranks(self) -> Tensor:
        """[R, n]: zero-based ranks of the labels."""
        if self.known_ranks is not None:
            return self.known_ranks
        if self.forecast is None:
            raise ValueError("outcomes without a forecast have no ranks")
        return self.forecast.ranks_of(self.labels)

    @property
    def draws(self) -> int:
        """Number R of label draws."""
        return self.labels.shape[0]
