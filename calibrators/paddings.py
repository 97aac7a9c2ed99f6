"""Which logits are paddings of impossible classes, and which are zeros of few votes.

Nobody says so, so the values themselves must: paddings lie far below all other logits, and zeros
are where `from_probabilities` puts them.
"""

import math
from itertools import pairwise

import numpy as np

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.kernels.threads import row_blocks
from utility_calibration.metrics.shown import LIKELIHOOD_FLOOR

from .extremes import row_extremes

FAR = 30.0  # a padding lies this many median gaps of the two largest logits below the row's largest
OCTAVE, HOLE = 4, 3
"""Distances to the largest logit are counted in quarters of octaves. Between paddings and other
logits at least three octaves, a factor of eight, are empty."""
BEYOND = 50.0
"""Where no calibration point has a padding, a logit so many times further below than any before
looks like one. It is filled like one, so that no map is asked about it, but nothing shows that its
class is impossible, so its probability does not become 0."""
SAMPLED_ROWS = 2000  # number of rows that the median gap is computed from
LOG_SUM = 1e-4  # log-probabilities sum to one within this share, in float32 as well
ZERO = math.log(LIKELIHOOD_FLOOR) + LOG_SUM
"""A log-probability of at most this is the logarithm of a probability of 0 that was raised."""


def largest_zero(logits: Array) -> float:
    """Return the largest logit that was made from a probability of 0; -inf if none was.

    Only log-probabilities have such logits: `from_probabilities` raises their zeros to 1e-12.
    """
    low, top = float(logits.min()), float(logits.max())
    if top > LOG_SUM or not ZERO - 1 < low <= ZERO:
        return -math.inf
    from scipy.special import logsumexp  # it takes long to import

    sums = logsumexp(logits.astype(np.float64, copy=False), axis=1)
    return ZERO if bool((np.abs(sums) <= LOG_SUM).all()) else -math.inf


def median_gap(logits: Array) -> float:
    """Return the median gap of a row's two largest logits; 0 if it is infinite."""
    rows = logits[:: max(1, len(logits) // SAMPLED_ROWS)]
    two = np.partition(rows, rows.shape[1] - 2, axis=1)[:, -2:].astype(np.float64)
    with np.errstate(invalid="ignore"):
        gap = float(np.quantile(two[:, 1] - two[:, 0], 0.5, method="lower"))
    return gap if math.isfinite(gap) else 0.0


def padding_gap(logits: Array, scale: float) -> tuple[float, bool]:
    """Return how far below a row's largest logit a padding begins, and whether there are any.

    It is the middle of the first hole of three octaves among the distances, if that begins above
    `scale` and ends above `FAR` times it. If there is none, it is beyond all distances seen.
    """

    def distances(rows: Array) -> Array:
        away = rows.astype(np.float64, copy=False)
        away = away.max(axis=1, keepdims=True) - away
        return away[(away > 0) & np.isfinite(away)]

    low, top = row_extremes(logits)
    if bool(np.isneginf(low).any()):
        low = np.where(np.isneginf(logits), np.inf, logits).min(axis=1).astype(np.float64)
    widest = float((top - low).max())
    if not widest:
        return math.inf, False
    if widest > FAR * scale:
        blocks = [logits[start:stop] for start, stop in row_blocks(*logits.shape)]
        if not scale:
            # Most rows have two largest logits that are equal, so the smallest distance serves.
            scale = min(away.min(initial=math.inf) for away in map(distances, blocks))
        counts = np.zeros(int(OCTAVE * math.log2(widest / scale)) + 2, np.int64)
        for block in blocks:
            bins = (np.log2(distances(block) / scale) * OCTAVE).clip(min=0)
            counts += np.bincount(bins.astype(np.int64), minlength=len(counts))
        filled = np.union1d([0], counts.nonzero()[0])
        for below, above in pairwise(filled):
            if above - below > OCTAVE * HOLE and above >= OCTAVE * math.log2(FAR):
                return float(scale * 2 ** ((below + 1 + above) / 2 / OCTAVE)), True
    return BEYOND * widest, False
