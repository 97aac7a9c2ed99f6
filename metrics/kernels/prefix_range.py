"""The one primitive below every calibration error: the range of a sorted running sum.

For predicted utilities v and realized utilities u, sort by v and cumulate the residuals u - v. Then

* UC (eq. 3.2 of the paper) is the range (max - min) of the running sum, taken where groups of equal
  v end, divided by n: a sum over any closed interval is the difference of two such values;
* a binned error with equal-weight bins is the sum of |differences| at fixed positions.

Both come out of one pass, and the order of v does not depend on the labels, so further draws of the
labels (the noise floor) cost one gather each and no sort. Realized utilities are given as
`payoffs[utility, code]` with a small integer code per point (its class, or the rank of its class),
which spares the matrix utilities × points. Points may carry weights, several sets of them for one
draw of the labels: resampled points, or multipliers of either sign.

Two implementations, chosen by the device: numba on the CPU (buckets for one draw of the labels, the
exact radix sort of `row_sort` for several), `torch.sort` and `torch.cumsum` elsewhere. Both sum in
float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrics.kernels.buckets import range_by_buckets
from metrics.kernels.columns import TILE, ranges_of_columns, short_codes
from metrics.kernels.compiled import compiled
from metrics.kernels.drawn_ranges import Draws, ranges_of_draws
from metrics.kernels.row_sort import argsort_rows
from metrics.kernels.threads import over_row_blocks
from metrics.kernels.weighted_ranges import weighted_ranges_of_rows

SORTED_AT_ONCE = 1 << 22
"""Predictions whose order a thread holds at a time: 16 MiB."""


class PrefixRange(NamedTuple):
    """Sums of residuals for R draws of the labels (or of the weights) and b utilities.

    low, high: [R, b] extremes of the running sum (0 included) at the ends of groups of equal v;
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
) -> PrefixRange:
    """Return the extremes of the sorted running sums of payoff - prediction.

    Args:
        predicted: float64 [b, n], the predicted utilities v of b utilities at n points.
        payoffs: float64 [b, L], the realized utility of each outcome code.
        codes: integers [R, n] in [0, L), the outcome of each point in R draws of the labels.
        edges: increasing integers [E], positions where the running sum is reported, the first 0
            and the last n; with weights float64 [R, E], the weight passed there: a point across
            one is divided.
        weights: float64 or float32 [R, n], of each point; codes are [1, n] then.
    """
    if weights is not None:
        return _weighted(predicted, payoffs, codes[0], edges, weights)
    if edges is None:
        edges = torch.tensor([0, predicted.shape[1]])
    if predicted.device.type != "cpu":
        return prefix_range_torch(predicted, payoffs, codes, edges)
    if len(codes) == 1:
        return _one_draw(predicted, payoffs, codes, edges)
    return _several_draws(predicted, payoffs, codes, edges)


def prefix_range_torch(
    predicted: Tensor, payoffs: Tensor, codes: Tensor, edges: Tensor
) -> PrefixRange:
    """`prefix_range` in plain torch: any device; the reference for the compiled version."""
    ordered, order = torch.sort(predicted, dim=1, stable=True)
    ends = torch.ones_like(ordered, dtype=torch.bool)
    ends[:, :-1] = ordered[:, 1:] != ordered[:, :-1]
    edges = edges.to(predicted.device)
    low, high, at_edges = [], [], []
    for draw in codes.to(torch.int64):
        sums = (payoffs.gather(1, draw[order]) - ordered).cumsum(dim=1)
        at_ends = sums.where(ends, torch.zeros_like(sums))  # 0 is the empty prefix: always allowed
        low.append(at_ends.min(dim=1).values.clamp(max=0))
        high.append(at_ends.max(dim=1).values.clamp(min=0))
        at_edges.append(torch.nn.functional.pad(sums, (1, 0))[:, edges])
    return PrefixRange(torch.stack(low), torch.stack(high), torch.stack(at_edges))


@compiled
def _ranges_once(
    predicted: Any, payoffs: Any, codes: Any, edges: Any, low: Any, high: Any, at_edges: Any
) -> None:
    """Write low, high [b] and at_edges [b, edges] of one draw, which needs hardly any sorting."""
    rows, n = predicted.shape
    scratch = np.empty((3, n))
    places = np.empty((4, n), np.int32)
    for row in range(rows):
        low[row], high[row] = range_by_buckets(
            predicted[row], payoffs[row], codes, edges, scratch, places, at_edges[row], 0.0
        )


def _one_draw(predicted: Tensor, payoffs: Tensor, codes: Tensor, edges: Tensor) -> PrefixRange:
    table = payoffs.contiguous().numpy()
    outcome = short_codes(codes, table.shape[1])[0]
    positions = edges.to(torch.int64).contiguous().numpy()
    rows, found = len(predicted), _Found.of(len(predicted), 1, positions.size)
    by_column = rows > 1 and predicted.stride(0) == 1
    v = predicted.T.numpy() if by_column else predicted.contiguous().numpy()
    columns = np.arange(rows)

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        own = [array[part, 0] for array in found]
        if by_column:
            ranges_of_columns(v, columns[part], table[part], outcome, positions, *own, 0.0)
        else:
            _ranges_once(v[part], table[part], outcome, positions, *own)

    over_row_blocks(work, rows, v.size, TILE if by_column else 1)
    return found.by_draw()


