"""A forecast and its outcomes, with the ranking that all utility classes share, computed once.

rank(p, j) is the position of class j in descending order of p. Ties are broken by class index, so
the ranks of a row are a permutation (paper, Example 3.6; they begin at 0 here).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .arrays import Array
from .kernels.prefix_range import Orders
from .kernels.ranks import (
    descending_order,
    largest_values,
    places_above,
    places_of,
    ranked_sums,
    ranked_values,
    ranks_of,
)
from .kernels.threads import row_blocks

LARGEST_WHOLE = 1 << 23
"""Largest number of probabilities whose ranks and sums are kept. Above it they are computed block
by block, each time they are needed. For 9,000 points of a thousand classes, to keep them took 480
MB more and saved 7 % of an evaluation."""
MOST_POINTS = 20_000
"""Most points for which predictions and their orders are kept. They take about 12 bytes for each
point and utility, and there are 2C utilities and a thousand sampled users."""
PART = 1 << 22  # probabilities in a block of a large forecast: 32 MiB
DRAWN = 1 << 20  # labels drawn at a time


def row_bytes(matrix: Array) -> Array:
    """Return the bytes of each row as one item, which sort far faster than rows: [n]."""
    rows = np.ascontiguousarray(matrix)
    return rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()


def _first_alike(column: Array, rows_at: Callable[[Array], Array]) -> Array | None:
    """Return for each of n rows the number of the first row equal to it, [n]; None if all differ.

    `column` [n] is a column of the rows. Most rows already differ there, so only the others are
    compared as a whole; `rows_at(numbers)` returns them.
    """
    _, group, sizes = np.unique(column, return_inverse=True, return_counts=True)
    doubtful = np.flatnonzero(sizes[group] > 1)
    if not len(doubtful):
        return None
    rows = rows_at(doubtful) + 0.0  # -0.0 becomes 0.0, which is equal
    _, first, which = np.unique(row_bytes(rows), return_index=True, return_inverse=True)
    if len(first) == len(doubtful):
        return None
    alike = np.arange(len(column))
    alike[doubtful] = doubtful[first][which]
    return alike


@dataclass(frozen=True)
class Forecast:
    """Probabilities float64 [n, C] with their ranking, computed when first needed.

    Args:
        tied: neighbours in descending order that are no further apart than this are ranked by
            class. With 0 only equal ones are, as in the paper.
        known_order: the ranking, if it is already known.
        depth: how many of the largest probabilities are needed, if these, and the label's rank, are
            all that is needed of the ranking. Then no class has to be sorted.
        known_top: [n], the first class with the largest probability of each row, if it is known.
        in_parts: whether to compute a small one part by part, too, because many are kept.
    """

    probabilities: Array
    tied: float = 0.0
    known_order: Array | None = None
    depth: int | None = None
    known_top: Array | None = None
    in_parts: bool = False
    kept: dict[Hashable, tuple[Array, Orders]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def n(self) -> int:
        return self.probabilities.shape[0]

    @property
    def classes(self) -> int:
        return self.probabilities.shape[1]

    @property
    def is_large(self) -> bool:
        """Whether matrices of this size are computed part by part instead of being kept."""
        return self.in_parts or self.probabilities.size > LARGEST_WHOLE

    @property
    def short_type(self) -> type:
        """The shortest integer type that holds the numbers of the classes."""
        return np.int16 if self.classes <= 1 << 15 else np.int32

    def keep(self, utilities: Hashable, predicted: Array, orders: Orders) -> None:
        """Keep predictions [b, n] of some utilities and what sorts them, unless they are too many.

        Labels, draws and resamplings then share predictions and sorts.
        """
        if self.n <= MOST_POINTS and not self.is_large:
            self.kept[utilities] = predicted, orders

    def at(self, rows: slice | Array) -> Forecast:
        """Return the forecast of the points with these numbers, without a sort."""
        return Forecast(self.probabilities[rows], self.tied, self.order[rows])

    def parts(self) -> Iterator[tuple[slice, Forecast]]:
        """Yield the rows of each part and their forecast; a small forecast is one part."""
        if not self.is_large:
            yield slice(0, self.n), self
            return
        for start, stop in row_blocks(self.n, self.classes, PART):
            yield slice(start, stop), self.at(slice(start, stop))

    def joined(self, values: Callable[[Forecast], Array]) -> Array:
        """Return `values(part)` [k, points] for all parts, side by side: [k, n]."""
        if not self.is_large:
            return values(self)
        whole: Array = np.empty((0, self.n))
        for rows, part in self.parts():
            of_part = values(part)
            if not len(whole):
                whole = np.empty((len(of_part), self.n))
            whole[:, rows] = of_part  # `np.concatenate` would hold all parts twice
        return whole

    @cached_property
    def order(self) -> Array:
        """[n, C]: the class at each rank."""
        if self.known_order is not None:
            return self.known_order
        if not self.is_large:
            return descending_order(self.probabilities, self.tied)
        order: Array = np.empty(self.probabilities.shape, self.short_type)
        for start, stop in row_blocks(self.n, self.classes, PART):
            order[start:stop] = descending_order(self.probabilities[start:stop], self.tied)
        return order

    @cached_property
    def top(self) -> tuple[Array, Array]:
        """[n] each: the largest probability and its class, the first of equal ones."""
        first = self.known_top
        if first is None:
            first = self.probabilities.argmax(axis=1)
        is_known = self.tied or self.known_order is not None or "order" in vars(self)
        largest = np.take_along_axis(self.probabilities, first[:, None], axis=1)[:, 0]
        return largest, self.order[:, 0].astype(np.int64) if is_known else first

    @cached_property
    def ranked(self) -> Array:
        """[n, C], or [n, depth]: each row's probabilities in descending order."""
        if self.depth is not None:
            return largest_values(self.probabilities, self.depth)
        return ranked_values(self.probabilities, self.order)

    @cached_property
    def top_sums(self) -> Array:
        """[n, C]: the sum of the K largest probabilities, K = 1 … C."""
        if self.depth is None:
            return ranked_sums(self.probabilities, self.order)
        return self.ranked.cumsum(axis=1)

    @cached_property
    def alike(self) -> Array | None:
        """[n]: the first point with the same probabilities; None if all differ."""
        return _first_alike(self.probabilities[:, 1], lambda rows: self.probabilities[rows])

    @cached_property
    def ranked_alike(self) -> Array | None:
        """[n]: the first point with the same sorted probabilities; None if all differ."""
        if self.depth is not None:
            second = self.ranked[:, 1]
        else:  # the other ranks are not needed of rows that differ in this one
            second = np.take_along_axis(self.probabilities, self.order[:, 1:2], axis=1)[:, 0]
        return _first_alike(second, lambda rows: self.at(rows).ranked)

    def outcomes(self, labels: Array, weights: Array | None = None) -> Outcomes:
        """Return the outcomes of `labels` [n] or [R, n], with `weights` [n] or [R, n]."""
        rows = None if weights is None else weights.reshape(-1, self.n)
        return Outcomes(labels.reshape(-1, self.n), forecast=self, weights=rows)

    def redraw(self, uniforms: Array | Callable[[slice], Array]) -> Outcomes:
        """Return outcomes drawn from the forecast itself by inverse CDF.

        `uniforms` are float64 [R, n] in [0, 1), or a function from rows to theirs. The same numbers
        give paired draws across methods. Rows are divided by their sum first; one of zeros counts
        as uniform. Labels and ranks have the shortest type, and a point's draws lie side by side.
        """

        def numbers_of(rows: slice) -> Array:
            return uniforms(rows) if callable(uniforms) else uniforms[:, rows]

        draws = len(numbers_of(slice(0, 1)))
        drawn: Array = np.empty((2, self.n, draws), self.short_type)
        labels, ranks = drawn
        for rows, part in self.parts():
            sums = part.top_sums  # in descending order, so the drawn class is among the first
            zero = sums[:, -1] == 0
            if bool(zero.any()):
                sums = np.where(zero[:, None], np.arange(1.0, self.classes + 1), sums)
            for start, stop in row_blocks(part.n, max(1, draws), DRAWN):
                here = slice(rows.start + start, rows.start + stop)
                places = places_above(sums[start:stop], numbers_of(here)).T
                labels[here] = np.take_along_axis(part.order[start:stop], places, axis=1)
                ranks[here] = places
        labels, ranks = labels.T, ranks.T
        return Outcomes(labels=labels, known_ranks=ranks)


