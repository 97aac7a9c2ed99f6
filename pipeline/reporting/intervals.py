"""Inference from the splits: intervals that cover a mean, and the methods that may be the best.

Ten random splits of the same points are not independent. Two standard errors over them, the ± of
the paper, cover the truth in 59 to 94 % of cases. What is shown instead:

* `corrected`: Student's t with J - 1 degrees of freedom and the variance over splits times
  (1/J + n_test/n_calibration) (Nadeau & Bengio 2003), for the share of points that splits have in
  common; conservative.
* `bootstrap`: 1.96 standard errors of the mean over splits under resampled points
  (metrics.resampling); sharper. It needs the draws, so pipeline.scoring.tidy computes it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from pipeline.scoring.tidy import CONFIDENCE

Floats = NDArray[np.float64]
SIZE = 0.05
"""Of the tests: against the noise floor, and between methods."""


def two_standard_errors(values: ArrayLike) -> float:
    """2 x std(ddof=1) / sqrt(count), the spread of the paper's tables.

    NaN for a single split, or where a value is infinite.
    """
    return 2.0 * _deviation(values) / math.sqrt(np.size(values))


def corrected_error(values: ArrayLike, test_share: float) -> float:
    """The standard error of the mean over splits that share their points.

    NaN for a single split, or where a value is infinite.

    Args:
        values: one per split.
        test_share: n_test / n of each split.
    """
    factor = 1 / np.size(values) + test_share / (1 - test_share)
    return _deviation(values) * math.sqrt(factor)


def corrected_half_width(values: ArrayLike, test_share: float) -> float:
    """Half the width of the 95 % interval with the corrected variance."""
    quantile = special.stdtrit(np.size(values) - 1, (1 + CONFIDENCE) / 2)
    return float(quantile * corrected_error(values, test_share))


def _deviation(values: ArrayLike) -> float:
    array = np.asarray(values, dtype=np.float64)
    if array.size < 2 or not np.isfinite(array).all():
        return math.nan
    return float(array.std(ddof=1))


def not_worse_than_best(
    values: Mapping[str, ArrayLike], test_share: float, larger_is_better: bool = False
) -> set[str]:
    """The methods that are not significantly worse than the one with the best mean.

    One-sided t tests of the differences per split, with the corrected variance; Holm's step-down
    over the methods, so that the best of all is left out with probability 5 % at most. With a
    single split there is no test: the best mean alone.

    Args:
        values: per method one value per split, in the same order of splits.
    """
    sign = -1.0 if larger_is_better else 1.0
    losses = {m: sign * np.asarray(v, dtype=np.float64) for m, v in values.items()}
    finite = {m: v for m, v in losses.items() if np.isfinite(v).all()}
    if not finite:
        return set()
    best = min(finite, key=lambda method: float(finite[method].mean()))
    others = {m: _p_value(v - finite[best], test_share) for m, v in finite.items() if m != best}
    kept = {best}
    for place, method in enumerate(sorted(others, key=others.__getitem__)):
        if others[method] > SIZE / (len(others) - place):
            kept.add(method)
            kept.update(m for m in others if others[m] >= others[method])
            break
    return kept


def _p_value(excess: Floats, test_share: float) -> float:
    """Of the hypothesis that the mean excess loss is not positive."""
    mean = float(excess.mean())
    if mean <= 0:
        return 1.0
    error = corrected_error(excess, test_share)
    if not error > 0:  # a single split, or the same difference in all
        return 0.0
    return float(special.stdtr(excess.size - 1, -mean / error))
