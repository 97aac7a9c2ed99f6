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

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrics.kernels.buckets import range_by_buckets
from metrics.kernels.compiled import compiled
from metrics.kernels.drawn_ranges import Draws, ranges_of_draws
from metrics.kernels.threads import BLOCK_ELEMENTS, over_blocks, row_blocks
from metrics.kernels.weighted_ranges import weighted_ranges_of_draws, weighted_ranges_of_rows

SUMMED_AT_ONCE = 1 << 22
"""Predictions times draws that a thread works on at a time; it holds the order of the former."""
TILE = 8
"""Utilities read together: where they are columns of a matrix, neighbours share cache lines."""
POINTS = 64
"""Points of a tile that are read utility by utility."""


class PrefixRange(NamedTuple):
    """Sums of residuals for R draws of the labels (or of the weights) and b utilities.

    low, high: [R, b] extremes of the running sum (0 included) at the ends of groups of tied v;
    at_edges: [R, b, edges] the running sum after `edges[k]` points, ties ignored.
    """

    low: Tensor
    high: Tensor
    at_edges: Tensor


def prefix_range(
    predicted: Tensor,
    payoffs: Tensor,
    codes: Tensor,
    edges: Tensor | None = None,
    weights: Tensor | None = None,
    tolerance: float = 0.0,
) -> PrefixRange:
    """Return the extremes of the sorted running sums of payoff - prediction.

    Args:
        predicted: float64 [b, n], the predicted utilities v of b utilities at n points; columns of
            a matrix [n, b] are read in place.
        payoffs: float64 [b, L], the realized utility of each outcome code.
        codes: integers [R, n] in [0, L), the outcome of each point in R draws of the labels.
        edges: increasing integers [E], positions where the running sum is reported, the first 0
            and the last n; with weights float64 [R, E], the weight passed there: a point across
            one is divided.
        weights: float64 or float32 [R, n], of each point, with codes [1, n]; or [1, n] with R
            draws.
        tolerance: neighbours in the order of v that lie no further apart are tied; for one draw
            without edges. A rounding-size change of v then changes the extremes by no more than
            rounding.
    """
    if weights is not None:
        return _weighted(predicted, payoffs, codes, edges, weights)
    if predicted.device.type != "cpu":
        none = torch.tensor([], dtype=torch.int64)
        positions = none if edges is None else edges
        return prefix_range_torch(predicted, payoffs, codes, positions, tolerance=tolerance)
    if len(codes) == 1 and edges is None:
        return _one_draw(predicted, payoffs, codes, tolerance)
    if edges is None:
        edges = torch.tensor([0, predicted.shape[1]])
    return _several_draws(predicted, payoffs, codes, edges)


def prefix_range_torch(
    predicted: Tensor,
    payoffs: Tensor,
    codes: Tensor,
    edges: Tensor,
    weights: Tensor | None = None,
    tolerance: float = 0.0,
) -> PrefixRange:
    """`prefix_range` in plain torch: any device; the reference for the compiled versions."""
    ordered, order = torch.sort(predicted, dim=1, stable=True)
    ends = _ends(ordered, tolerance)
    edges = edges.to(predicted.device)
    draws = max(len(codes), 1 if weights is None else len(weights))
    low, high, at_edges = [], [], []
    for k, draw in enumerate(codes.to(torch.int64).expand(draws, -1)):
        residuals = payoffs.gather(1, draw[order]) - ordered
        if weights is None:
            sums = residuals.cumsum(dim=1)
            at_edges.append(torch.nn.functional.pad(sums, (1, 0))[:, edges])
        else:
            weight = weights.double().expand(draws, -1)[k][order]
            sums = (weight * residuals).cumsum(dim=1)
            passed, wanted = weight.cumsum(dim=1), edges.expand(draws, -1)[k]
            place = torch.searchsorted(passed, wanted.expand(len(passed), -1).contiguous())
            place = place.clamp(max=passed.shape[1] - 1)
            beyond = (passed.gather(1, place) - wanted).clamp(min=0)
            at_edges.append(sums.gather(1, place) - beyond * residuals.gather(1, place))
        at_ends = sums.where(ends, torch.zeros_like(sums))  # 0 is the empty prefix: always allowed
        low.append(at_ends.min(dim=1).values.clamp(max=0))
        high.append(at_ends.max(dim=1).values.clamp(min=0))
    return PrefixRange(torch.stack(low), torch.stack(high), torch.stack(at_edges))


def _ends(ordered: Tensor, tolerance: float) -> Tensor:
    """Where a group of tied predictions ends: bool, the shape of `ordered` [b, n]."""
    gaps = ordered[:, 1:] - ordered[:, :-1] > tolerance
    return torch.nn.functional.pad(gaps, (0, 1), value=True)


