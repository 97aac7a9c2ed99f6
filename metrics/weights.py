"""Weights of points: counts, or importances whose unit means nothing.

Weights that are all whole numbers are counts: a point of weight 3 stands for three points. Any
others say how much a point counts beside the others, so twice all weights are the same weights.
Equal weights that are no counts say nothing, and a point of weight 0 is no point.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import Array

LARGEST_COUNT = float(1 << 53)
"""All larger numbers of float64 are whole, which says nothing about what they mean."""
ROUNDING = 1e-9
"""Weights whose ratio is nearer to 1 are equal."""


def are_counts(weights: Array) -> Any:
    """Return whether weights [n] are all whole numbers; of sets of weights [R, n] a bool [R]."""
    are_whole = (weights == np.round(weights)).all(axis=-1)
    return are_whole & (weights.max(axis=-1) < LARGEST_COUNT)


def effective_points(weights: Array) -> float:
    """Return the number of points that weights [n], not all 0, stand for.

    It is the sum of counts, and (Σ w)² / Σ w² of other weights (Kish 1965): the number of points of
    equal weight whose mean varies as much. It is at most n, and does not depend on the unit.
    """
    if are_counts(weights):
        return float(weights.sum())
    shares = weights / weights.max()
    return float(shares.sum() ** 2 / np.square(shares).sum())


def as_counts(weights: Array) -> Array:
    """Return weights [n] in proportion to these, whose sum is their `effective_points`."""
    if are_counts(weights):
        return weights
    shares = weights / weights.max()  # a sum of large weights could overflow
    return shares * (effective_points(weights) / shares.sum())


def are_equal(least: float, largest: float) -> bool:
    """Return whether weights from the `least` one, above 0, to the `largest` one are equal."""
    return largest <= least * (1 + ROUNDING)


def say_nothing(least: float, largest: float) -> bool:
    """Return whether weights from the `least` to the `largest` are as good as none.

    Equal counts above 1 are not: each point stands for several.
    """
    is_count = largest == round(largest) < LARGEST_COUNT
    return are_equal(least, largest) and (largest == 1 or not is_count)


def counted(weights: Array) -> tuple[Array | None, Array | None]:
    """Return which points of `weights` [n] count, bool [n], and the weights of these.

    The first is None if all do, the second if their weights say nothing.
    """
    rows = weights > 0
    of_counted: Array | None = weights[rows]
    if say_nothing(float(weights[rows].min()), float(weights.max())):
        of_counted = None
    return (None if rows.all() else rows), of_counted
