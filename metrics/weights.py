"""Weights of points: counts, or importances whose unit means nothing.

Weights that are all whole numbers are counts: a point of weight 3 stands for three points. Any
others say how much a point counts beside the others, so twice all weights are the same weights.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .arrays import Array

LARGEST_COUNT = float(1 << 53)
"""All larger numbers of float64 are whole, which says nothing about what they mean."""


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


def are_equal(largest: float, total: float, n: float) -> bool:
    """Return whether n weights of the sum `total` are equal, from the largest of them."""
    return math.isclose(largest * n, total)
