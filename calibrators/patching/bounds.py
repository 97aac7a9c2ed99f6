"""Upper bounds on UC, computed without a sort.

The bounds exclude most of the 2C utilities of U_CWE and U_topK from being the worst one. An audit
computes only the errors whose bound reaches the largest error so far.

`indicator_bounds` needs one sum over all hits and one over all misses. Once a forecast of a
thousand classes is nearly calibrated, that leaves most K of U_topK. `top_k_bounds` adds up hits and
misses in narrow bins of v instead. The sampled utilities get bounds from predictions in float32
(`payoff_bounds`). The patches are the same with and without bounds.
"""

import math
from typing import Any

import numpy as np

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.kernels.compiled import compiled
from utility_calibration.metrics.kernels.threads import row_blocks

ROUNDING = 1e-9  # added to the bounds: sums in another order differ by less than this
SMALLEST = 2.0**-32
PER_OCTAVE = 16  # bins of v per octave of 1 - v from `SMALLEST` to 1; a first bin has the rest
MANTISSA = 52  # bits of a float64 after its exponent: the others number the octaves
WORTH_BOUNDING = 50  # classes from which on predictions in float32 cost less than they save
NOTHING = 1e-30  # probabilities up to here count as 0, which changes v by less than its rounding
SLOTS = 2048  # slots of v in [-1, 1], few enough for their sums to stay in the cache


def indicator_bounds(predictions: Array, codes: Array, by_rank: bool = False) -> Array:
    """Return an upper bound on UC of utilities that are 1 for some outcomes and 0 else: [C].

    A sum over an interval is at most that of all positive residuals, and at least that of all
    negative ones. Here those are 1 - v at the hits and -v at the misses. `predictions`, float64
    [n, C], are the probabilities, and `codes`, int64 [n], the labels, which miss all classes but
    their own. If `by_rank`, they are top-K sums and ranks, which miss all smaller K.
    """
    n, classes = predictions.shape
    hits = np.bincount(codes, minlength=classes)
    # A product runs at the speed of memory; torch's sum takes twice as long.
    predicted = np.ones(n) @ predictions
    if not by_rank:
        of_label = predictions[np.arange(n), codes]
        missed = predicted - np.bincount(codes, of_label, minlength=classes)
    else:
        missed = np.zeros_like(predicted)
        _sum_of_misses(predictions, codes, missed)
    hits = hits.cumsum(axis=0) if by_rank else hits
    return np.maximum(hits - (predicted - missed), missed) / n + ROUNDING


def top_k_bounds(top_sums: Array, ranks: Array, numbers: Array) -> Array:
    """Return upper bounds on UC of some utilities of U_topK, on the CPU: float64 [m].

    A running sum is known where bins of v end. Within a bin it rises at most by the residuals of
    the bin's hits, and falls at most by those of its misses. `numbers`, int64 [m], are K - 1 of
    each utility.
    """
    bins = PER_OCTAVE * round(-math.log2(SMALLEST)) + 1
    hits, misses = np.zeros((2, bins, len(numbers)))
    _sums_by_bin(top_sums, ranks, numbers, hits, misses)
    hits, misses = hits[::-1], misses[::-1]  # bins are numbered by 1 - v
    before = np.cumsum(hits - misses, axis=0) - (hits - misses)
    high, low = (before + hits).max(axis=0), (before - misses).min(axis=0)
    return (high.clip(0) - low.clip(None, 0)) / len(ranks) + ROUNDING


@compiled
def _sums_by_bin(top_sums: Any, ranks: Any, numbers: Any, hits: Any, misses: Any) -> None:
    """Add up 1 - v of hits and v of misses by bin and utility: float64 [bins, m] each."""
    beyond = np.empty(numbers.size)
    bits = beyond.view(np.int64)
    shift = MANTISSA - int(math.log2(PER_OCTAVE))
    first = np.full(1, SMALLEST).view(np.int64)[0] >> shift
    for i in range(ranks.size):
        for k in range(numbers.size):
            beyond[k] = min(max(1.0 - top_sums[i, numbers[k]], SMALLEST), 1.0)
        for k in range(numbers.size):
            v, place = top_sums[i, numbers[k]], (bits[k] >> shift) - first
            if numbers[k] < ranks[i]:
                misses[place, k] += v
            else:
                hits[place, k] += 1.0 - v


def payoff_bounds(factors: Array, matrix: Array, payoffs: Array, codes: Array) -> Array:
    """Return upper bounds on UC of utilities with payoffs in [-1, 1]: float64 [m].

    v is computed in float32, with an error of at most δ. A sum over the points with v <= t then
    takes all points of the slots of v below t, and some of one slot and the next, if these are
    wider than 2 δ. The bounds are infinite on a GPU and for few classes: errors cost no more there.

    `factors` [m, C] are such that v = matrix @ factors.T, with the probabilities or their top-K
    sums as `matrix` [n, C]. `payoffs` [m, L] and `codes` [n] say what each utility pays for each
    outcome.
    """
    n, classes = matrix.shape
    if classes < WORTH_BOUNDING:
        return np.full(len(factors), math.inf)
    rough = np.empty((len(factors), n), np.float32)
    single = factors.astype(np.float32)
    for start, stop in row_blocks(n, classes):
        # Products below the normal range of float32 take up to forty times as long.
        rows = matrix[start:stop].astype(np.float32)
        rows[rows <= NOTHING] = 0.0
        rough[:, start:stop] = single @ rows.T
    # Each row's Σ|matrix · factors| is at most 1 for probabilities and 3 for top-K sums.
    error = 3 * (classes + 4) * 2.0**-24
    ranges = np.empty(len(factors))
    slots = min(SLOTS, int(1 / (2 * error)))
    _ranges_by_slot(rough, payoffs, codes, slots, ranges)
    return ranges / n + 2 * error


@compiled
def _ranges_by_slot(rough: Any, payoffs: Any, codes: Any, slots: int, ranges: Any) -> None:
    """Write bounds on the ranges [m] of the running sums, from predictions float32 [m, n]."""
    for row in range(len(rough)):
        parts = np.zeros((slots + 1, 2))
        for i in range(codes.size):
            v = np.float64(rough[row, i])
            residual = payoffs[row, codes[i]] - v
            slot = int(min(max((v + 1) * (slots / 2), 0.0), slots - 1.0))
            parts[slot, 1 if residual < 0 else 0] += abs(residual)
        total = low = high = 0.0
        for k in range(slots):
            low = min(low, total - parts[k, 1] - parts[k + 1, 1])
            high = max(high, total + parts[k, 0] + parts[k + 1, 0])
            total += parts[k, 0] - parts[k, 1]
        ranges[row] = high - low


@compiled
def _sum_of_misses(top_sums: Any, ranks: Any, sums: Any) -> None:
    for i in range(ranks.size):
        for k in range(ranks[i]):
            sums[k] += top_sums[i, k]
