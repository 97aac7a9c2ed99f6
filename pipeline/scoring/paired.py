"""Is one method worse than another? Paired tests on the same points, for any number of splits.

* Five or more random splits: Student's t over the differences per split, with the variance times
  1/J + n_test/n_calibration for the share of points that splits have in common (Nadeau & Bengio
  2003). It covers the spread over calibration sets, too.
* Fewer: these leave t hardly any degrees of freedom, so the points are resampled instead. The draws
  of two methods with the same seed weigh the same points alike, so their difference is paired. Its
  standard deviation over the draws is the standard error of the observed difference. Percentiles of
  the draws would be wrong, because repeated points enlarge UC itself. The fits are taken as given:
  the spread over other calibration sets stays unknown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Floats = NDArray[np.float64]
FEWEST_SPLITS = 5
"""From this number of splits on, the test is over the splits."""


class Difference(NamedTuple):
    """One method's loss minus another's: the mean over splits, its standard error, and a p-value.

    The p-value is one-sided, of the hypothesis that the first method is not worse. Error and
    p-value are NaN where nothing tells the error: a value is infinite, or there are few splits
    without draws, or with draws that are all the same, as of a single cluster of points.
    """

    difference: float
    error: float
    p_value: float


def paired_difference(
    losses: ArrayLike,
    others: ArrayLike,
    test_share: float,
    draws: ArrayLike | None = None,
    other_draws: ArrayLike | None = None,
) -> Difference:
    """Return how much larger the losses of one method are than those of another, with its test.

    Args:
        losses, others: [J], the metric of both methods in each of J splits, smaller is better.
        test_share: n_test / n of each split.
        draws, other_draws: [B] each, their means over the splits under the same resampled points;
            needed where there are fewer than `FEWEST_SPLITS` splits.
    """
    gaps = np.asarray(losses, np.float64) - np.asarray(others, np.float64)
    error, freedom = math.nan, math.inf
    if not np.isfinite(gaps).all():
        return Difference(float(gaps.mean()), math.nan, math.nan)
    if gaps.size >= FEWEST_SPLITS:
        factor = 1 / gaps.size + test_share / (1 - test_share)
        error, freedom = float(gaps.std(ddof=1)) * math.sqrt(factor), gaps.size - 1
    elif draws is not None and other_draws is not None:
        moved = np.asarray(draws, np.float64) - np.asarray(other_draws, np.float64)
        moves = moved.size > 1 and np.ptp(moved) > 0
        error = float(moved.std(ddof=1)) if moves or not gaps.any() else math.nan
    return Difference(float(gaps.mean()), error, _p_value(float(gaps.mean()), error, freedom))


def _p_value(difference: float, error: float, freedom: float) -> float:
    if math.isnan(error):
        return math.nan
    if not error:  # the same difference in all splits
        return 0.0 if difference > 0 else 1.0
    z = -difference / error
    return float(special.ndtr(z) if math.isinf(freedom) else special.stdtr(freedom, z))


def rejected(p_values: Mapping[str, float], size: float = 0.05) -> set[str]:
    """Return the hypotheses that Holm's step-down rejects; NaN counts as one that is not rejected.

    The chance that a true hypothesis is among them is `size` at most.
    """
    found: set[str] = set()
    known = {key: p for key, p in p_values.items() if not math.isnan(p)}
    for place, key in enumerate(sorted(known, key=known.__getitem__)):
        if known[key] > size / (len(p_values) - place):
            break
        found.add(key)
    return found
