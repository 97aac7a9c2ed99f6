"""Labels drawn from the forecast (the noise floor) and points drawn again (the bootstrap).

The noise floor is the error of a forecast whose labels were drawn from itself. If its rows sum to
one, such a forecast is perfectly calibrated, so its error on n points comes from sampling alone.
This makes a Monte Carlo test of calibration (Vaicenavicius et al. 2019; "consistency resampling",
Bröcker & Smith 2007). Rows that do not sum to one have no noise floor, because no label can be
drawn from them. Each (seed, repetition, point) has one uniform number, used in every split and for
every method. So a repetition's mean over splits is one draw of the mean in a table, and all methods
use the same random numbers. The number belongs to the point's place in the whole data set.

*Weights* that are a function of the label, such as priors of the classes over their shares in the
sample, are drawn with the label. A forecast that is calibrated in the weighted population gives a
point of the sample label c with a probability proportional to p_c / w_c, and then the weight is
w_c. Other weights stay at their points, as if they did not depend on the label given the forecast.

*Clusters* are points that are not independent, such as the rows of one patient. Nothing is known of
the dependence, so the residuals u - v of the observed labels are multiplied by a normal number per
cluster. Of this law, which ignores misses too rare to have occurred, and of labels that are drawn
independently, the one with the larger 95 % quantile is the floor. The bootstrap draws clusters.

The bootstrap estimates how much a metric, or a mean over splits, would change on other points. Each
repetition draws n points from the n points of the data set, with replacement. The weight of a point
is how often it was drawn, in every split that tests it. The standard deviation of the mean over
splits is then its standard error (Efron & Tibshirani 1993, ch. 6), which includes the covariance of
splits that share points. Use mean ± 1.96 standard errors instead of percentiles, because repeated
points make UC itself larger and so move every percentile up.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrics.forecast import Forecast, Outcomes
from metrics.kernels.uniforms import hashed_uniforms, stream_keys
from metrics.names import cluster_numbers
from metrics.scores import checked
from metrics.utilities.base import UtilityClass
from metrics.validation import InputError, check_labels, is_whole

DRAWN_TOGETHER = 1 << 23
"""Number of labels drawn at a time: 64 MB for each of labels, ranks and uniforms."""
LARGEST_POINT = 1 << 62
LARGEST = 50_000
"""The most points that are resampled for sampled users, whose work grows with n times B. With more,
the spread between splits is informative enough."""
LARGEST_WHOLE = 100_000_000
"""The most probabilities, n x C of the whole data set, that are resampled at all."""
PAIRS = 4
"""About how many different labels a point gets in the draws, where its weights go with them."""
TINY = 1e-17
"""Stands for a uniform number of 0, whose normal quantile is infinite."""
ROUNDING = 1e-12
"""Relative rounding error of errors, which are sums of at most about 10⁶ terms."""


class NoiseFloor(NamedTuple):
    """What an error is by chance, and how often chance makes it as large as the observed one."""

    mean: float
    q95: float
    p_value: float

    @classmethod
    def of(cls, draws: Any, observed: float) -> NoiseFloor:
        """Return mean and 95 % quantile of draws [R], and the p-value of the observed error.

        The p-value counts the observed error as a draw, so a test at 5 % has at most that size
        (Phipson & Smyth 2010). Draws that are smaller only by rounding count as equal. With few
        points, a draw may be the observed labels again, whose terms are summed in another order.
        """
        values = np.asarray(draws, dtype=np.float64)
        as_large = int((values >= observed * (1 - ROUNDING)).sum())
        p_value = (1 + as_large) / (1 + len(values))
        return cls(float(values.mean()), float(np.quantile(values, 0.95)), p_value)


def noise_floor(
    utilities: UtilityClass,
    probabilities: Any,
    labels: Any,
    repetitions: int = 400,
    seed: int = 0,
    points: Any = None,
    sample_weight: Any = None,
    clusters: Any = None,
    *,
    classes: Any = None,
) -> NoiseFloor:
    """Return the noise floor of the largest UC over a class of utilities.

    Args:
        utilities: any `UtilityClass`, also one of your own.
        probabilities, labels: [n, C] and [n]. Rows that do not sum to one have no floor.
        repetitions: number of draws of the labels.
        seed: seed of the draws.
        points: [n], the number of each point in the whole data set; 0 … n - 1 if not given.
        sample_weight: [n], >= 0; a weight of 3 counts as the point three times, each time with the
            same drawn label. The module explains weights that depend on the label.
        clusters: [n], text or numbers: points of one cluster need not be independent.
        classes: [C], names of the columns in their order, if labels are names.

    Raises:
        InputError: shapes, ranges or row sums are wrong, or there are no repetitions.
    """
    if not is_whole(repetitions) or repetitions < 1:
        raise InputError(f"repetitions: {repetitions!r}, expected a whole number of at least 1")
    forecast, outcomes = checked(probabilities, labels, sample_weight, classes)
    numbers = point_numbers(points, forecast.n).to(outcomes.labels.device)
    of_points = cluster_numbers(clusters, forecast)
    drawn = largest_errors_redrawn(
        utilities, forecast, outcomes, numbers, repetitions, seed, of_points
    )
    return NoiseFloor.of(drawn.cpu(), float(utilities.errors(forecast, outcomes).max()))


def largest_errors_redrawn(
    utilities: UtilityClass,
    forecast: Forecast,
    outcomes: Outcomes,
    points: Tensor,
    repetitions: int,
    seed: int,
    clusters: Tensor | None = None,
) -> Tensor:
    """Return the largest UC of the class under each of `repetitions` draws of the floor: [R]."""

    def largest(draws: Iterable[tuple[Forecast, Outcomes]]) -> Tensor:
        return torch.cat([utilities.errors(*draw).max(dim=1).values for draw in draws])

    weights = None if outcomes.weights is None else outcomes.weights[0]
    by_label = weights_by_label(outcomes.labels[0], weights, forecast.classes)
    redrawn = largest(redrawn_outcomes(forecast, points, repetitions, seed, weights, by_label))
    if clusters is None:
        return redrawn
    multiplied = largest(multiplied_outcomes(forecast, outcomes, clusters, repetitions, seed))
    return torch.from_numpy(larger_law(redrawn.cpu().numpy(), multiplied.cpu().numpy()))


def larger_law(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the draws [R] or [R, M] whose mean over M has the larger 95 % quantile."""

    def upper(draws: NDArray[np.float64]) -> float:
        return float(np.quantile(draws.reshape(len(draws), -1).mean(axis=1), 0.95))

    return max(first, second, key=upper)


