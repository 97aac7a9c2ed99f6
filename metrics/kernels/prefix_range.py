"""The one primitive below every calibration error: the range of a sorted running sum.

For predicted utilities v and realized utilities u, sort by v and cumulate the residuals u - v. Then

* UC (eq. 3.2 of the paper) is the range (max - min) of the running sum, taken where groups of equal
  v end, divided by n: a sum over any closed interval is the difference of two such values;
* a binned error with equal-weight bins is the sum of |differences| at fixed positions.

One pass computes both. The order of v does not depend on the labels, so each further draw of the
labels (the noise floor) costs one gather and no sort. Realized utilities are given as
`payoffs[utility, code]` with a small integer code per point (its class, or the rank of its class).
So the matrix utilities × points is never built. Points may carry weights, several sets of them for
one draw of the labels: resampled points, or multipliers of either sign.

One draw of the labels is summed in buckets, several after a sort.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from .buckets import memory_of, ranges_by_buckets
from .drawn_ranges import draws_of, ranges_of_draws
from .grid import on_grid
from .ranks import ascending_order
from .threads import BLOCK_ELEMENTS, by_row, over_blocks, row_blocks
from .weighted_ranges import ranges_of_weights

SUMMED_AT_ONCE = 1 << 22
"""Predictions times draws that a thread works on at a time; it holds the order of the former."""
TOGETHER = 8
"""Fewest utilities of a block: where they are columns of a matrix, neighbours share cache lines."""
Orders = list[NDArray[np.int32]]
"""What sorts predictions [b, n], once it is known."""


def prefix_range(
    predicted: Array,
    payoffs: Array,
    codes: Array,
    edges: Array | None = None,
    weights: Array | None = None,
    tolerance: float = 0.0,
    margin: float = math.inf,
    known: float = 0.0,
    orders: Orders | None = None,
    cells: Array | None = None,
) -> tuple[Array, Array]:
    """Return the range of the running sums of payoff - prediction, and these sums at the edges.

    The range [R, b] is of the sums (0 included) at the ends of groups of tied v, for R draws of the
    labels or of the weights and b utilities. The sums [R, b, E] are those where the weight passed
    reaches each edge, ties ignored.

    Args:
        predicted: float64 [b, n], the predicted utilities v of b utilities at n points; columns of
            a matrix [n, b] are copied block by block.
        payoffs: float64 [b, L], the realized utility of each outcome code.
        codes: integers [R, n] in [0, L), the outcome of each point in R draws of the labels.
        edges: float64 [1, E] or, for R sets of weights, [R, E], increasing: the weight passed where
            the running sum is reported. Without weights this is the number of points. A point
            across an edge is divided.
        weights: float64 or float32 [R, n], of each point, with codes [1, n]; or [1, n] with R
            draws. They are negative only without edges.
        tolerance: neighbours in the order of v that lie no further apart are tied; for one draw
            without edges. A rounding-size change of v then changes the extremes by no more than
            rounding.
        margin: for one draw without edges. Ranges that are smaller than the largest by more than
            this need not be exact: the result may be bounds instead, whose range is also smaller by
            more than this. That saves time in a search for the largest.
        known: a range of utilities outside this call, with which `margin` compares, too.
        orders: what calls with the same predictions share: their order.
        cells: float64 [b, 1], powers of two; for one draw without edges, predictions are rounded to
            multiples of them first (kernels/grid.py), while they are in the cache.
    """
    if edges is None:
        edges = np.zeros((1 if weights is None else len(weights), 0))
        if len(codes) == 1 and weights is None:
            return _one_draw(predicted, payoffs, codes, tolerance, margin, known, cells)
    return _several(predicted, payoffs, codes, edges, weights, [] if orders is None else orders)


def _one_draw(
    predicted: Array,
    payoffs: Array,
    codes: Array,
    tolerance: float,
    margin: float,
    known: float,
    cells: Array | None,
) -> tuple[Array, Array]:
    table = np.ascontiguousarray(payoffs)
    outcome = _short_codes(codes, table.shape[1])[0]
    rows, n = predicted.shape
    ranges = np.empty(rows)

    def work(start: int, stop: int, largest: float) -> None:
        block = slice(start, stop)
        v = by_row(predicted[block])
        if cells is not None:
            v = on_grid(v, cells[block], v if v.flags.owndata else None)
        points = v, v.view(np.int64), table[block], outcome, memory_of(n)
        ranges_by_buckets(*points, tolerance, margin, largest, ranges[block])

    blocks = row_blocks(rows, n, max(BLOCK_ELEMENTS, TOGETHER * n))
    largest = known
    if margin < math.inf:
        # What the first block finds lets the others leave out what is smaller.
        for start, stop in blocks[:1]:
            work(start, stop, known)
            largest = max(known, float(ranges[start:stop].max()))
        blocks = blocks[1:]
    over_blocks(lambda start, stop: work(start, stop, largest), blocks)
    return ranges[None], np.empty((1, rows, 0))


def _several(
    predicted: Array,
    payoffs: Array,
    codes: Array,
    edges: Array,
    weights: Array | None,
    orders: Orders,
) -> tuple[Array, Array]:
    """Sort each utility's predictions once, for all draws of the labels or all sets of weights."""
    v, table = np.ascontiguousarray(predicted), np.ascontiguousarray(payoffs)
    by_draw = _short_codes(codes.T, table.shape[1])
    kernel: Any = ranges_of_draws
    if weights is not None and len(weights) > 1:
        kernel = ranges_of_weights
        is_signed = bool(weights.min() < 0)
        by_point = np.ascontiguousarray((weights if is_signed else _short_weights(weights)).T)
        points: tuple[Any, ...] = np.ascontiguousarray(by_draw[:, 0]), by_point, is_signed
    else:
        of_points = np.ones(v.shape[1])
        if weights is not None:
            of_points = weights[0].astype(np.float64, copy=False)
        points = (*draws_of(by_draw), of_points)
    positions = np.ascontiguousarray(edges, np.float64)
    if not orders:
        orders.append(ascending_order(v))  # bins may cut ties
    # By utility: the arrays of a block of utilities are whole, as the kernels are compiled for.
    draws = max(len(codes), len(positions))
    low, high = np.empty((len(v), draws)), np.empty((len(v), draws))
    at_edges = np.empty((len(v), draws, positions.shape[1]))

    def work(start: int, stop: int) -> None:
        block = slice(start, stop)
        sums = low[block], high[block], at_edges[block]
        kernel(v[block], orders[0][block], table[block], points, positions, sums)

    over_blocks(work, row_blocks(len(v), v.shape[1] * draws, SUMMED_AT_ONCE))
    return np.ascontiguousarray((high - low).T), np.ascontiguousarray(at_edges.swapaxes(0, 1))


def _short_weights(weights: Array) -> Array:
    """Return whole weights, as of resampled points, as bytes: reading takes most of the time."""
    if weights.max() > np.iinfo(np.uint8).max:
        return weights
    short = weights.astype(np.uint8)
    return short if np.array_equal(short, weights) else weights


def _short_codes(codes: Array, outcomes: int) -> NDArray[Any]:
    """Return unsigned integers of 16 or 32 bits: read fast, without a check for negative ones."""
    kind = np.uint16 if outcomes <= 1 << 16 else np.uint32
    return np.ascontiguousarray(codes).astype(kind, copy=False)
