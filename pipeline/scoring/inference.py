"""Inference on means over splits: intervals that cover a mean, and the methods that are worse.

Ten random splits of the same points are not independent. Two standard errors over them, the ± of
the paper, cover the truth in 59 to 94 % of cases. What is shown instead:

* `corrected`: Student's t with J - 1 degrees of freedom and the variance over splits times
  (1/J + n_test/n_calibration) (Nadeau & Bengio 2003), for the share of points that splits have in
  common; conservative.
* `bootstrap`: 1.96 standard errors of the mean over splits under resampled points
  (metrics.resampling); sharper. It needs the draws, so pipeline.scoring.tidy computes it.

Methods are compared in pairs (pipeline.scoring.paired), by one of the same two standard errors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from pipeline.scoring.paired import FEWEST_SPLITS, Difference, paired_difference, rejected
from pipeline.scoring.tidy import CONFIDENCE

SIZE = 0.05
"""Of the tests: against the noise floor, and between methods."""
ROUNDING = 1e-6
"""A smaller relative difference of two means is that of the rounded numbers in results/scores."""


class AgainstBest(NamedTuple):
    """A method's mean minus the best mean, half of its 95 % interval, and a one-sided p-value.

    not_worse: whether the test, after Holm's steps over the methods, finds the method not worse;
    None where there is no test.
    """

    difference: float
    half_width: float
    p_value: float
    not_worse: bool | None


def two_standard_errors(values: ArrayLike) -> float:
    """2 x std(ddof=1) / sqrt(count), the spread of the paper's tables.

    NaN for a single split, or where a value is infinite.
    """
    return 2.0 * _deviation(values) / math.sqrt(np.size(values))


def corrected_half_width(values: ArrayLike, test_share: float) -> float:
    """Half the width of the 95 % interval with the corrected variance; NaN for a single split."""
    factor = 1 / np.size(values) + test_share / (1 - test_share)
    quantile = special.stdtrit(np.size(values) - 1, (1 + CONFIDENCE) / 2)
    return float(quantile * _deviation(values) * math.sqrt(factor))


def _deviation(values: ArrayLike) -> float:
    array = np.asarray(values, dtype=np.float64)
    if array.size < 2 or not np.isfinite(array).all():
        return math.nan
    return float(array.std(ddof=1))


def half_width(found: Difference, splits: int) -> float:
    """Half of the 95 % interval of a paired difference over so many splits."""
    level = (1 + CONFIDENCE) / 2
    many = splits >= FEWEST_SPLITS
    return found.error * float(special.stdtrit(splits - 1, level) if many else special.ndtri(level))


def against_best(
    values: Mapping[str, ArrayLike],
    test_share: float,
    draws: Mapping[str, ArrayLike],
    larger_is_better: bool = False,
) -> dict[str, AgainstBest]:
    """Compare every method with the one of the best mean.

    The truly best of all methods is found worse with probability 5 % at most.

    Args:
        values: per method one value per split, in the same order of splits.
        test_share: n_test / n of each split.
        draws: per method its means over the splits under resampled points, [B], if they are known.
    """
    sign = -1.0 if larger_is_better else 1.0
    losses = {method: sign * np.asarray(of, dtype=np.float64) for method, of in values.items()}
    best = min(losses, key=lambda method: float(losses[method].mean()))
    drawn = {m: sign * np.asarray(draws[m]) for m in losses if np.size(draws.get(m, ()))}
    found = {
        method: paired_difference(of, losses[best], test_share, drawn.get(method), drawn.get(best))
        for method, of in losses.items()
    }
    splits, rounding = len(losses[best]), ROUNDING * abs(float(losses[best].mean()))
    p_values = {}
    for method, one in found.items():
        is_tested = splits >= FEWEST_SPLITS or method in drawn
        p_values[method] = 1.0 if is_tested and one.difference <= rounding else one.p_value
    worse = rejected({method: p for method, p in p_values.items() if method != best}, SIZE)
    return {
        method: AgainstBest(
            sign * one.difference,
            half_width(one, splits),
            p_values[method],
            None if math.isnan(p_values[method]) else method not in worse,
        )
        for method, one in found.items()
    }