def weights_by_label(labels: Tensor, weights: Tensor | None, classes: int) -> Tensor | None:
    """Return the weight of each class [C], or None if the weights [n] are no function of the label.

    Classes without points get the mean weight. Equal weights, or one point per class, tell nothing.
    """
    if weights is None:
        return None
    ends = [torch.full((classes,), sign * torch.inf, dtype=torch.float64) for sign in (1, -1)]
    low, high = (end.to(weights.device) for end in ends)
    low.scatter_reduce_(0, labels, weights, "amin")
    high.scatter_reduce_(0, labels, weights, "amax")
    known, equal = low <= high, 1 + 1e-6
    low_, high_ = low[known], high[known]
    varies = high_.max() > equal * low_.min() > 0
    if not varies or bool((high_ > equal * low_).any()) or len(low_) == len(labels):
        return None
    return torch.where(known, low, weights.mean())


def point_numbers(points: Any, n: int) -> Tensor:
    """Return the numbers of `n` points in the whole data set, int64 [n]; 0 … n - 1 for None."""
    return torch.arange(n) if points is None else check_labels(points, n, LARGEST_POINT, "points")


def redrawn_outcomes(
    forecast: Forecast,
    points: Tensor,
    repetitions: int,
    seed: int,
    weights: Tensor | None = None,
    by_label: Tensor | None = None,
) -> Iterator[tuple[Forecast, Outcomes]]:
    """Yield `repetitions` draws of all labels from the forecast, as many at a time as fit.

    For a large forecast they come all at once, because one sort of its predictions serves them all.

    Args:
        points: int64 [n], the number of each point in the whole data set.
        weights: float64 [n], weights of the points.
        by_label: float64 [C], the weights of the classes, in place of those of the points. Then
            the points are all different pairs of a point and a drawn label, and a draw's weight of
            a pair that it lacks is 0.
    """
    if not repetitions:
        return
    together = repetitions if forecast.is_large else max(1, DRAWN_TOGETHER // forecast.n)
    if by_label is not None:
        together = max(1, DRAWN_TOGETHER // (PAIRS * forecast.n))
    for keys in stream_keys(seed, repetitions).to(points.device).split(together):
        source = forecast if by_label is None else Forecast(forecast.probabilities / by_label)
        drawn = source.redraw(partial(_uniforms, keys, points))
        if by_label is None:
            yield forecast, replace(drawn, weights=None if weights is None else weights[None])
            continue
        rows, labels, codes = drawn.distinct(forecast.classes)
        of_pairs = torch.zeros(len(keys), len(rows), dtype=torch.float64, device=points.device)
        of_pairs.scatter_(1, codes.to(torch.int64), by_label[drawn.labels.to(torch.int64)])
        pairs = forecast.at(rows)
        yield pairs, pairs.outcomes(labels, of_pairs)


def multiplied_outcomes(
    forecast: Forecast, outcomes: Outcomes, clusters: Tensor, repetitions: int, seed: int
) -> Iterator[tuple[Forecast, Outcomes]]:
    """Yield the observed outcomes with `repetitions` sets of a normal number per cluster.

    Args:
        clusters: int64 [n], the number of each point's cluster in the whole data set.
    """
    together = max(1, DRAWN_TOGETHER // forecast.n)
    for keys in stream_keys(seed, repetitions).to(clusters.device).split(together):
        uniforms = _uniforms(keys, clusters, slice(None)).clamp(min=TINY)
        normals = torch.special.ndtri(uniforms).to(torch.float32)
        yield forecast, replace(outcomes, multipliers=normals)


def _uniforms(keys: Tensor, points: Tensor, rows: slice) -> Tensor:
    return hashed_uniforms(keys, points[rows, None]).T


def resampled_weights(
    points: Tensor, population: int, repetitions: int, seed: int
) -> Iterator[Tensor]:
    """Yield how often each of `points` is drawn, float64 [r, n], as many repetitions as fit.

    Args:
        points: int64 [n], numbers of points, or of their clusters; all numbers below `population`
            are resampled.
    """
    together = max(1, DRAWN_TOGETHER // len(points))
    chosen = points.cpu().numpy()
    for start in range(0, repetitions, together):
        rows = [
            _counts(population, seed, repetition)[chosen]
            for repetition in range(start, min(repetitions, start + together))
        ]
        yield torch.from_numpy(np.stack(rows)).to(torch.float64).to(points.device)


def _counts(population: int, seed: int, repetition: int) -> NDArray[np.int64]:
    drawn = np.random.default_rng([seed, repetition]).integers(population, size=population)
    return np.bincount(drawn, minlength=population)
