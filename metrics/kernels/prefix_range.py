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

Two implementations, chosen by the device: numba on the CPU (buckets for one draw of the labels, a
sort for several), `torch.sort` and `torch.cumsum` elsewhere. Both sum in float64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .buckets import memory_of, ranges_by_buckets
from .drawn_ranges import draws_of, ranges_of_draws
from .ranks import descending_order
from .threads import BLOCK_ELEMENTS, by_row, over_blocks, row_blocks
from .weighted_ranges import ranges_of_weights

SUMMED_AT_ONCE = 1 << 22
"""Predictions times draws that a thread works on at a time; it holds the order of the former."""
TOGETHER = 8
"""Fewest utilities of a block: where they are columns of a matrix, neighbours share cache lines."""
Orders = list[NDArray[np.int32]]
"""What sorts predictions [b, n], once it is known."""


def prefix_range(
    predicted: Tensor,
    payoffs: Tensor,
    codes: Tensor,
    edges: Tensor | None = None,
    weights: Tensor | None = None,
    tolerance: float = 0.0,
    margin: float = math.inf,
    orders: Orders | None = None,
) -> tuple[Tensor, Tensor]:
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
        margin: for one draw without edges on the CPU. Ranges that are smaller than the largest by
            more than this need not be exact: the result may be bounds instead, whose range is also
            smaller by more than this. That saves time in a search for the largest.
        orders: what calls with the same predictions share: their order on the CPU.
    """
    if edges is None:
        edges = torch.zeros(1 if weights is None else len(weights), 0)
        if len(codes) == 1 and weights is None and predicted.device.type == "cpu":
            return _one_draw(predicted, payoffs, codes, tolerance, margin)
    if predicted.device.type != "cpu":
        return prefix_range_torch(predicted, payoffs, codes, edges, weights, tolerance)
    return _several(predicted, payoffs, codes, edges, weights, [] if orders is None else orders)


def prefix_range_torch(
    predicted: Tensor,
    payoffs: Tensor,
    codes: Tensor,
    edges: Tensor,
    weights: Tensor | None = None,
    tolerance: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """`prefix_range` in plain torch: any device; the reference for the compiled versions."""
    ordered, order = torch.sort(predicted, dim=1, stable=True)
    gaps = ordered[:, 1:] - ordered[:, :-1] > tolerance
    ends = torch.nn.functional.pad(gaps, (0, 1), value=True)  # of groups of tied predictions
    weights = torch.ones_like(ordered[:1]) if weights is None else weights.double()
    edges = edges.to(ordered)
    draws = max(len(codes), len(weights))
    low, high, at_edges = [], [], []
    for k, draw in enumerate(codes.to(torch.int64).expand(draws, -1)):
        weight = weights.expand(draws, -1)[k][order]
        residuals = payoffs.gather(1, draw[order]) - ordered
        sums, passed = (weight * residuals).cumsum(dim=1), weight.cumsum(dim=1)
        wanted = edges.expand(draws, -1)[k].expand(len(passed), -1).contiguous()
        place = torch.searchsorted(passed, wanted).clamp(max=passed.shape[1] - 1)
        beyond = (passed.gather(1, place) - wanted).clamp(min=0)
        at_edges.append(sums.gather(1, place) - beyond * residuals.gather(1, place))
        at_ends = sums.where(ends, torch.zeros_like(sums))  # 0 is the empty prefix: always allowed
        low.append(at_ends.min(dim=1).values.clamp(max=0))
        high.append(at_ends.max(dim=1).values.clamp(min=0))
    return torch.stack(high) - torch.stack(low), torch.stack(at_edges)


def _one_draw(
    predicted: Tensor, payoffs: Tensor, codes: Tensor, tolerance: float, margin: float
) -> tuple[Tensor, Tensor]:
    table = payoffs.contiguous().numpy()
    outcome = _short_codes(codes, table.shape[1])[0]
    rows, n = predicted.shape
    ranges = np.empty(rows)

    def work(start: int, stop: int) -> None:
        block = slice(start, stop)
        v = by_row(predicted[block])
        given = v, v.view(np.int64), table[block], outcome, memory_of(n)
        ranges_by_buckets(*given, tolerance, margin, ranges[block])

    over_blocks(work, row_blocks(rows, n, max(BLOCK_ELEMENTS, TOGETHER * n)))
    return torch.from_numpy(ranges)[None], predicted.new_empty(1, rows, 0)


def _several(
    predicted: Tensor,
    payoffs: Tensor,
    codes: Tensor,
    edges: Tensor,
    weights: Tensor | None,
    orders: Orders,
) -> tuple[Tensor, Tensor]:
    """Sort each utility's predictions once, for all draws of the labels or all sets of weights."""
    v, table = predicted.contiguous().numpy(), payoffs.contiguous().numpy()
    outcomes = _short_codes(codes, table.shape[1])
    kernel: Any = ranges_of_draws
    if weights is not None and len(weights) > 1:
        kernel = ranges_of_weights
        # Reading weights takes most of the time: whole ones, as of resampled points, are bytes.
        short = weights.to(torch.uint8)
        read = short if torch.equal(short.to(weights.dtype), weights) else weights
        by_point, is_signed = np.ascontiguousarray(read.numpy().T), bool(weights.min() < 0)
        given: tuple[Any, ...] = outcomes[0], by_point, is_signed
    else:
        of_points = np.ones(v.shape[1]) if weights is None else weights[0].double().numpy()
        given = (*draws_of(np.ascontiguousarray(outcomes.T)), of_points)
    positions = edges.to(torch.float64).contiguous().numpy()
    if not orders:
        orders.append(descending_order(torch.from_numpy(-v)).numpy())  # bins may cut ties
    # By utility: the arrays of a block of utilities are whole, as the kernels are compiled for.
    draws = max(len(codes), len(positions))
    low, high = np.empty((len(v), draws)), np.empty((len(v), draws))
    at_edges = np.empty((len(v), draws, positions.shape[1]))

    def work(start: int, stop: int) -> None:
        block = slice(start, stop)
        sums = low[block], high[block], at_edges[block]
        kernel(v[block], orders[0][block], table[block], given, positions, sums)

    over_blocks(work, row_blocks(len(v), v.shape[1] * draws, SUMMED_AT_ONCE))
    by_draw = (np.ascontiguousarray(array.swapaxes(0, 1)) for array in (high - low, at_edges))
    ranges, sums_at_edges = map(torch.from_numpy, by_draw)
    return ranges, sums_at_edges


def _short_codes(codes: Tensor, outcomes: int) -> NDArray[Any]:
    """Return unsigned integers of 16 or 32 bits: read fast, without a check for negative ones."""
    return codes.to(torch.uint16 if outcomes <= 1 << 16 else torch.uint32).contiguous().numpy()
