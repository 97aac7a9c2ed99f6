"""Labels drawn from the forecast (the noise floor) and points drawn again (the bootstrap).

The noise floor is the error of a forecast whose labels were drawn from itself. If its rows sum to
one, such a forecast is perfectly calibrated, so its error on n points comes from sampling alone.
This makes a Monte Carlo test of calibration (Vaicenavicius et al. 2019; "consistency resampling",
Bröcker & Smith 2007). Each (seed, repetition, point of the whole data set) has one uniform number,
used in every split and for every method. So a repetition's mean over splits is one draw of the mean
in a table.

*Weights* that are a function of the label, such as priors of the classes over their shares in the
sample, are drawn with the label. A forecast that is calibrated in the weighted population gives a
point of the sample label c with a probability proportional to p_c / w_c, and then the weight is
w_c. A class without a point gets the mean weight, or one so large that a single point of it is
expected. Other weights stay at their points, as if they did not depend on the label given the
forecast.

*Clusters* are points that are not independent, such as the rows of one patient. Nothing is known of
the dependence, so the residuals u - v of the observed labels are multiplied by a normal number per
cluster. Of this law, which ignores misses too rare to have occurred, and of labels that are drawn
independently, the one with the larger 95 % quantile is the floor. If the label has a weight, too,
all points of a cluster draw it from one uniform number, because a heavy class may have occurred in
few clusters or none. The bootstrap draws clusters.

If weights depend on the label without being a function of it, as priors times other weights, their
law is not known either. The floor is then the larger of the same two, with a number per point.

The bootstrap estimates how much a metric, or a mean over splits, would change on other points. Each
repetition draws n of the n points, with replacement; how often a point was drawn is its weight in
every split. The standard deviation of the mean over splits is its standard error (Efron &
Tibshirani 1993, ch. 6), which includes the covariance of splits that share points. Use mean ± 1.96
standard errors instead of percentiles, because repeated points make UC itself larger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .arrays import Array
from .forecast import Forecast, Outcomes
from .kernels.uniforms import hashed_uniforms, stream_keys
from .samples import DRAWN_TOGETHER, Sample
from .utilities.blocks import Utilities

Floats = NDArray[np.float64]
DrawnOutcomes = Iterator[tuple[Forecast, Outcomes]]
AnySample = TypeVar("AnySample", bound=Sample)
Measure = Callable[[AnySample, Forecast, Outcomes], Mapping[str, Array]]
"""Returns what is measured under R outcomes by name: [R] or [R, M] each."""
LARGEST_WHOLE = 100_000_000
"""The most probabilities, n x C of the whole data set, that are resampled at all."""
PAIRS = 4
"""About how many different labels a point gets in the draws, where its weights go with them."""
TINY = 1e-17
"""Stands for a uniform number of 0, whose normal quantile is infinite."""
EQUAL_DRAWS = 1e-12
"""Relative rounding error of errors, which are sums of at most about 10⁶ terms."""


class NoiseFloor(NamedTuple):
    """What an error is by chance, and how often chance makes it as large as the observed one.

    `mean` and the 95 % quantile `q95` are those of the errors under drawn labels, in the error's
    unit; `p_value` is the share of calibrated forecasts with an error as large as the observed one.
    """

    mean: float
    q95: float
    p_value: float

    @classmethod
    def of(cls, draws: ArrayLike, observed: float) -> NoiseFloor:
        """Return mean and 95 % quantile of draws [R], and the p-value of the observed error.

        The p-value counts the observed error as a draw, so a test at 5 % has at most that size
        (Phipson & Smyth 2010). Draws that are smaller only by rounding count as equal.
        """
        values = np.asarray(draws, dtype=np.float64)
        as_large = int((values >= observed * (1 - EQUAL_DRAWS)).sum())
        p_value = (1 + as_large) / (1 + len(values))
        return cls(float(values.mean()), float(np.quantile(values, 0.95)), p_value)


def largest_by_chance(utilities: Utilities, sample: Sample, repetitions: int, seed: int) -> Floats:
    """Return the largest UC of the class under each of `repetitions` draws of the floor: [R]."""

    def largest(_: Sample, forecast: Forecast, outcomes: Outcomes) -> Mapping[str, Array]:
        return {"UC": utilities.errors(forecast, outcomes).max(axis=1)}

    return floor_draws([sample], largest, repetitions, seed)["UC"]


def floor_draws(
    samples: Sequence[AnySample], measure: Measure[AnySample], repetitions: int, seed: int
) -> dict[str, Floats]:
    """Return what is measured under the draws of the noise floor, as a mean over the samples."""

    def redrawn(s: Sample) -> DrawnOutcomes:
        numbers = s.points if s.clusters is None or s.by_label is None else s.clusters
        return redrawn_outcomes(s.forecast, numbers, repetitions, seed, s.weights, s.by_label)

    def upper(draws: Floats) -> float:
        return float(np.quantile(draws.reshape(len(draws), -1).mean(axis=1), 0.95))

    drawn = _under(redrawn, samples, measure)
    if not drawn or (samples[0].clusters is None and not samples[0].weights_go_with_labels):
        return drawn
    others = _under(lambda s: multiplied_outcomes(s, repetitions, seed), samples, measure)
    return {key: max(drawn[key], others[key], key=upper) for key in drawn}


def bootstrap_draws(
    samples: Sequence[AnySample],
    measure: Measure[AnySample],
    repetitions: int,
    seed: int,
    population: int | None = None,
) -> dict[str, Floats]:
    """Return what is measured under resampled points or clusters, as a mean over the samples.

    Very many points are not resampled. Without a `population` those of the first sample are
    resampled, which contains the others.
    """
    whole = samples[0]
    if population is None:
        population = whole.forecast.n if whole.clusters is None else int(whole.clusters.max()) + 1
    n_points = max(population, whole.forecast.n)
    if n_points * whole.forecast.classes > LARGEST_WHOLE:
        return {}

    def resampled(sample: Sample) -> DrawnOutcomes:
        numbers = sample.points if sample.clusters is None else sample.clusters
        for counts in resampled_weights(numbers, population, repetitions, seed):
            weights = counts if sample.weights is None else counts * sample.weights
            is_empty = weights.sum(axis=1) == 0  # no point with a weight came out
            weights[is_empty] = 1.0 if sample.weights is None else sample.weights
            yield sample.forecast, sample.forecast.outcomes(sample.labels, weights)

    return _under(resampled, samples, measure)


def _under(
    outcomes_of: Callable[[Sample], DrawnOutcomes],
    samples: Sequence[AnySample],
    measure: Measure[AnySample],
) -> dict[str, Floats]:
    """Return what is measured under all outcomes of each sample, as a mean over the samples."""
    results = []
    for sample in samples:
        parts = [measure(sample, *draws) for draws in outcomes_of(sample)]
        keys = parts[0] if parts else ()
        results.append({key: np.concatenate([part[key] for part in parts]) for key in keys})
    return means(results)


def means(results: Iterable[Mapping[str, Array]]) -> dict[str, Array]:
    """Return the mean of each value over the results that have it."""
    values: dict[str, list[Array]] = {}
    for result in results:
        for key, value in result.items():
            values.setdefault(key, []).append(value)
    return {
        key: parts[0] if len(parts) == 1 else np.stack(parts).mean(axis=0)
        for key, parts in values.items()
    }


def redrawn_outcomes(
    forecast: Forecast,
    points: Array,
    repetitions: int,
    seed: int,
    weights: Array | None = None,
    by_label: Array | None = None,
) -> DrawnOutcomes:
    """Yield `repetitions` draws of all labels from the forecast, as many at a time as fit.

    One sort of the predictions serves all that come at once. So their labels and ranks may take as
    much memory as the probabilities.

    With `by_label` [C], the weights of the classes in place of those of the points, the points are
    all different pairs of a point and a drawn label, and a draw's weight of a pair that it lacks is
    0. Other arguments are fields of `Sample`.
    """
    if not repetitions:
        return
    source, together = forecast, max(DRAWN_TOGETHER // forecast.n, 2 * forecast.classes)
    if by_label is not None:
        source = Forecast(forecast.probabilities / by_label)
        together = max(1, DRAWN_TOGETHER // (PAIRS * forecast.n))
    for keys in in_parts(stream_keys(seed, repetitions), together):
        drawn = source.redraw(partial(_uniforms, keys, points))
        if by_label is None:
            yield forecast, replace(drawn, weights=None if weights is None else weights[None])
            continue
        rows, labels, codes = drawn.distinct(forecast.classes)
        of_pairs = np.zeros((len(keys), len(rows)))
        drawn_weights = by_label[drawn.labels.astype(np.int64, copy=False)]
        if weights is not None:
            drawn_weights = drawn_weights * (weights > 0)
        np.put_along_axis(of_pairs, codes, drawn_weights, axis=1)
        pairs = forecast.at(rows)
        yield pairs, pairs.outcomes(labels, of_pairs)


def multiplied_outcomes(sample: Sample, repetitions: int, seed: int) -> DrawnOutcomes:
    """Yield the observed outcomes with `repetitions` sets of a normal number per unit."""
    from scipy.special import ndtri  # .2 s, and only points that are not independent need it

    numbers = sample.points if sample.clusters is None else sample.clusters
    together = max(1, DRAWN_TOGETHER // sample.forecast.n)
    for keys in in_parts(stream_keys(seed, repetitions), together):
        uniforms = _uniforms(keys, numbers).clip(min=TINY)
        normals = ndtri(uniforms).astype(np.float32)
        yield sample.forecast, replace(sample.outcomes, multipliers=normals)


def in_parts(keys: Array, size: int) -> list[Array]:
    return [keys[start : start + size] for start in range(0, len(keys), size)]


def _uniforms(keys: Array, points: Array, rows: slice = slice(None)) -> Array:
    return hashed_uniforms(keys, points[rows, None]).T


def resampled_weights(
    points: Array, population: int, repetitions: int, seed: int
) -> Iterator[Array]:
    """Yield how often each of `points` is drawn, float64 [r, n], as many repetitions as fit.

    These are numbers of points, or of their clusters; all below `population` are resampled.
    """
    together = max(1, DRAWN_TOGETHER // population)
    for start in range(0, repetitions, together):
        rows = range(start, min(repetitions, start + together))
        counts = np.take(resampled_counts(population, rows, seed), points, axis=1)
        yield counts.astype(np.float64)


@lru_cache(maxsize=1)  # the splits and methods of a benchmark share their counts
def resampled_counts(population: int, repetitions: range, seed: int) -> NDArray[np.uint8]:
    """Return how often each of `population` points is drawn: [r, population]; seldom above 10."""
    counts = np.empty((len(repetitions), population), np.uint8)
    for row, repetition in zip(counts, repetitions, strict=True):
        drawn = np.random.default_rng([seed, repetition]).integers(population, size=population)
        row[:] = np.bincount(drawn, minlength=population)
    return counts
