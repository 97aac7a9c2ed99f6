"""Isotonic regression (Zadrozny & Elkan 2002), one-vs-all or global.

One-vs-all fits, for each class c, the non-decreasing map of p_c that is closest to 1{y = c} in
least squares; global fits one map to all n × C pairs (p_c, 1{y = c}). Pool adjacent violators is
linear once the points are sorted, so the sort is the cost: the exact radix sort of
`metrics.row_sort`, a column at a time, on threads. Between the ends of its constant pieces the map
is interpolated linearly, beyond them it is constant, as scikit-learn does (`out_of_bounds="clip"`).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor

from calibrators.base import Calibrator
from calibrators.blocks import over_blocks
from calibrators.softmax import softmax
from metrics.row_sort import fill_keys, sort_keys
from metrics.validation import InputError

Array = NDArray[Any]


@njit(nogil=True, cache=True)
def pooled_means(scores: Any, hits: Any, x: Any, level: Any) -> int:
    """Fit the isotonic map of `scores` [n] to `hits` [n]; return the number of thresholds.

    Writes the thresholds to `x` and their values to `level` (both of size >= 2n): first and last
    score of every constant piece, once if they are the same.
    """
    n = scores.size
    keys = np.empty(n, np.float64)
    order = np.empty(n, np.int32)
    fill_keys(scores, False, keys, order)
    sort_keys(keys.view(np.uint64), order, np.empty(n, np.uint64), np.empty(n, np.int32))
    first = np.empty(n, np.float64)
    last = np.empty(n, np.float64)
    weight = np.empty(n, np.float64)
    total = np.empty(n, np.float64)
    pieces = 0
    i = 0
    while i < n:
        score = scores[order[i]]
        count = gain = 0.0
        while i < n and scores[order[i]] == score:  # equal scores must get one value
            count += 1
            gain += hits[order[i]]
            i += 1
        first[pieces] = last[pieces] = score
        weight[pieces] = count
        total[pieces] = gain
        pieces += 1
        # Products instead of quotients: hits and counts are small integers, so this is exact.
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


@njit(nogil=True, cache=True)
def interpolate_rows(scores: Any, x: Any, level: Any, offsets: Any, out: Any) -> None:
    """Apply the map of column c, thresholds offsets[c] … offsets[c + 1], to `scores` [n, C]."""
    for i in range(scores.shape[0]):
        for c in range(scores.shape[1]):
            low, high = offsets[c], offsets[c + 1] - 1
            s = scores[i, c]
            if s <= x[low]:
                out[i, c] = level[low]
            elif s >= x[high]:
                out[i, c] = level[high]
            else:
                while high - low > 1:
                    middle = (low + high) // 2
                    if x[middle] <= s:
                        low = middle
                    else:
                        high = middle
                slope = (level[high] - level[low]) / (x[high] - x[low])
                out[i, c] = level[low] + slope * (s - x[low])


class IsotonicCalibration(Calibrator):
    """Isotonic regression of the softmax probabilities.

    Args:
        mode: "one_vs_all", a map per class, or "global", one map for all.
        normalize: divide rows by their sum (a zero row becomes uniform). Without, rows sum to about
            0.3 - 2.5 and `predict_proba` returns them as they are.

    Attributes:
        thresholds_, values_: float64, all maps one after the other;
        offsets_: int64 [maps + 1], where each map starts.
    """

    def __init__(
        self, mode: Literal["one_vs_all", "global"] = "one_vs_all", normalize: bool = True
    ) -> None:
        self.mode = mode
        self.normalize = normalize

    def _fit(self, logits: Tensor, labels: Tensor) -> None:
        if self.mode not in ("one_vs_all", "global"):
            raise InputError(f"mode: {self.mode!r}, expected one_vs_all or global")
        p = softmax(logits).cpu().numpy()
        y = labels.cpu().numpy()
        if self.mode == "global":
            hits = np.zeros(p.shape)
            hits[np.arange(len(y)), y] = 1
            maps = [_fitted(p.ravel(), hits.ravel())]
        else:
            maps = over_blocks(
                lambda c, _: _fitted(np.ascontiguousarray(p[:, c]), (y == c).astype(np.float64)),
                rows=p.shape[1],
                columns=1,
                elements=1,
            )
        self.thresholds_ = np.concatenate([x for x, _ in maps])
        self.values_ = np.concatenate([level for _, level in maps])
        self.offsets_ = np.cumsum([0, *(len(x) for x, _ in maps)], dtype=np.int64)

    def _predict_proba(self, logits: Tensor) -> Tensor:
        p = softmax(logits).cpu().numpy()
        columns = p.reshape(-1, 1) if self.mode == "global" else p
        out = np.empty(columns.shape)

        def work(start: int, stop: int) -> None:
            rows = slice(start, stop)
            maps = (self.thresholds_, self.values_, self.offsets_)
            interpolate_rows(columns[rows], *maps, out[rows])

        over_blocks(work, *columns.shape)
        mapped = torch.from_numpy(out.reshape(p.shape)).to(logits.device)
        return _normalized(mapped) if self.normalize else mapped


def _fitted(scores: Array, hits: Array) -> tuple[Array, Array]:
    x, level = np.empty(2 * scores.size), np.empty(2 * scores.size)
    used = pooled_means(scores, hits, x, level)
    return x[:used].copy(), level[:used].copy()


def _normalized(rows: Tensor) -> Tensor:
    total = rows.sum(dim=1, keepdim=True)
    uniform = torch.full_like(rows, 1 / rows.shape[1])
    return torch.where(total > 0, rows / total.where(total > 0, torch.ones_like(total)), uniform)
