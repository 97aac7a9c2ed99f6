"""Ranges of sorted running sums under many sets of weights of the points, side by side.

Four points at a time where no two are tied: the sums and their extremes are then read and written
once for four. Small whole numbers, as resampling gives, are read as bytes; beyond some thousand
points reading the weights is what takes the time. Neither changes any rounding.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.kernels.compiled import compiled
from metrics.kernels.extremes import larger, smaller

TOGETHER = 4


def short_weights(weights: NDArray[np.float64]) -> NDArray[Any]:
    """Return weights [R, n] by point, [n, R], as bytes if that loses nothing."""
    by_point = np.ascontiguousarray(weights.T)
    if by_point.size and by_point.min() >= 0 and by_point.max() < 256:
        short = by_point.astype(np.uint8)
        if np.array_equal(short, by_point):
            return short
    return by_point


@compiled
def weighted_ranges_of_rows(
    predicted: Any,
    orders: Any,
    payoffs: Any,
    codes: Any,
    weights: Any,
    edges: Any,
    low: Any,
    high: Any,
    at_edges: Any,
) -> None:
    """Write low, high [b, R] and at_edges [b, R, E]: those of `prefix_range`, by utility.

    orders [b, n] sorts the rows of `predicted`; codes [n], weights [n, R]. `edges` [R, E] increase;
    a point across one is divided.
    """
    rows, n = predicted.shape
    draws, count = edges.shape
    ordered, residuals = np.empty(n), np.empty(n)
    total, smallest, largest = np.empty(draws), np.empty(draws), np.empty(draws)
    passed, following = np.empty(draws), np.empty(draws, np.int64)
    for row in range(rows):
        order = orders[row]
        for j in range(n):
            ordered[j] = predicted[row, order[j]]
            residuals[j] = payoffs[row, codes[order[j]]] - ordered[j]
        total[:] = 0.0
        smallest[:] = 0.0
        largest[:] = 0.0
        passed[:] = 0.0
        following[:] = 0
        j = 0
        while j < n:
            untied = TOGETHER if _untied(ordered, j) else 1
            if count:
                some, part = order[j : j + untied], residuals[j : j + untied]
                _pass_edges(weights, some, part, edges, total, passed, following, at_edges[row])
            if untied == TOGETHER:
                _add_untied(weights, order, residuals, j, total, smallest, largest)
            else:
                ends = j == n - 1 or ordered[j] != ordered[j + 1]
                _add_one(weights[order[j]], residuals[j], ends, total, smallest, largest)
            j += untied
        low[row] = smallest
        high[row] = largest
        for draw in range(draws):  # an edge at the sum of all weights may be missed by rounding
            at_edges[row, draw, following[draw] :] = total[draw]


@compiled
def _untied(ordered: Any, j: int) -> bool:
    """Whether the points from j on differ from each other, and the last from the one after it."""
    if j + TOGETHER >= ordered.size:
        return False
    ties = 0
    for k in range(j, j + TOGETHER):
        ties += ordered[k] == ordered[k + 1]
    return ties == 0


@compiled
def _add_untied(
    weights: Any, order: Any, residuals: Any, j: int, total: Any, smallest: Any, largest: Any
) -> None:
    # Four numbers and four rows, no slices: the compiler then keeps to vectors.
    first, second = weights[order[j]], weights[order[j + 1]]
    third, fourth = weights[order[j + 2]], weights[order[j + 3]]
    e, f, g, h = residuals[j], residuals[j + 1], residuals[j + 2], residuals[j + 3]
    for draw in range(total.size):
        one = total[draw] + first[draw] * e
        two = one + second[draw] * f
        three = two + third[draw] * g
        four = three + fourth[draw] * h
        total[draw] = four
        smallest[draw] = smaller(smallest[draw], smaller(smaller(one, two), smaller(three, four)))
        largest[draw] = larger(largest[draw], larger(larger(one, two), larger(three, four)))


@compiled
def _add_one(
    weights: Any, residual: float, ends: bool, total: Any, smallest: Any, largest: Any
) -> None:
    """Add a point; the extremes count where no tied point follows."""
    for draw in range(total.size):
        total[draw] += weights[draw] * residual
    if ends:
        for draw in range(total.size):
            smallest[draw] = smaller(smallest[draw], total[draw])
            largest[draw] = larger(largest[draw], total[draw])


@compiled
def _pass_edges(
    weights: Any,
    points: Any,
    residuals: Any,
    edges: Any,
    total: Any,
    passed: Any,
    following: Any,
    at_edges: Any,
) -> None:
    """Write the sums at the edges among some points, which `total` does not hold yet."""
    count = edges.shape[1]
    for draw in range(total.size):
        reached = passed[draw]
        for k in range(points.size):
            reached += weights[points[k], draw]
        edge = following[draw]
        if edge < count and reached >= edges[draw, edge]:
            weight, running = passed[draw], total[draw]
            for k in range(points.size):
                weight += weights[points[k], draw]
                running += weights[points[k], draw] * residuals[k]
                while edge < count and weight >= edges[draw, edge]:
                    beyond = weight - edges[draw, edge]
                    at_edges[draw, edge] = running - beyond * residuals[k]
                    edge += 1
            following[draw] = edge
        passed[draw] = reached
