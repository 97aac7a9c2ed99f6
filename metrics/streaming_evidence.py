"""Evidence against calibration that may be looked at at any time.

The wealth of a bet (`kernels/bets.py`) is a nonnegative martingale if the forecast is calibrated,
and so is the mean over all bets: those of every utility, interval and share λ. It starts at 1, and
by Ville's inequality the probability that it ever reaches 1 / α is at most α, however often and
whenever somebody looks (arXiv 2109.11761, 2603.13156). A p-value is for one look only.

The points must be independent of each other, and each counts once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp

from .arrays import Array
from .kernels.bets import BETS, DEPTH
from .option_checks import check_confidence

LARGEST_EXPONENT = 700.0
"""e to a larger power is more than a float64 holds."""


@dataclass(frozen=True)
class CalibrationEvidence:
    """How much a player has won who bet that the forecast is not calibrated, from a start of 1.

    Attributes:
        log_now: the natural logarithm of the wealth after all points.
        log_largest: that of the largest wealth at any look so far, after each `update` and `merge`.
        log_of_utilities: [m], log wealth of the bets on each utility; for one that was named
            before the first point it is evidence of its own.
        utility: the utility on which the best single bet has won most.
        low, high: the interval of predicted utility of this bet.
        sign: 1 if more was realized than predicted there, -1 if less, 0 before the first point.
    """

    log_now: float
    log_largest: float
    log_of_utilities: np.ndarray[Any, np.dtype[np.float64]]
    utility: int
    low: float
    high: float
    sign: int

    @property
    def now(self) -> float:
        """The wealth after all points; no more than e^700."""
        return math.exp(min(self.log_now, LARGEST_EXPONENT))

    @property
    def largest(self) -> float:
        """The largest wealth at any look so far; no more than e^700."""
        return math.exp(min(self.log_largest, LARGEST_EXPONENT))

    def is_alarm(self, confidence: float = 0.95) -> bool:
        """Return whether the wealth has ever reached 1 / (1 - confidence), 20 for 95 %.

        A calibrated forecast raises an alarm at any time with a probability of at most
        1 - `confidence`.
        """
        check_confidence(confidence)
        return self.log_largest >= -math.log1p(-confidence)


def log_evidence(log_wealth: Array) -> float:
    """Return the log of the mean wealth over all bets, from the sums of log wealth [m, …]."""
    of_bets = _of_intervals(log_wealth)
    return float(logsumexp(of_bets) - math.log(of_bets.size))


def calibration_evidence(
    log_wealth: Array, log_largest: float, ranges: Array
) -> CalibrationEvidence:
    """Return the evidence of utilities with these ranges of predictions, [m, 2]."""
    of_bets = _of_intervals(log_wealth)
    of_utilities = logsumexp(of_bets, axis=(1, 2)) - math.log(of_bets[0].size)
    utility, interval, bet = np.unravel_index(int(of_bets.argmax()), of_bets.shape)
    first, last = _ends()[interval]
    low, high = ranges[utility]
    return CalibrationEvidence(
        log_evidence(log_wealth),
        log_largest,
        of_utilities,
        int(utility),
        float(low + (high - low) * first),
        float(low + (high - low) * last),
        int(np.sign(BETS[bet])) if of_bets.any() else 0,
    )


def _of_intervals(log_wealth: Array) -> Array:
    """Return log wealth of all 15 dyadic intervals from that of the 8 narrowest: [m, 15, bets]."""
    levels = [log_wealth]
    for _ in range(DEPTH):
        pairs = levels[0].reshape(len(log_wealth), -1, 2, len(BETS))
        levels.insert(0, pairs.sum(axis=2))
    return np.concatenate(levels, axis=1)


def _ends() -> Array:
    """Return the ends of the intervals in the order of `_of_intervals`, as shares of the range."""
    lows = [np.arange(2**depth) / 2**depth for depth in range(DEPTH + 1)]
    widths = [np.full(2**depth, 0.5**depth) for depth in range(DEPTH + 1)]
    low, width = np.concatenate(lows), np.concatenate(widths)
    return np.column_stack([low, low + width])