@dataclass(frozen=True)
class Outcomes:
    """The true class of each point and its rank in the forecast, for R draws of the labels.

    Args:
        labels: int64 [R, n].
        known_ranks: the ranks, if they are known.
        forecast: gives the ranks when they are first needed.
        weights: float64 [R, n], R sets of weights with one draw of the labels [1, n], or one set
            [1, n] with R draws. Metrics are weighted means, as if a point of weight 3 occurred
            three times.
        multipliers: [R, n], numbers of either sign with one draw of the labels. They multiply the
            residuals u - v of calibration errors, but neither the points' weights nor their number.
    """

    labels: Array
    known_ranks: Array | None = None
    forecast: Forecast | None = None
    weights: Array | None = None
    multipliers: Array | None = None

    @cached_property
    def ranks(self) -> Array:
        """[R, n]: zero-based ranks of the labels."""
        if self.known_ranks is not None:
            return self.known_ranks
        assert self.forecast is not None
        if self.forecast.depth is not None:
            return np.stack([ranks_of(y, self.forecast.probabilities) for y in self.labels])
        return np.stack([places_of(draw, self.forecast.order) for draw in self.labels])

    @cached_property
    def hits(self) -> Array:
        """[R, n]: whether the label is the most probable class, which needs no ranking."""
        is_ranked = self.known_ranks is not None or "ranks" in vars(self)
        if is_ranked or self.forecast is None:
            return self.ranks == 0
        return self.labels == self.forecast.top[1]

    @property
    def draws(self) -> int:
        """The number R of label draws, of sets of weights or of multipliers."""
        return max(len(t) for t in (self.labels, self.weights, self.multipliers) if t is not None)

    @property
    def factors(self) -> Array | None:
        """What multiplies the residuals: weights, multipliers, or both; [R, n] or [1, n]."""
        if self.weights is None or self.multipliers is None:
            return self.multipliers if self.weights is None else self.weights
        return self.weights * self.multipliers

    @cached_property
    def size(self) -> Array:
        """The divisor of a mean over the points, their number or the sum of weights: [R, 1]."""
        if self.weights is None:
            n = float(self.labels.shape[1])
            return np.full((1, 1), n)
        return self.weights.sum(axis=1, keepdims=True)

    def mean(self, values: Array) -> Array:
        """Return the (weighted) mean of `values` [R, n] over the points: [R]."""
        if self.weights is None:
            return values.mean(axis=1)
        return (values * self.weights).sum(axis=1) / self.size[:, 0]

    def distinct(self, classes: int) -> tuple[Array, Array, Array]:
        """Return the L pairs of a point and a label that some draw has, and how draws number them.

        These are points and labels, int64 [L] each, and the pair of each draw and point, [R, n].
        """
        n = self.labels.shape[1]
        numbers = np.arange(n)
        if len(self.labels) == 1:
            return numbers, self.labels[0].astype(np.int64), numbers[None]
        pairs = numbers * classes + self.labels
        seen = np.zeros(n * classes, np.bool_)
        seen[pairs.ravel()] = True
        distinct = np.flatnonzero(seen)
        number_of_pair = seen.cumsum(dtype=np.int32) - 1
        return distinct // classes, distinct % classes, number_of_pair[pairs]
