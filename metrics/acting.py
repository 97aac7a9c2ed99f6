"""What a user loses by acting on a forecast as it stands.

Somebody acts where the predicted utility v is at least t, because acting costs t and pays u. Acting
from another threshold s on changes the mean payoff by the sum of u - t over the points between s
and t, divided by n. The largest gain over all t and s is the calibration decision loss restricted
to monotone changes of the forecast (Gopalan et al. 2025, arXiv 2511.13699, and "SCDL", arXiv
2605.17749). It is at most UC, whose terms u - v are at least as large.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .kernels.compiled import compiled
from .resampling import redrawn_outcomes
from .samples import Sample
from .uc import first_largest
from .utilities.blocks import Utilities

EQUAL = 1e-12
"""Predictions whose difference is at most this count as equal: they differ only by rounding, and no
threshold lies between them."""


class ActingGain(NamedTuple):
    """The largest mean gain of one decision by another threshold."""

    gain: float
    """In the unit of the utility."""
    utility: int
    """The number of the utility in its class."""
    threshold: float
    """The t of the user with this gain."""
    act_from: float
    """The smallest v from which this user should act; infinite for "never"."""
    floor: float
    """The 95 % quantile of the largest gain under labels drawn from the forecast."""


def acting_gain(
    utilities: Utilities, sample: Sample, repetitions: int = 200, seed: int = 0
) -> ActingGain:
    """Return the largest gain by another threshold, over a class of utilities and all thresholds.

    Args:
        utilities: any `UtilityClass`, such as `TopK()`.
        sample: the points with their weights.
        repetitions, seed: number of draws of the labels for the floor, and their seed.
    """
    forecast, outcomes = sample.forecast, sample.outcomes
    weights = sample.weights, sample.by_label
    drawn = redrawn_outcomes(forecast, sample.points, repetitions, seed, *weights)
    floors = [acting_gains(utilities, *points)[:, :, 0].max(axis=1) for points in drawn]
    floor = float(np.quantile(np.concatenate(floors), 0.95)) if floors else float("nan")
    gains = acting_gains(utilities, forecast, outcomes)[0]
    worst = first_largest(gains[:, 0])
    gain, threshold, act_from = gains[worst].tolist()
    return ActingGain(gain, worst, threshold, act_from, floor)


def largest_gain(
    predicted: NDArray[np.float64],
    realized: NDArray[np.float64],
    weights: NDArray[np.float64] | None = None,
) -> dict[str, float]:
    """Return `gain`, `threshold` and `act_from` of one utility by name, from v and u: [n] each."""
    counts = np.ones(len(predicted)) if weights is None else np.asarray(weights, np.float64)
    order = np.argsort(predicted, kind="stable")
    order = order[counts[order] > 0]  # 0 times is no point
    numbers = _largest_gain(_with_ties(predicted[order]), realized[order], counts[order])
    return dict(zip(("gain", "threshold", "act_from"), numbers, strict=True))


def _with_ties(ascending: NDArray[np.float64]) -> NDArray[np.float64]:
    """Group ascending v [n] by gaps larger than `EQUAL`; return for each the first of its group."""
    is_first = np.diff(ascending, prepend=-np.inf) > EQUAL
    return ascending[is_first][np.cumsum(is_first) - 1]


def acting_gains(utilities: Utilities, forecast: Any, outcomes: Any) -> NDArray[np.float64]:
    """Return gain, threshold and the v to act from: [R, m, 3]."""
    parts = []
    for block in utilities.tied_blocks(forecast, outcomes):
        v, payoffs = block.predicted, block.payoffs
        codes, weights = block.codes, outcomes.weights
        if weights is None:
            weights = np.ones((1, v.shape[1]))
        gains = np.empty((outcomes.draws, len(v), 3))
        for k, predicted in enumerate(v):
            order = np.argsort(predicted, kind="stable")
            for draw in range(outcomes.draws):
                counts = weights[draw % len(weights)][order]
                counted = counts > 0  # 0 times is no point
                at = order[counted]
                realized = payoffs[k, codes[draw % len(codes), at]]
                ascending = _with_ties(predicted[at])
                gains[draw, k] = _largest_gain(ascending, realized, counts[counted])
        parts.append(gains)
    return np.concatenate(parts, axis=1)


@compiled
def _gain_below(v: Any, u: Any, w: Any, widths: Any, heights: Any, hull: Any) -> Any:
    """Return the largest Σ w (u - t) over points from place j to the last with v <= t; its j and t.

    v is ascending. With the sums W_k of the first k weights w and U_k of w u this is
    U_k - U_j - t (W_k - W_j). For given k and t the best j is where a line of slope t touches the
    lower convex hull of the points (W_j, U_j), and j begins a group of tied v. For a given k the
    smallest t is best.
    """
    n, size = len(v), 0
    best, first, threshold = 0.0, 0, v[0]
    widths[0] = heights[0] = 0.0
    for k in range(n):
        if k == 0 or v[k] > v[k - 1]:
            while size > 1:
                last, before = hull[size - 1], hull[size - 2]
                rise = (heights[last] - heights[before]) * (widths[k] - widths[last])
                if rise < (heights[k] - heights[last]) * (widths[last] - widths[before]):
                    break
                size -= 1
            hull[size] = k
            size += 1
        widths[k + 1] = widths[k] + w[k]
        heights[k + 1] = heights[k] + w[k] * u[k]
        if k + 1 < n and v[k + 1] == v[k]:
            continue
        low, high = 0, size - 1
        while low < high:
            middle = (low + high) // 2
            here, after = hull[middle], hull[middle + 1]
            if heights[after] - heights[here] < v[k] * (widths[after] - widths[here]):
                low = middle + 1
            else:
                high = middle
        j = hull[low]
        gain = heights[k + 1] - heights[j] - v[k] * (widths[k + 1] - widths[j])
        if gain > best:
            best, first, threshold = gain, j, v[k]
    return best, first, threshold


@compiled
def _largest_gain(v: Any, u: Any, w: Any) -> Any:
    """Return the largest gain for v, u, weights w [n], v ascending; its t, and the v to act from.

    Who acts too rarely gains by acting below t. Who acts too often gains by not acting above t,
    which is the same with -v and -u.
    """
    n, whole = len(v), 0.0
    widths, heights, hull = np.empty(n + 1), np.empty(n + 1), np.empty(n + 1, np.int64)
    minus_v, minus_u, backwards = np.empty(n), np.empty(n), np.empty(n)
    for i in range(n):
        whole += w[i]
        minus_v[n - 1 - i], minus_u[n - 1 - i], backwards[n - 1 - i] = -v[i], -u[i], w[i]
    below, first, t = _gain_below(v, u, w, widths, heights, hull)
    above, last, minus_t = _gain_below(minus_v, minus_u, backwards, widths, heights, hull)
    if below >= above:
        return below / whole, t, v[first]
    return above / whole, -minus_t, v[n - last] if last else np.inf
