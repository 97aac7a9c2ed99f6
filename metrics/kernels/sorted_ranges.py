"""Ranges of sorted running sums under many draws of the labels, or under many sets of weights.

*Draws.* Most draws give a point the same label, because a forecast is sure of most points. So all
draws share one running sum, that of each point's usual outcome. A draw keeps only the difference
that its unusual outcomes make: one update per unusual outcome, instead of one lookup in the payoffs
for each point and draw. Between two unusual outcomes all draws change by the same amount. So we
track the extremes of the shared sum and add each draw's difference once per stretch.

*Weights.* The sums of all sets of weights are kept side by side, in vector lanes. Where a residual
has the sign of the one before, no sum of non-negative weights can be extreme between the two. The
weight passed is compared with the edges after every 32nd point. These two take an evaluation of
15,000 points and a thousand classes from 57 to 40 core seconds, with the same bytes.

A bin ends where the weight passed reaches an edge. A point across an edge is divided.

Running extremes are stored as `min(…) + 0.0`. Without the addition, the compiler stores only where
the extreme changes, and such masked stores are four times as slow on AMD processors with AVX2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrics.kernels.compiled import compiled

STRETCH = 32
"""Points after which it is asked whether the weight passed has reached an edge."""


class Draws(NamedTuple):
    """R draws of the outcome codes of n points.

    usual: [n], a frequent code of each point; those of other codes, point by point: `draw` and
    `code` [k], point i from `starts[i]` to `starts[i + 1]`. Draws are numbered in two bytes where
    that is enough: with thousands of points, reading these lists takes most of the time.
    """

    usual: NDArray[Any]
    starts: NDArray[np.int64]
    draw: NDArray[Any]
    code: NDArray[Any]

    @classmethod
    def of(cls, codes: NDArray[Any]) -> Draws:
        """Split `codes` [n, R] into usual and unusual ones."""
        n = len(codes)
        usual, starts = np.zeros(n, codes.dtype), np.zeros(n + 1, np.int64)
        _find_usual(codes, usual, starts)
        np.cumsum(starts, out=starts)
        numbers = np.uint16 if codes.shape[1] <= 1 << 16 else np.uint32
        unusual = np.empty(starts[-1], numbers), np.empty(starts[-1], codes.dtype)
        _list_unusual(codes, usual, starts, *unusual)
        return cls(usual, starts, *unusual)


@compiled
def _find_usual(codes: Any, usual: Any, counts: Any) -> None:
    """Write the code of most draws, if more than half agree, and how many others there are."""
    n, draws = codes.shape
    for i in range(n):
        lead = 0  # of the candidate over all other codes (Boyer and Moore)
        for draw in range(draws):
            if lead == 0:
                usual[i] = codes[i, draw]
            lead += 1 if codes[i, draw] == usual[i] else -1
        for draw in range(draws):
            counts[i + 1] += codes[i, draw] != usual[i]


@compiled
def _list_unusual(codes: Any, usual: Any, starts: Any, draw_of: Any, code_of: Any) -> None:
    n, draws = codes.shape
    for i in range(n):
        k = starts[i]
        for draw in range(draws):
            if codes[i, draw] != usual[i]:
                draw_of[k] = draw
                code_of[k] = codes[i, draw]
                k += 1


@compiled
def ranges_of_draws(
    predicted: Any,
    orders: Any,
    payoffs: Any,
    usual: Any,
    starts: Any,
    draw_of: Any,
    code_of: Any,
    weights: Any,
    edges: Any,
    low: Any,
    high: Any,
    at_edges: Any,
) -> None:
    """Write low, high [b, R] and at_edges [b, R, E]: those of `prefix_range`, by utility.

    orders [b, n] sorts the rows of `predicted`; weights [n]; edges [1, E] increase.
    """
    rows, n = predicted.shape
    draws = low.shape[1]
    away, smallest, largest = np.empty(draws), np.empty(draws), np.empty(draws)
    for row in range(rows):
        v, order, table = predicted[row], orders[row], payoffs[row]
        total = 0.0  # of the usual outcomes; its extremes since any draw went another way
        lowest, highest = np.inf, -np.inf
        away[:] = 0.0
        smallest[:] = 0.0
        largest[:] = 0.0
        edge, passed = 0, 0.0
        for j in range(n):
            i = order[j]
            payoff, weight = table[usual[i]], weights[i]
            first, last = starts[i], starts[i + 1]
            while first < last and table[code_of[first]] == payoff:
                first += 1
            while edge < edges.shape[1] and edges[0, edge] < passed + weight:
                before = at_edges[row, :, edge]
                before[:] = away
                share = edges[0, edge] - passed
                _add_unusual(draw_of, code_of, first, last, table, payoff, share, before)
                before += total + share * (payoff - v[i])
                edge += 1
            passed += weight
            if first < last:
                _widen(lowest, highest, away, smallest, largest)
                lowest, highest = np.inf, -np.inf
            _add_unusual(draw_of, code_of, first, last, table, payoff, weight, away)
            total += weight * (payoff - v[i])
            if j == n - 1 or v[i] != v[order[j + 1]]:
                lowest = min(lowest, total)
                highest = max(highest, total)
        for last_edge in range(edge, edges.shape[1]):  # reached by all points, up to rounding
            at_edges[row, :, last_edge] = total + away
        _widen(lowest, highest, away, smallest, largest)
        low[row] = smallest
        high[row] = largest


@compiled
def _add_unusual(
    draw_of: Any,
    code_of: Any,
    first: int,
    last: int,
    table: Any,
    payoff: float,
    weight: float,
    away: Any,
) -> None:
    """Add what one point's unusual outcomes pay more than its usual one, times its weight."""
    k, end = np.uint64(first), np.uint64(last)  # unsigned: indices that cannot count from the end
    while k < end:
        away[draw_of[k]] += weight * (table[code_of[k]] - payoff)
        k += np.uint64(1)