@compiled
def _ranges_once(
    predicted: Any,
    start: int,
    stop: int,
    payoffs: Any,
    codes: Any,
    tolerance: float,
    low: Any,
    high: Any,
) -> None:
    """Write low, high [b] of the utilities from `start` to `stop`."""
    n = predicted.shape[1]
    v = np.empty((TILE, n))
    scratch = np.empty(n)
    places = np.empty((2, n), np.int32)
    for first in range(start, stop, TILE):
        width = min(TILE, stop - first)
        for point in range(0, n, POINTS):
            for k in range(width):
                for i in range(point, min(n, point + POINTS)):
                    v[k, i] = predicted[first + k, i]
        for row in range(first, first + width):
            low[row], high[row] = range_by_buckets(
                v[row - first], payoffs[row], codes, scratch, places, tolerance
            )


def _one_draw(predicted: Tensor, payoffs: Tensor, codes: Tensor, tolerance: float) -> PrefixRange:
    v, table = predicted.numpy(), payoffs.contiguous().numpy()
    outcome = _short_codes(codes, table.shape[1])[0]
    rows, n = v.shape
    low, high = np.empty(rows), np.empty(rows)

    def work(start: int, stop: int) -> None:
        _ranges_once(v, start, stop, table, outcome, tolerance, low, high)

    over_blocks(work, row_blocks(rows, n, max(BLOCK_ELEMENTS, TILE * n)))
    at_edges = predicted.new_empty(1, rows, 0)
    return PrefixRange(torch.from_numpy(low)[None], torch.from_numpy(high)[None], at_edges)


def _several_draws(predicted: Tensor, payoffs: Tensor, codes: Tensor, edges: Tensor) -> PrefixRange:
    v, table = predicted.contiguous().numpy(), payoffs.contiguous().numpy()
    outcomes = _short_codes(codes, table.shape[1])
    draws = Draws.of(np.ascontiguousarray(outcomes.T))
    positions = edges.to(torch.int64).contiguous().numpy()
    assert positions[0] == 0 and positions[-1] == v.shape[1], "edges: expected 0, …, n"
    sums = _empty_sums(len(v), len(outcomes), positions.size)

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        order = _order(v[part], positions.size > 2)
        ranges_of_draws(
            v[part], order, table[part], *draws, positions, *(array[part] for array in sums)
        )

    over_blocks(work, row_blocks(*_work_of(v, len(outcomes))))
    return _by_draw(sums)


def _weighted(
    predicted: Tensor, payoffs: Tensor, codes: Tensor, edges: Tensor | None, weights: Tensor
) -> PrefixRange:
    if edges is None:
        edges = torch.zeros(len(weights), 0, dtype=torch.float64)
    if predicted.device.type != "cpu":
        return prefix_range_torch(predicted, payoffs, codes, edges, weights)
    v, table = predicted.contiguous().numpy(), payoffs.contiguous().numpy()
    outcomes = _short_codes(codes, table.shape[1])
    positions = edges.contiguous().numpy()
    if len(codes) == 1:
        kernel: Any = weighted_ranges_of_rows
        given = outcomes[0], np.ascontiguousarray(weights.numpy().T, np.float64), positions
    else:
        kernel = weighted_ranges_of_draws
        by_point = np.ascontiguousarray(outcomes.T)
        given = by_point, np.ascontiguousarray(weights[0].numpy(), np.float64), positions[0]
    draws = max(len(codes), len(weights))
    sums = _empty_sums(len(v), draws, edges.shape[1])

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        order = _order(v[part], positions.size > 0)
        kernel(v[part], order, table[part], *given, *(array[part] for array in sums))

    over_blocks(work, row_blocks(*_work_of(v, draws)))
    return _by_draw(sums)


def _work_of(v: NDArray[np.float64], draws: int) -> tuple[int, int, int]:
    """Return how `row_blocks` shall split the rows of v [b, n]."""
    return len(v), v.shape[1] * draws, SUMMED_AT_ONCE


def _order(v: NDArray[np.float64], stable: bool) -> NDArray[np.int32]:
    """Return what sorts each row of v.

    Where bins may cut ties, these keep the order of their points. Otherwise ties may be added up in
    any order, and NumPy sorts in vector lanes.
    """
    return np.argsort(v, axis=1, kind="stable" if stable else None).astype(np.int32)


def _short_codes(codes: Tensor, outcomes: int) -> NDArray[Any]:
    """Return `codes` as unsigned integers of 16 bits, of 32 where they do not suffice.

    Unsigned indices need no check for negative values, short ones take less time to read, and the
    kernels are compiled for one type.
    """
    return codes.to(torch.uint16 if outcomes <= 1 << 16 else torch.uint32).contiguous().numpy()


Sums = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


def _empty_sums(rows: int, draws: int, edges: int) -> Sums:
    """Return room for low, high [b, R] and at_edges [b, R, E].

    They are ordered by utility: any rows of them are then whole arrays, of the layout for which the
    kernels are compiled.
    """
    return np.empty((rows, draws)), np.empty((rows, draws)), np.empty((rows, draws, edges))


def _by_draw(sums: Sums) -> PrefixRange:
    """Return what the kernels wrote as [R, b] and [R, b, E]."""
    arrays = (np.ascontiguousarray(array.swapaxes(0, 1)) for array in sums)
    return PrefixRange(*map(torch.from_numpy, arrays))
