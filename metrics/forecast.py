"""A forecast and its outcomes: what all utility classes share, computed once.

rank(p, j) is the position of class j in descending order of p, ties broken by class index, so the
ranks of a row are a permutation (paper, Example 3.6; zero-based here).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from metrics.kernels.ranks import descending_order, near_tie_order, places_of
from metrics.kernels.threads import row_blocks

LARGEST_WHOLE = 1 << 26
"""Probabilities up to which what is made of them is held as a whole; of more, by parts of rows."""
PART = 1 << 22
"""Probabilities in such a part: 32 MiB."""


def first_alike(column: Tensor, rows_at: Callable[[Tensor], Tensor]) -> Tensor | None:
    """Return for each of n rows the number of its first equal, [n]; None if all differ.

    One column [n] of them tells most rows apart, so only the others are compared as a whole:
    `rows_at(numbers)` gives them.
    """
    _, group, sizes = torch.unique(column, return_inverse=True, return_counts=True)
    doubtful = torch.nonzero(sizes[group] > 1).flatten()
    if not len(doubtful):
        return None
    different, which = torch.unique(rows_at(doubtful), dim=0, return_inverse=True)
    if len(different) == len(doubtful):
        return None
    first = torch.full((len(different),), len(column), device=column.device)
    first.scatter_reduce_(0, which, doubtful, "amin")
    alike = torch.arange(len(column), device=column.device)
    alike[doubtful] = first[which]
    return alike


def short_type(classes: int) -> torch.dtype:
    """The shortest integers that number `classes` classes."""
    return torch.int16 if classes <= 1 << 15 else torch.int32


@dataclass(frozen=True)
class Forecast:
    """Probabilities float64 [n, C] with their ranking, computed when first asked for.

    tied: neighbours in descending order that lie no further apart than this are ranked by class;
    with 0 those that are equal, as in the paper.
    """

    probabilities: Tensor
    tied: float = 0.0

    @property
    def n(self) -> int:
        """Number of points."""
        return self.probabilities.shape[0]

    @property
    def classes(self) -> int:
        """Number of classes C."""
        return self.probabilities.shape[1]

    @property
    def is_large(self) -> bool:
        """Whether what is as large as the probabilities is made and dropped by parts of rows."""
        return self.probabilities.numel() > LARGEST_WHOLE

    def parts(self) -> Iterator[tuple[slice, Forecast]]:
        """Some rows after another, each part a forecast; a small one is its only part."""
        if not self.is_large:
            yield slice(0, self.n), self
            return
        for start, stop in row_blocks(self.n, self.classes, PART):
            yield slice(start, stop), self.at(slice(start, stop))

    def at(self, rows: slice | Tensor) -> Forecast:
        """The forecast of some of the points, by their numbers, which needs no sort of its own."""
        some = Forecast(self.probabilities[rows], self.tied)
        vars(some)["order"] = self.order[rows]
        return some

    def joined(
        self, values: Callable[[Forecast], Tensor], count: int, spare: Tensor | None = None
    ) -> Tensor:
        """`values(part)` [count, points] of all parts side by side, [count, n].

        Several parts are written to the memory of `spare` [>= count, n] if given.
        """
        if not self.is_large:
            return values(self)
        if spare is None:
            spare = self.probabilities.new_empty(count, self.n)
        for rows, part in self.parts():
            spare[:count, rows] = values(part)
        return spare[:count]

    @cached_property
    def order(self) -> Tensor:
        """[n, C]: the class at each rank."""
        if self.is_large:
            order = torch.empty(
                self.probabilities.shape,
                dtype=short_type(self.classes),
                device=self.probabilities.device,
            )
            for start, stop in row_blocks(self.n, self.classes, PART):
                some = Forecast(self.probabilities[start:stop], self.tied)
                order[start:stop] = some.order
            return order
        if self.tied:
            return near_tie_order(self.probabilities, self.tied)
        return descending_order(self.probabilities)

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
        return first_alike(self.probabilities[:, 1], lambda some: self.probabilities[some])

    @cached_property
    def ranked_alike(self) -> Tensor | None:
        """[n]: the first point with the same probabilities in descending order; None likewise."""
        second = self.joined(lambda part: part.ranked[None, :, 1], 1)[0]
        return first_alike(second, lambda some: self.at(some).ranked)

    def outcomes(self, labels: Tensor, weights: Tensor | None = None) -> Outcomes:
        """Return the outcomes of `labels` int64 [n] or [R, n] (R draws).

        `weights` of the points, float64 [n] or [R, n], go with one draw of the labels.
        """
        rows = None if weights is None else weights.reshape(-1, self.n)
        return Outcomes(labels.reshape(-1, self.n), forecast=self, weights=rows)

    def redraw_parts(self, uniforms_of: Callable[[slice], Tensor], draws: int) -> Outcomes:
        """`redraw` by parts of rows: `uniforms_of(rows)` gives the numbers of a part's points.

        Labels and ranks are of the shortest type that holds them.
        """
        shape, kind = (draws, self.n), short_type(self.classes)
        labels = torch.empty(shape, dtype=kind, device=self.probabilities.device)
        ranks = torch.empty_like(labels)
        for rows, part in self.parts():
            drawn = part.redraw(uniforms_of(rows))
            labels[:, rows], ranks[:, rows] = drawn.labels, drawn.ranks
        return Outcomes(labels, ranks)

    def redraw(self, uniforms: Tensor) -> Outcomes:
        """Return outcomes drawn from the forecast itself by inverse CDF.

        Args:
            uniforms: float64 [R, n] in [0, 1); the same numbers give paired draws across methods.

        The classes stand in descending order, so the wanted position is usually among the first;
        rows that do not sum to one are drawn from after division by their sum, rows of zeros
        uniformly.
        """
        if self.is_large:
            return self.redraw_parts(lambda rows: uniforms[:, rows], len(uniforms))
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
    are known. weights: float64 [R, n], R sets of weights of the points under one draw of the labels
    [1, n]: metrics are weighted means then, as if a point of weight 3 stood there three times.
    """

    labels: Tensor
    known_ranks: Tensor | None = None
    forecast: Forecast | None = None
    weights: Tensor | None = None

    @cached_property
    def ranks(self) -> Tensor:
        """[R, n]: zero-based ranks of the labels."""
        if self.known_ranks is not None:
            return self.known_ranks
        if self.forecast is None:
            raise ValueError("outcomes without a forecast have no ranks")
        return torch.stack([places_of(draw, self.forecast.order) for draw in self.labels])

    @property
    def draws(self) -> int:
        """Number R of label draws, or of sets of weights."""
        return len(self.labels if self.weights is None else self.weights)

    @cached_property
    def size(self) -> Tensor:
        """What a mean over the points divides by: [R, 1]; their number, or the sum of weights."""
        if self.weights is None:
            n = float(self.labels.shape[1])
            return torch.full((1, 1), n, dtype=torch.float64, device=self.labels.device)
        return self.weights.sum(dim=1, keepdim=True)

    def mean(self, values: Tensor) -> Tensor:
        """The mean over the points of `values` [R, n], weighted: [R]."""
        if self.weights is None:
            return values.mean(dim=1)
        return (values * self.weights).sum(dim=1) / self.size[:, 0]
