"""Inference on means over splits: intervals that cover a mean, and the methods that are worse.

Random splits of the same points are not independent: two standard errors over ten of them, the ± of
the paper, cover the truth in 59 to 94 % of cases. What is shown instead:

* `corrected`: Student's t with J - 1 degrees of freedom and the variance over splits times
  (1/J + n_test/n_calibration) (Nadeau & Bengio 2003), for the points that splits share.
* `bootstrap`: 1.96 standard errors of the mean over splits under resampled points; sharper.
  Percentiles of the draws would be wrong, because repeated points enlarge UC itself.

Methods are compared in pairs on the same points. With five or more splits the standard error is the
corrected one, which covers the spread over calibration sets, too. Fewer leave t hardly any degrees
of freedom, so the points are resampled, and the spread over other calibration sets is not known.

A calibration error is an absolute value |b + e| of a bias b and of noise e, which methods share.
Near zero, resampled points rarely change the sign of b + e, so differences of errors seem surer
than they are: the truly best method was found worse in up to 16 % of cases. So a method is found
worse only if, besides, its error is beyond its own noise floor, or at most 5 % of the differences
under resampled points have the other sign. Where points have weights, it is 2.5 %: few heavy points
make the differences skewed, and the truly best method was found worse in 8 % of cases.
"""

import math
from collections.abc import Mapping
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

CONFIDENCE = 0.95
ONE_SIDED = NormalDist().inv_cdf(CONFIDENCE) / NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
"""A one-sided bound is so much nearer than the end of an interval; with Student's t even more."""
FEWEST_SPLITS = 5  # from this number of splits on, the test is over the splits
SIZE = 0.05  # of the tests: against the noise floor, and between methods
OTHER_SIGN, WITH_WEIGHTS = 0.05, 0.025
"""The share of resampled differences that may have the other sign; less with weights of points."""
ROUNDED = 1e-6  # smaller relative differences of means come from the rounding of results/scores
RELATIVE_ERROR = 0.5
"""The share of a class's frequency by which its forecasts are wrong: claimed 1.5 or .5 times."""
POWER = 0.8
"""Share of samples in which such an error should exceed the noise floor."""


class Difference(NamedTuple):
    """One method's loss minus another's.

    All but the mean are NaN where nothing tells the error: a value is infinite, or there are few
    splits without draws, or with draws that are all the same, as of a single cluster of points.
    """

    difference: float
    """The mean over splits."""
    error: float
    """Its standard error."""
    half_width: float
    """Of its 95 % interval."""
    p_value: float
    """One-sided, of the hypothesis that the first method is not worse."""


class AgainstBest(NamedTuple):
    """A method's mean minus the best mean."""

    difference: float
    difference_half_width: float
    """Half of its 95 % interval."""
    difference_p: float
    """One-sided."""
    not_worse: bool | None
    """After Holm's steps over the methods, and where the errors have floors, also with what the
    module says of few splits; None where there is no test."""


def two_standard_errors(values: ArrayLike) -> float:
    """2 x std(ddof=1) / sqrt(count), as in the paper's tables; NaN if it is not finite."""
    return 2.0 * _deviation(values) / math.sqrt(np.size(values))


def corrected_half_width(values: ArrayLike, test_share: float) -> float:
    """Half the width of the 95 % interval with the corrected variance; NaN for a single split."""
    splits = np.size(values)
    return _quantile(splits - 1) * _deviation(values) * math.sqrt(_factor(splits, test_share))


def bootstrap_half_width(draws: ArrayLike) -> float:
    """Half of the 95 % interval: 1.96 standard errors of the mean under resampled points, [B]."""
    return _quantile(math.inf) * _deviation(draws)


def _deviation(values: ArrayLike) -> float:
    array = np.asarray(values, dtype=np.float64)
    usable = array.size > 1 and np.isfinite(array).all()
    return float(array.std(ddof=1)) if usable else math.nan


def _factor(splits: int, test_share: float) -> float:
    return 1 / splits + test_share / (1 - test_share)


