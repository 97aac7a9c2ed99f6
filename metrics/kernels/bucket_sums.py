"""Sums of residuals in buckets with fixed borders, which add up over batches, shards and processes.

A utility's prediction v has a known range [low, high], and t = (v - low) / (high - low). Buckets
get wider with the distance of t to 0 or 1, the nearer one: 2^bits of them per octave of
(distance + `OFFSET`). The edges of `bins` bins of equal width are borders, too. A larger v never
gets a smaller bucket and equal ones share a bucket, so borders cut no tie.

With C the running sum of u - v at the borders, and P and N the sums of the positive and of the
negative residuals of a bucket, the running sum stays inside a bucket between C - N and C + P, C
being that before the bucket. So UC lies between the range of C and the range of these bounds. A
bucket whose predictions are all equal holds one group of ties, and then only its border counts.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..arrays import Array
from .buckets import key_of
from .compiled import compiled, compiled_sums
from .threads import by_row, over_blocks, row_blocks

OFFSET = 1.7e-5
"""Distances below it are about one bucket. No border between two bins is a round number then, at
which predictions that differ only by rounding could be cut."""
MIDDLE = 0.4975
"""Below it distances are taken to 0, no round number for the same reason."""
POSITIVE, NEGATIVE, MASS = range(3)


class Borders(NamedTuple):
    """Buckets for predictions in a known range; utilities differ in their ranges only."""

    bits: int
    bins: int

    @property
    def per_side(self) -> int:
        """The number of buckets on each side of `MIDDLE`."""
        return _level(1 - MIDDLE, self.bits) + 1

    @property
    def size(self) -> int:
        """The number of buckets."""
        return 2 * self.per_side + self.bins - 1

    @classmethod
    def at_most(cls, buckets: int, bins: int) -> Borders:
        """Return the finest borders with at most this number of buckets."""
        finest = [cls(bits, bins) for bits in range(20) if cls(bits, bins).size <= buckets]
        return finest[-1] if finest else cls(0, bins)


def _level(distance: float, bits: int) -> int:
    """Return the bucket of a distance, counted from the nearer end."""
    ends = np.array([distance + OFFSET, OFFSET]).view(np.int64) >> (52 - bits)
    return int(ends[0] - ends[1])


class Buckets(NamedTuple):
    """What is kept of m utilities with B buckets.

    Attributes:
        sums: [m, B, 3], of positive and of negative residuals, both >= 0, and of weights.
        ends: [m, B, 2], the negative of the smallest prediction, and the largest one.
        moments: [m, 2], sums over the points of the squared weight times the residual's variance
            under the forecast, and of the squared weight times the squared residual. For utilities
            of more than two values the squared residual stands for its variance.
    """

    sums: Array
    ends: Array
    moments: Array

    @classmethod
    def empty(cls, utilities: int, borders: Borders) -> Buckets:
        """Return buckets without points."""
        shape = utilities, borders.size
        ends = np.full((*shape, 2), -np.inf)
        return cls(np.zeros((*shape, 3)), ends, np.zeros((utilities, 2)))

    def at(self, utilities: slice) -> Buckets:
        """Return the buckets of some utilities, which share their memory with these."""
        return Buckets(*(values[utilities] for values in self))

    def add(
        self, predicted: Array, payoffs: Array, codes: Array, weights: Array,
        ranges: Array, borders: Borders,
    ) -> None:  # fmt: skip
        """Add n points: v [m, n], u = payoffs [m, L] at codes [n], weights [n], ranges [m, 2]."""
        table, outcomes = np.ascontiguousarray(payoffs, np.float64), np.ascontiguousarray(codes)
        per_side = borders.per_side

        def work(start: int, stop: int) -> None:
            part = slice(start, stop)
            points = by_row(predicted[part]), table[part], outcomes, weights, ranges[part]
            _add_rows(*points, borders.bits, per_side, borders.bins, *self.at(part))

        n = predicted.shape[1]
        over_blocks(work, row_blocks(len(predicted), n, max(1 << 18, 64 * n)))


@compiled
def _add_rows(
    predicted: Any, payoffs: Any, codes: Any, weights: Any, ranges: Any,
    bits: int, per_side: int, bins: int, sums: Any, ends: Any, moments: Any,
) -> None:  # fmt: skip
    bucket = np.empty(predicted.shape[1], np.int64)
    for row in range(len(predicted)):
        v, table, low, high = predicted[row], payoffs[row], ranges[row, 0], ranges[row, 1]
        _find_buckets(v, low, high, bits, per_side, bins, bucket)
        _add_to(sums[row], ends[row], bucket, table, codes, weights, v)
        squares, variance = _moments(v, table, codes, weights, low, high)
        others = 0  # values that are not extreme; an event has none
        for k in range(table.size):
            others += (table[k] != low) & (table[k] != high)
        moments[row, 0] += squares if others else variance
        moments[row, 1] += squares


@compiled
def _find_buckets(
    v: Any, low: float, high: float, bits: int, per_side: int, bins: int, bucket: Any
) -> None:
    """Write the bucket of every prediction, in vector lanes."""
    scale = 1.0 / (high - low) if high > low else 0.0
    first = key_of(OFFSET, 52 - bits)
    for i in range(v.size):
        t = (v[i] - low) * scale
        distance = max(t if t < MIDDLE else 1.0 - t, 0.0) + OFFSET
        level = min(key_of(distance, 52 - bits) - first, per_side - 1)
        bin_of = min(max(np.int64(t * bins), 0), bins - 1)
        bucket[i] = bin_of + (level if t < MIDDLE else 2 * per_side - 1 - level)


@compiled
def _add_to(
    sums: Any, ends: Any, bucket: Any, table: Any, codes: Any, weights: Any, v: Any
) -> None:
    for i in range(v.size):
        b = np.uint64(bucket[i])  # without a check for negative places
        of_bucket, limits = sums[b], ends[b]
        residual = weights[i] * (table[codes[i]] - v[i])
        of_bucket[0] += max(residual, 0.0)
        of_bucket[1] += max(-residual, 0.0)
        of_bucket[2] += weights[i]
        limits[0] = max(limits[0], -v[i])
        limits[1] = max(limits[1], v[i])


@compiled_sums
def _moments(v: Any, table: Any, codes: Any, weights: Any, low: float, high: float) -> Any:
    squares = variance = 0.0
    for i in range(v.size):
        residual = weights[i] * (table[codes[i]] - v[i])
        squares += residual * residual
        variance += weights[i] * weights[i] * max((high - v[i]) * (v[i] - low), 0.0)
    return squares, variance


class Bounds(NamedTuple):
    """Bounds on the running sum of u - v of m utilities with B buckets.

    lower, upper: [m], of its range. at_borders: [m, B + 1], its values at the borders.
    least, most: [m, B], its bounds inside each bucket.
    """

    lower: Array
    upper: Array
    at_borders: Array
    least: Array
    most: Array


def bounds_of(buckets: Buckets) -> Bounds:
    """Return what the module says of the running sums."""
    positive, negative = buckets.sums[..., POSITIVE], buckets.sums[..., NEGATIVE]
    at_borders = np.pad((positive - negative).cumsum(axis=1), ((0, 0), (1, 0)))
    before, after = at_borders[:, :-1], at_borders[:, 1:]
    is_tied = buckets.ends[..., 1] == -buckets.ends[..., 0]
    least = np.where(is_tied, np.minimum(before, after), before - negative)
    most = np.where(is_tied, np.maximum(before, after), before + positive)
    lower = at_borders.max(axis=1) - at_borders.min(axis=1)
    # With rounding the bounds could be narrower than what they contain.
    upper = np.maximum(most.max(axis=1) - least.min(axis=1), lower)
    return Bounds(lower, upper, at_borders, least, most)
