"""Ranges of sorted running sums under many sets of weights.

The sums of all sets of weights are kept side by side, in vector lanes, and four points are added at
a time. Where a residual has the sign of the one before, no sum of non-negative weights can be
extreme between the two. The weight passed is compared with the edges after every 32nd point.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiled import compiled
from .drawn_ranges import widen

STRETCH = 32
"""Points after which it is asked whether the weight passed has reached an edge."""
TIED, BETWEEN, TURN = 0, 1, 2


@compiled
def ranges_of_weights(
    predicted: Any, orders: Any, payoffs: Any, outcomes: Any, edges: Any, sums: Any
) -> None:
    """As `ranges_of_draws`, for one draw of the labels under many sets of weights.

    `outcomes`: codes [n], weights [n, R], whether some are negative, then without edges [R, E].
    """
    (codes, weights, is_signed), (low, high, at_edges) = outcomes, sums
    rows, n = predicted.shape
    draws, edge_count = edges.shape
    total = np.empty(draws)
    residuals, place = np.empty(n), np.empty(n, np.uint8)
    before = np.empty((-(-n // STRETCH) if edge_count else 0, draws))
    for row in range(rows):
        order = orders[row]
        _find_turns(predicted[row], order, payoffs[row], codes, is_signed, residuals, place)
        smallest, largest = low[row], high[row]
        for draw in range(draws):
            total[draw] = smallest[draw] = largest[draw] = 0.0
        for j in range(0, n, 4):
            if edge_count and j % STRETCH == 0:
                for draw in range(draws):
                    before[j // STRETCH, draw] = total[draw]
            has_turn, are_apart = _kind_of(place[j : j + 4])
            if not are_apart:
                for point in range(j, min(n, j + 4)):
                    w, residual = weights[order[point]], residuals[point]
                    for draw in range(draws):
                        total[draw] += w[draw] * residual
                    if place[point] == TURN:
                        widen(0.0, 0.0, total, smallest, largest)
                continue
            a, b = weights[order[j]], weights[order[j + 1]]
            c, d = weights[order[j + 2]], weights[order[j + 3]]
            r, s, t, u = residuals[j], residuals[j + 1], residuals[j + 2], residuals[j + 3]
            if not has_turn:
                for draw in range(draws):
                    three = total[draw] + a[draw] * r + b[draw] * s + c[draw] * t
                    total[draw] = three + d[draw] * u
                continue
            for draw in range(draws):
                first = total[draw] + a[draw] * r
                second = first + b[draw] * s
                third = second + c[draw] * t
                total[draw] = third + d[draw] * u
                low_of_four = min(min(first, second), min(third, total[draw]))
                high_of_four = max(max(first, second), max(third, total[draw]))
                smallest[draw] = min(smallest[draw], low_of_four) + 0.0
                largest[draw] = max(largest[draw], high_of_four) + 0.0
        _sum_at_edges(order, residuals, weights, edges, before, total, at_edges[row])


@compiled
def _kind_of(four: Any) -> tuple[bool, bool]:
    """Return whether one is a turn; and whether all can be added at once: no turn, or no tie."""
    turns = ties = 0
    for kind in four:
        turns += kind == TURN
        ties += kind == TIED
    return turns > 0, four.size == 4 and (turns == 0 or ties == 0)


@compiled
def _find_turns(
    v: Any, order: Any, table: Any, codes: Any, is_signed: bool, residuals: Any, place: Any
) -> None:
    """Write the residuals in order, and whether a running sum can be extreme after each point.

    It can where a group of tied points ends (`TURN`), not before (`TIED`). Without negative
    weights, a sum between two residuals of the same sign is no extreme one (`BETWEEN`).
    """
    n = order.size
    for j in range(n):
        i = order[j]
        residuals[j] = table[codes[i]] - v[i]
        place[j] = TURN if j == n - 1 or v[i] != v[order[j + 1]] else TIED
    is_alone = place[0] == TURN and not is_signed  # whether a point is tied with no other
    for j in range(1, n):
        was_alone = is_alone
        is_alone = place[j - 1] != TIED and place[j] == TURN and not is_signed
        if was_alone and is_alone and (residuals[j - 1] > 0) == (residuals[j] > 0):
            place[j - 1] = BETWEEN


@compiled
def _sum_at_edges(
    order: Any, residuals: Any, weights: Any, edges: Any, before: Any, total: Any, at_edges: Any
) -> None:
    """Write at_edges [R, E], the running sums where the weight passed reaches the edges [R, E].

    `before` has the running sums before each stretch of points, `total` those after all points.
    """
    draws, count = edges.shape
    passed, passed_before = np.zeros(draws), np.empty(draws)
    edge = np.zeros(draws, np.int64)
    for stretch in range(len(before)):
        for draw in range(draws):
            passed_before[draw] = passed[draw]
        for i in order[stretch * STRETCH : (stretch + 1) * STRETCH]:
            for draw in range(draws):
                passed[draw] += weights[i, draw]
        for draw in range(draws):
            k, reached, sums = edge[draw], passed_before[draw], before[stretch, draw]
            j = stretch * STRETCH
            while k < count and edges[draw, k] < passed[draw]:
                weight, residual = weights[order[j], draw], residuals[j]
                if edges[draw, k] < reached + weight:
                    at_edges[draw, k] = sums + (edges[draw, k] - reached) * residual
                    k += 1
                else:
                    reached += weight
                    sums += weight * residual
                    j += 1
            edge[draw] = k
    for draw in range(draws):
        at_edges[draw, edge[draw] :] = total[draw]
