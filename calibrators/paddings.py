"""Which logits are paddings of impossible classes, and which are logarithms of raised zeros."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from metrics.kernels.threads import row_blocks
from metrics.scores import LIKELIHOOD_FLOOR

FAR = 30.0
"""A padding lies this many median gaps of the two largest logits below the row's largest."""
OCTAVE, HOLE = 4, 3
"""Distances to the largest logit are counted in quarters of octaves. Between paddings and other
logits at least three octaves, a factor of eight, are empty."""
BEYOND = 50.0
"""A logit of a new point is a padding if it lies this many times further below than any before."""
SAMPLED_ROWS = 2000
"""Number of rows that the median gap is computed from."""
LOG_SUM = 1e-4
"""Log-probabilities sum to one within this share, in float32 as well."""
ZERO = math.log(LIKELIHOOD_FLOOR) + LOG_SUM
"""A log-probability of at most this is the logarithm of a probability of 0 that was raised."""


def largest_zero(logits: Tensor) -> float:
    """Return the largest logit that was made from a probability of 0; -inf if none was.

    Only log-probabilities have such logits: `from_probabilities` raises their zeros to 1e-12.
    """
    low, top = map(float, torch.aminmax(logits))
    if top > LOG_SUM or not ZERO - 1 < low <= ZERO:
        return -math.inf
    sums = logits.double().logsumexp(dim=1)
    return ZERO if bool((sums.abs() <= LOG_SUM).all()) else -math.inf


def median_gap(logits: Tensor) -> float:
    """Return the median gap of a row's two largest logits; 0 if it is infinite."""
    rows = logits[:: max(1, len(logits) // SAMPLED_ROWS)]
    two = rows.topk(2, dim=1).values.double()
    gap = float((two[:, 0] - two[:, 1]).median())
    return gap if math.isfinite(gap) else 0.0


def padding_gap(logits: Tensor, scale: float) -> float:
    """Return the distance below a row's largest logit from which on a logit is a padding.

    It is the middle of the first hole of three octaves among the distances, if that begins above
    `scale` and ends above `FAR` times it. If there is none, it is beyond all distances seen.
    """

    def distances(rows: Tensor) -> Tensor:
        away = rows.double()
        away = away.amax(dim=1, keepdim=True) - away
        return away[(away > 0) & torch.isfinite(away)]

    low, top = (ends.double() for ends in torch.aminmax(logits, dim=1))
    if bool(torch.isneginf(low).any()):
        low = torch.where(torch.isneginf(logits), torch.inf, logits).amin(dim=1).double()
    if not (widest := float((top - low).max())):
        return math.inf
    if widest > FAR * scale:
        blocks = [logits[start:stop] for start, stop in row_blocks(*logits.shape)]
        scale = scale or min(float(d.amin()) for d in map(distances, blocks) if len(d))
        counts = torch.zeros(int(OCTAVE * math.log2(widest / scale)) + 2, dtype=torch.int64)
        for block in blocks:
            bins = ((distances(block) / scale).log2() * OCTAVE).clamp(min=0)
            counts += torch.bincount(bins.long().cpu(), minlength=len(counts))
        filled = np.union1d([0], counts.nonzero()[:, 0].numpy())
        for below, above in pairwise(filled):
            if above - below > OCTAVE * HOLE and above >= OCTAVE * math.log2(FAR):
                return float(scale * 2 ** ((below + 1 + above) / 2 / OCTAVE))
    return BEYOND * widest