@compiled
def _widen(lowest: float, highest: float, away: Any, smallest: Any, largest: Any) -> None:
    for draw in range(away.size):
        smallest[draw] = min(smallest[draw], lowest + away[draw]) + 0.0
        largest[draw] = max(largest[draw], highest + away[draw]) + 0.0


@compiled
def ranges_of_weights(
    predicted: Any,
    orders: Any,
    payoffs: Any,
    codes: Any,
    weights: Any,
    is_signed: bool,
    edges: Any,
    low: Any,
    high: Any,
    at_edges: Any,
) -> None:
    """As `ranges_of_draws`, for one draw of the labels, codes [n], under many sets of weights.

    weights [n, R]; is_signed: whether some are negative, then without edges; edges [R, E].
    """
    rows, n = predicted.shape
    draws, edge_count = edges.shape
    total, smallest, largest = np.empty(draws), np.empty(draws), np.empty(draws)
    passed, total_before, passed_before = np.empty(draws), np.empty(draws), np.empty(draws)
    edge = np.empty(draws, np.int64)
    residuals, is_turn = np.empty(n), np.empty(n, np.bool_)
    for row in range(rows):
        order = orders[row]
        _find_turns(predicted[row], order, payoffs[row], codes, is_signed, residuals, is_turn)
        total[:] = 0.0
        smallest[:] = 0.0
        largest[:] = 0.0
        passed[:] = 0.0
        edge[:] = 0
        for first in range(0, n, STRETCH):
            last = min(n, first + STRETCH)
            if edge_count:
                total_before[:] = total
                passed_before[:] = passed
                for j in range(first, last):
                    passed += weights[order[j]]
            for j in range(first, last):
                of_point, residual = weights[order[j]], residuals[j]
                if is_turn[j]:
                    for draw in range(draws):
                        moved = total[draw] + of_point[draw] * residual
                        total[draw] = moved
                        smallest[draw] = min(smallest[draw], moved) + 0.0
                        largest[draw] = max(largest[draw], moved) + 0.0
                else:
                    for draw in range(draws):
                        total[draw] += of_point[draw] * residual
            if edge_count:
                for draw in range(draws):
                    k = edge[draw]
                    if k < edge_count and edges[draw, k] < passed[draw]:
                        edge[draw] = _sums_at(
                            order[first:last],
                            residuals[first:last],
                            weights[:, draw],
                            edges[draw],
                            at_edges[row, draw],
                            total_before[draw],
                            passed_before[draw],
                            k,
                        )
        for draw in range(draws):
            at_edges[row, draw, edge[draw] :] = total[draw]
        low[row] = smallest
        high[row] = largest


@compiled
def _find_turns(
    v: Any, order: Any, table: Any, codes: Any, is_signed: bool, residuals: Any, is_turn: Any
) -> None:
    """Write the residuals in order, and after which points a running sum can be extreme.

    These are the last points of tied groups. Without negative weights, the sum between two untied
    points whose residuals have the same sign is no extreme one.
    """
    n = order.size
    for j in range(n):
        i = order[j]
        residuals[j] = table[codes[i]] - v[i]
        is_turn[j] = j == n - 1 or v[i] != v[order[j + 1]]
    is_alone = is_turn[0] and not is_signed  # whether a point is tied with no other
    for j in range(1, n):
        was_alone = is_alone
        is_alone = is_turn[j - 1] and is_turn[j] and not is_signed
        if was_alone and is_alone and (residuals[j - 1] > 0) == (residuals[j] > 0):
            is_turn[j - 1] = False


@compiled
def _sums_at(
    order: Any,
    residuals: Any,
    weights: Any,
    edges: Any,
    at_edges: Any,
    total: float,
    passed: float,
    edge: int,
) -> int:
    """Write the running sum where the weight passed reaches each of `edges` from number `edge` on.

    `total` and `passed` belong to the point before the first of `order`. Return the next edge.
    """
    for j in range(order.size):
        residual, weight = residuals[j], weights[order[j]]
        while edge < edges.size and edges[edge] < passed + weight:
            at_edges[edge] = total + (edges[edge] - passed) * residual
            edge += 1
        passed += weight
        total += weight * residual
    return edge