def _several_draws(predicted: Tensor, payoffs: Tensor, codes: Tensor, edges: Tensor) -> PrefixRange:
    v, table = predicted.contiguous().numpy(), payoffs.contiguous().numpy()
    outcomes = short_codes(codes, table.shape[1])
    draws = Draws.of(np.ascontiguousarray(outcomes.T))
    positions = edges.to(torch.int64).contiguous().numpy()
    assert positions[0] == 0 and positions[-1] == v.shape[1], "edges: expected 0, …, n"
    found = _Found.of(len(v), len(outcomes), positions.size)

    def work(start: int, stop: int) -> None:
        for part, order in _sorted_parts(v, start, stop):
            own = (array[part] for array in found)
            ranges_of_draws(v[part], order, table[part], *draws, positions, *own)

    over_row_blocks(work, len(v), v.size * len(outcomes))
    return found.by_draw()


def _weighted(
    predicted: Tensor,
    payoffs: Tensor,
    codes: Tensor,
    edges: Tensor | None,
    weights: Tensor,
) -> PrefixRange:
    if edges is None:
        edges = torch.zeros(len(weights), 0, dtype=torch.float64)
    if predicted.device.type != "cpu":
        return weighted_prefix_range_torch(predicted, payoffs, codes, edges, weights)
    draws, rows = len(weights), len(predicted)
    found = _Found.of(rows, draws, edges.shape[1])
    v, table = predicted.contiguous().numpy(), payoffs.contiguous().numpy()
    outcome = short_codes(codes, table.shape[1])
    by_point = np.ascontiguousarray(weights.numpy().T, np.float64)
    positions = edges.contiguous().numpy()

    def work(start: int, stop: int) -> None:
        for part, order in _sorted_parts(v, start, stop):
            own = (array[part] for array in found)
            weighted_ranges_of_rows(v[part], order, table[part], outcome, by_point, positions, *own)

    over_row_blocks(work, rows, v.size * draws)
    return found.by_draw()


def _sorted_parts(
    v: NDArray[np.float64], first: int, last: int
) -> Iterator[tuple[slice, NDArray[np.int32]]]:
    """Yield the rows from `first` to `last` in parts, with the order of each row."""
    step = max(1, SORTED_AT_ONCE // v.shape[1])
    for start in range(first, last, step):
        part = slice(start, min(start + step, last))
        found = np.empty(v[part].shape, np.int32)
        argsort_rows(v[part], False, found)
        yield part, found


class _Found(NamedTuple):
    """What kernels write, utility by utility: blocks of utilities then are whole arrays.

    Parts of another layout than the whole would have every kernel compiled twice.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    at_edges: NDArray[np.float64]

    @classmethod
    def of(cls, rows: int, draws: int, edges: int) -> _Found:
        """Room for b utilities and R draws."""
        pair = np.empty((2, rows, draws))
        return cls(pair[0], pair[1], np.empty((rows, draws, edges)))

    def by_draw(self) -> PrefixRange:
        """[R, b] and [R, b, E]."""
        arrays = (np.ascontiguousarray(array.swapaxes(0, 1)) for array in self)
        return PrefixRange(*map(torch.from_numpy, arrays))


def weighted_prefix_range_torch(
    predicted: Tensor,
    payoffs: Tensor,
    codes: Tensor,
    edges: Tensor,
    weights: Tensor,
) -> PrefixRange:
    """`prefix_range` with weights in plain torch, for codes [n]: any device; the reference."""
    ordered, order = torch.sort(predicted, dim=1, stable=True)
    ends = torch.ones_like(ordered, dtype=torch.bool)
    ends[:, :-1] = ordered[:, 1:] != ordered[:, :-1]
    residuals = payoffs.gather(1, codes.to(torch.int64)[order]) - ordered
    low, high, at_edges = [], [], []
    for draw, wanted in zip(weights.double(), edges.to(predicted.device), strict=True):
        sums = (draw[order] * residuals).cumsum(dim=1)
        at_ends = sums.where(ends, torch.zeros_like(sums))
        low.append(at_ends.min(dim=1).values.clamp(max=0))
        high.append(at_ends.max(dim=1).values.clamp(min=0))
        passed = draw[order].cumsum(dim=1)
        place = torch.searchsorted(passed, wanted.expand(len(passed), -1).contiguous())
        place = place.clamp(max=passed.shape[1] - 1)
        beyond = (passed.gather(1, place) - wanted).clamp(min=0)
        at_edges.append(sums.gather(1, place) - beyond * residuals.gather(1, place))
    return PrefixRange(torch.stack(low), torch.stack(high), torch.stack(at_edges))
