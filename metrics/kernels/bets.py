"""Wealth of bets against calibration, in sums that add up over batches, shards and processes.

A player bets on every point that the realized utility u is larger (λ > 0) or smaller (λ < 0) than
the predicted v, where v lies in an interval I. A point multiplies the wealth by
1 + λ (u - v) / (high - low), with [low, high] the range of the utility. If the forecast is
calibrated, no bet gains on average, whatever the points before.

Intervals are dyadic: [low, high] halved up to `DEPTH` times. A point lies in one interval of each
depth, so the sums of log wealth over the narrowest intervals give those of all others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array
from .compiled import compiled
from .threads import by_row, over_blocks, row_blocks

DEPTH = 3
LEAVES = 2**DEPTH
"""The narrowest intervals."""
BETS = np.array([-0.8, -0.4, -0.2, -0.1, 0.1, 0.2, 0.4, 0.8])
"""The shares λ of the wealth. They are fixed in advance; the mixture need not know the best one."""
FACTORS = 256
"""So many factors, each between .2 and 1.8, are multiplied before a logarithm is taken."""


def empty(utilities: int) -> Array:
    """Return the sums of log wealth before the first point, [m, LEAVES, len(BETS)]."""
    return np.zeros((utilities, LEAVES, len(BETS)))


def add(
    log_wealth: Array, predicted: Array, payoffs: Array, codes: Array, weights: Array, ranges: Array
) -> None:
    """Add n points: v [m, n], u = payoffs [m, L] at codes [n], ranges [m, 2].

    `weights` [n] say which points count: those of weight 1. There is no bet on any other.
    """
    table, outcomes = np.ascontiguousarray(payoffs, np.float64), np.ascontiguousarray(codes)

    def work(start: int, stop: int) -> None:
        part = slice(start, stop)
        _add_rows(
            by_row(predicted[part]), table[part], outcomes, weights, ranges[part], BETS,
            log_wealth[part],
        )  # fmt: skip

    n = predicted.shape[1]
    over_blocks(work, row_blocks(len(predicted), n, max(1 << 18, 64 * n)))


@compiled
def _add_rows(
    predicted: Any, payoffs: Any, codes: Any, weights: Any, ranges: Any, bets: Any, log_wealth: Any
) -> None:
    leaves = log_wealth.shape[1]
    counts = np.empty(leaves, np.int64)
    wealth = np.empty((leaves, bets.size))
    for row in range(len(predicted)):
        v, table, low, high = predicted[row], payoffs[row], ranges[row, 0], ranges[row, 1]
        scale = 1.0 / (high - low) if high > low else 0.0
        counts[:] = 0
        wealth[:] = 1.0
        for i in range(v.size):
            if weights[i] != 1.0:
                continue
            leaf = min(max(np.int64((v[i] - low) * scale * leaves), 0), leaves - 1)
            residual = (table[codes[i]] - v[i]) * scale
            for k in range(bets.size):
                wealth[leaf, k] *= 1.0 + bets[k] * residual
            counts[leaf] += 1
            if counts[leaf] == FACTORS:
                for k in range(bets.size):
                    log_wealth[row, leaf, k] += np.log(wealth[leaf, k])
                    wealth[leaf, k] = 1.0
                counts[leaf] = 0
        for leaf in range(leaves):
            for k in range(bets.size):
                log_wealth[row, leaf, k] += np.log(wealth[leaf, k])
