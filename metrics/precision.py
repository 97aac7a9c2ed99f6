"""Whether logits have lost their differences in a type that has too few digits for their size.

A probability depends on the differences of a row's logits alone. Sums of log-likelihoods can be of
the size of 1e8, where float32 has no number between 1e8 and 1e8 + 8.
"""

from __future__ import annotations

import warnings

import numpy as np

from .arrays import Array

LARGE = 128.0
"""Smaller logits are off by at most 4e-6 in float32."""
FEW_STEPS = 16
"""Logits of half precision differ by more steps than these from one class to another."""
ROWS_LOOKED_AT = 1000


def lost_step(logits: Array) -> float:
    """Return the step between neighbours where logits [n, C] have lost their differences; else 0.

    Numbers that were float32 once are so still, whatever their type is now. The median point
    decides, and of each point its largest logit and the smallest that is not -inf.
    """
    rows = np.asarray(logits[:: max(1, len(logits) // ROWS_LOOKED_AT)])
    with np.errstate(over="ignore"):
        single = rows.astype(np.float32)
    if (single == rows).all():
        rows = single
    top = np.abs(rows).max(axis=1)
    least = np.where(np.isfinite(rows), rows, np.inf).min(axis=1)
    steps = np.spacing(top)
    spread = rows.max(axis=1) - least
    is_large = float(np.median(top)) > LARGE
    has_few = is_large and float(np.median(spread / steps)) < FEW_STEPS
    return float(np.median(steps)) if has_few else 0.0


def lost_digits(logits: Array) -> str:
    """Return what to say about logits [n, C] that have lost their differences; "" if they have not.

    All doors say it in these words: files, streams, and metrics of batches.
    """
    step = lost_step(logits)
    if not step:
        return ""
    return (
        f"the logits were stored with a step of {step:g} between neighbours, so the differences "
        "between classes are lost: take away each row's maximum before they are stored, or store "
        "them as float64"
    )


def warn_of_lost_digits(logits: Array) -> None:
    """Warn the caller of an `update` if its `logits` [n, C] have lost their differences."""
    message = lost_digits(logits)
    if message:
        warnings.warn(message, stacklevel=3)
