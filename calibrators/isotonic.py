"""Isotonic regression (Zadrozny and Elkan 2002), one-vs-all or global.

One-vs-all fits, for each class c, the non-decreasing map of p_c that is closest to 1{y = c} in
least squares; global fits one map to all n · C pairs (p_c, 1{y = c}). Pool adjacent violators is
linear once the points are sorted, so the sort is the cost: the exact radix sort of
`metrics.kernels.row_sort`, a column at a time, on threads. Between the ends of its constant pieces
the map is interpolated linearly, beyond them it is constant, as scikit-learn does
(`out_of_bounds="clip"`).
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from calibrators.base import Calibrator
from calibrators.inputs import Inputs
from calibrators.modules import PiecewiseLinearMaps
from metrics.kernels.compiled import compiled
from metrics.kernels.row_sort import fill_keys, sort_keys
from metrics.kernels.softmax import softmax
from metrics.kernels.threads import over_blocks, row_blocks
from metrics.validation import InputError

MODES = ("one_vs_all", "global")
COLUMNS = 16
"""Columns copied out of the row-major probabilities at a time: two cache lines of each row."""
RESOLUTION = 1e-15
"""Scores this close to the first of a run count as equal, as in scikit-learn (float64)."""


@compiled
def isotonic_map(scores: Any, hits: Any, counts: Any, per_score: int, x: Any, level: Any) -> int:
    """Fit the isotonic map of `scores` [n] to `hits` [n] (bool); return the number of thresholds.

    Score i weighs counts[i // per_score]: the rows' weights where `scores` are whole rows.

    Writes the thresholds to `x` and their values to `level`: first and last score of every constant
    piece, once if they are the same. A piece begins at a hit or is the first one, so a size of
    2 (hits + 1) is enough for both.
    """
    n = scores.size
    keys = np.empty(n, np.float64)
    order = np.empty(n, np.int32)
    fill_keys(scores, False, keys, order)
    sort_keys(keys.view(np.uint64), order, np.empty(n, np.uint64), np.empty(n, np.int32))
    room = x.size // 2 + 1
    first, last = np.empty(room), np.empty(room)
    weight, total = np.empty(room), np.empty(room)
    pieces = i = 0
    while i < n:
        score = scores[order[i]]
        count = gain = 0.0
        while i < n and scores[order[i]] - score < RESOLUTION:  # equal scores must get one value
            share = counts[order[i] // per_score]
            count += share
            gain += share if hits[order[i]] else 0.0
            i += 1
        first[pieces] = last[pieces] = score
        weight[pieces] = count
        total[pieces] = gain
        pieces += 1
        # Products instead of quotients: of whole weights they are exact.
        while (
            pieces > 1
            and total[pieces - 2] * weight[pieces - 1] >= total[pieces - 1] * weight[pieces - 2]
        ):
            pieces -= 1
            last[pieces - 1] = last[pieces]
            weight[pieces - 1] += weight[pieces]
            total[pieces - 1] += total[pieces]
    used = 0
    for piece in range(pieces):
        x[used] = first[piece]
        level[used] = total[piece] / weight[piece]
        used += 1
        if last[piece] > first[piece]:
            x[used] = last[piece]
            level[used] = level[used - 1]
            used += 1
    return used


@compiled
def fit_columns(
    scores: Any,
    labels: Any,
    counts: Any,
    start: int,
    stop: int,
    room: Any,
    x: Any,
    level: Any,
    used: Any,
) -> None:
    """Fit the maps of columns `start` … `stop` of `scores` [n, C]; map c has its room in
    `x` and `level` from room[c] to room[c + 1], of which used[c] are taken."""
    n = scores.shape[0]
    columns = np.empty((stop - start, n))
    for i in range(n):
        for c in range(start, stop):
            columns[c - start, i] = scores[i, c]
    hits = np.empty(n, np.bool_)
    for c in range(start, stop):
        for i in range(n):
            hits[i] = labels[i] == c
        part = slice(room[c], room[c + 1])
        used[c] = isotonic_map(columns[c - start], hits, counts, 1, x[part], level[part])


@compiled
def interpolate(s: float, x: Any, level: Any, start: int, stop: int) -> float:
    """The value at `s` of the map with thresholds x[start:stop], constant beyond its ends."""
    if s <= x[start]:
        return level[start]
    if s >= x[stop - 1]:
        return level[stop - 1]
    # Bisection whose steps add 0 or half: no branch to mispredict.
    low, length = start, stop - start
    while length > 1:
        half = length // 2
        low += half if x[low + half] <= s else 0
        length -= half
    return level[low] + (level[low + 1] - level[low]) / (x[low + 1] - x[low]) * (s - x[low])


@compiled
def map_rows(
    rows: Any, x: Any, level: Any, offsets: Any, normalize: bool, tie_break: float
) -> None:
    """Overwrite `rows` [n, C] with the values of each column's map, or of the only one, plus
    `tie_break` times what stood there."""
    single = offsets.size == 2
    classes = rows.shape[1]
    for i in range(rows.shape[0]):
        total = 0.0
        for c in range(classes):
            of = 0 if single else c
            value = interpolate(rows[i, c], x, level, offsets[of], offsets[of + 1])
            rows[i, c] = value + tie_break * rows[i, c]
            total += rows[i, c]
        if normalize:
            for c in range(classes):
                rows[i, c] = rows[i, c] / total if total > 0 else 1.0 / classes


class IsotonicCalibration(Calibrator):
    """Isotonic regression of the softmax probabilities.

    The sort and the pooling run on the host's processor whatever device the logits are on.

    Parameters
    ----------
    mode : "one_vs_all", a map per class, or "global", one map for all
    normalize : divide rows by their sum; a row of zeros becomes uniform. Without, `predict_proba`
        returns the mapped values as they are: rows sum to anything (0.3 to 2.5 on the paper's
        benchmarks) and may be all zero.
    tie_break : float >= 0, added to each mapped value times the softmax probability it came from,
        so that classes of equal value keep their order: constant pieces make many. 0 leaves ties;
        1e-9 is what the baseline code of the paper adds.
    inputs : "logits" or "probabilities", what X is

    Attributes
    ----------
    thresholds_, values_ : float64, the maps' points and values, one map after the other
    offsets_ : int64 [maps + 1], where each map starts; one map if global, else C
    """

    thresholds_: NDArray[np.float64]
    values_: NDArray[np.float64]
    offsets_: NDArray[np.int64]
    takes_weights = True

    def __init__(
        self,
        mode: Literal["one_vs_all", "global"] = "one_vs_all",
        normalize: bool = True,
        tie_break: float = 0.0,
        inputs: Inputs = "logits",
    ) -> None:
        self.mode = mode
        self.normalize = normalize
        self.tie_break = tie_break
        self.inputs = inputs

    def _fit(self, logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> None:
        if self.mode not in MODES:
            raise InputError(f"mode: {self.mode!r}; choose {' or '.join(MODES)}")
        self._check_options()
        scores, truth = softmax(logits).cpu().numpy(), labels.cpu().numpy()
        n, classes = scores.shape
        rows = np.ones(n) if weights is None else weights.cpu().numpy()
        if self.mode == "global":
            hits = np.zeros((n, classes), dtype=np.bool_)
            hits[np.arange(n), truth] = True
            x, level = np.empty(2 * (n + 1)), np.empty(2 * (n + 1))
            used = isotonic_map(scores.reshape(-1), hits.reshape(-1), rows, classes, x, level)
            self.thresholds_, self.values_ = x[:used].copy(), level[:used].copy()
            self.offsets_ = np.array([0, used], dtype=np.int64)
            return
        counts = np.bincount(truth, minlength=classes)
        room = np.concatenate([[0], np.cumsum(2 * (counts + 1))])
        x, level = np.empty(room[-1]), np.empty(room[-1])
        taken = np.empty(classes, dtype=np.int64)

        def work(start: int, stop: int) -> None:
            fit_columns(scores, truth, rows, start, stop, room, x, level, taken)

        over_blocks(work, row_blocks(classes, n, COLUMNS * n))
        keep = np.arange(room[-1]) - np.repeat(room[:-1], np.diff(room)) < np.repeat(
            taken, np.diff(room)
        )
        self.thresholds_, self.values_ = x[keep], level[keep]
        self.offsets_ = np.concatenate([[0], np.cumsum(taken)]).astype(np.int64)

    def _check_options(self) -> None:
        if not (isinstance(self.tie_break, Real) and 0 <= self.tie_break < math.inf):
            raise InputError(f"tie_break: {self.tie_break!r}; give a number >= 0, such as 1e-9")
        # On a command line `no` is text, and true to Python: it would do the opposite.
        if not isinstance(self.normalize, (bool, np.bool_)):
            raise InputError(f"normalize: {self.normalize!r}; give true or false")

    def _predict_proba(self, logits: Tensor) -> Tensor:
        self._check_options()
        probabilities = softmax(logits).cpu()
        rows = probabilities.numpy()
        maps = self.thresholds_, self.values_, self.offsets_
        how = bool(self.normalize), float(self.tie_break)
        over_blocks(
            lambda start, stop: map_rows(rows[start:stop], *maps, *how), row_blocks(*rows.shape)
        )
        return probabilities.to(logits.device)

    def _to_module(self, dtype: torch.dtype) -> PiecewiseLinearMaps:
        maps = self.thresholds_, self.values_, self.offsets_
        return PiecewiseLinearMaps.of(*maps, bool(self.normalize), float(self.tie_break), dtype)