def _quantile(freedom: float) -> float:
    """Of Student's t, or of the normal distribution for infinite degrees of freedom."""
    level = (1 + CONFIDENCE) / 2
    return float(special.ndtri(level) if math.isinf(freedom) else special.stdtrit(freedom, level))


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
    mean, error, freedom = float(gaps.mean()), math.nan, math.inf
    if gaps.size >= FEWEST_SPLITS:
        freedom = gaps.size - 1
        error = _deviation(gaps) * math.sqrt(_factor(gaps.size, test_share))
    elif draws is not None and other_draws is not None and np.isfinite(gaps).all():
        moved = np.asarray(draws, np.float64) - np.asarray(other_draws, np.float64)
        is_moved = moved.size > 1 and np.ptp(moved) > 0
        # Draws that never differ tell nothing, unless the methods are equal in all splits.
        error = float(moved.std(ddof=1)) if is_moved or not gaps.any() else math.nan
    if not error:  # the same difference in all splits
        return Difference(mean, error, 0.0, 0.0 if mean > 0 else 1.0)
    z = -mean / error
    p_value = float(special.ndtr(z) if math.isinf(freedom) else special.stdtr(freedom, z))
    return Difference(mean, error, error * _quantile(freedom), p_value)


def _keeps_sign(draws: ArrayLike, others: ArrayLike, share: float) -> bool:
    """Whether at most a `share` of the draws [B] are not larger than their pairs among `others`."""
    changed = int(np.less_equal(draws, others).sum())
    return (1 + changed) / (1 + np.size(draws)) <= share


def rejected(p_values: Mapping[str, float]) -> set[str]:
    """Return what Holm's step-down rejects at `SIZE`; NaN counts as one that is not rejected."""
    ascending = sorted((p, key) for key, p in p_values.items() if not math.isnan(p))
    keys = set()
    for place, (p, key) in enumerate(ascending):
        if p > SIZE / (len(p_values) - place):
            break
        keys.add(key)
    return keys


def against_best(
    values: Mapping[str, ArrayLike],
    test_share: float,
    draws: Mapping[str, ArrayLike],
    larger_is_better: bool = False,
    floors: Mapping[str, float] | None = None,
    is_weighted: bool = False,
) -> dict[str, AgainstBest]:
    """Compare every method with the one of the best mean, as `paired_difference` does.

    The truly best of all methods is found worse with probability 5 % at most.

    Args:
        values: per method one value per split.
        test_share: n_test / n of each split.
        draws: per method its draws [B], if they are known.
        larger_is_better: as of accuracy.
        floors: of a calibration error per method the p-value of its mean over splits, NaN without a
            floor; None for other metrics.
        is_weighted: whether the points have weights.
    """
    sign = -1.0 if larger_is_better else 1.0
    losses, drawn = {}, {}
    for method, of_splits in values.items():
        losses[method] = sign * np.asarray(of_splits, dtype=np.float64)
        if np.size(draws.get(method, ())):
            drawn[method] = sign * np.asarray(draws[method])
    best = min(losses, key=lambda method: float(losses[method].mean()))
    rounding = ROUNDED * abs(float(losses[best].mean()))
    differences, p_values = {}, {}
    for method, losses_of in losses.items():
        difference = paired_difference(
            losses_of, losses[best], test_share, drawn.get(method), drawn.get(best)
        )
        is_tested = len(losses_of) >= FEWEST_SPLITS or method in drawn
        differences[method] = difference
        is_no_worse = is_tested and difference.difference <= rounding
        p_values[method] = 1.0 if is_no_worse else difference.p_value
    worse = rejected({method: p for method, p in p_values.items() if method != best})
    if floors is not None and len(losses[best]) < FEWEST_SPLITS:
        # Differences of errors near zero seem surer than they are, as the module says.
        share = WITH_WEIGHTS if is_weighted else OTHER_SIGN
        for method in list(worse):
            is_sure = floors[method] <= SIZE or _keeps_sign(drawn[method], drawn[best], share)
            if not is_sure:
                worse.remove(method)
    compared = {}
    for method, difference in differences.items():
        p_value = p_values[method]
        not_worse = None if math.isnan(p_value) else method not in worse
        compared[method] = AgainstBest(
            sign * difference.difference, difference.half_width, p_value, not_worse
        )
    return compared


def fewest_positives(points: float, floor: float, relative_error: float = RELATIVE_ERROR) -> int:
    """How many points of a class are needed to find a relative error in 80 % of samples.

    For a rare class, its own error drowns in the noise of the other classes or of its few
    positives. With k positives among n points, an error δ times the class's frequency makes a UC of
    about δ k/n, with a standard deviation of √k/n. It exceeds the floor f in 80 % of the samples if
    δ k >= n f + .84 √k. With fewer positives, a "within noise" does not speak for the class.

    Args:
        points: n, the points that are tested.
        floor: f, the 95 % quantile of the noise floor of U_CWE.
        relative_error: δ.
    """
    z = NormalDist().inv_cdf(POWER)
    root = (z + math.sqrt(z**2 + 4 * relative_error * points * floor)) / (2 * relative_error)
    return math.ceil(root**2)
