"""The reliability diagram of any utility: realized against predicted, with and without bins.

The running curve D(t) = mean((u - v) · 1{v <= t}) needs no bins. It rises where the realized
utility is larger than the predicted one and falls where it is smaller. UC (eq. 3.2) is its range.
The binned view shows the same points as a usual reliability diagram.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from .arrays import as_array
from .forecast import Forecast, Outcomes
from .keywords import PointOptions
from .scores import checked
from .shown import Array, Curve, UtilityDiagram, thin
from .uc import first_largest, worst_interval
from .utilities.base import UtilityClass

BAND = (0.025, 0.975)
"""The quantiles between which the noise band lies, at each place of the curve and in each bin."""
RUG = 200
"""Predicted utilities in a rug at most."""
ROUNDED = 1e-12
"""Predictions that differ by less than this share of the largest are one place of the curve. Equal
ones differ by so little where a matrix product adds in another order, as processors do."""


@dataclass(frozen=True)
class Predictions:
    """One utility on n points: v, u and the points' weights, [n] each.

    `redrawn` [R, n] is u under labels drawn from the forecast itself, for which it is perfectly
    calibrated.
    """

    predicted: Array
    realized: Array
    redrawn: Array
    weights: Array

    @staticmethod
    def pooled(parts: list[Predictions]) -> Predictions:
        """Return the points of several test splits, one split after the other."""
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return Predictions(*(np.concatenate(column, axis=-1) for column in columns))


def diagram_of(
    utility: UtilityClass,
    probabilities: Any,
    labels: Any,
    *,
    index: int | None = None,
    repetitions: int = 200,
    seed: int = 0,
    bins: int = 15,
    **options: Unpack[PointOptions],
) -> tuple[UtilityDiagram, float]:
    """Return the diagram of utility `index` of a class, of the worst one if it is None.

    The second value is the error by chance: the 95 % quantile of UC under the redrawn labels, of
    the largest UC of the class if the worst utility is shown. It is NaN without redrawn labels.

    Args:
        probabilities, labels: [n, C] and [n], as in `accuracy`.
        **options: as in `accuracy`.
        repetitions, seed: number and seed of the label vectors redrawn for the noise; 0 for none.
        bins: number of bins of the binned view.
    """
    forecast, outcomes = checked(probabilities, labels, **options)
    uniforms = np.random.default_rng(seed).random((repetitions, forecast.n))
    drawn = replace(forecast.redraw(uniforms), weights=outcomes.weights)
    by_chance = float("nan")
    if repetitions:
        errors = utility.errors(forecast, drawn)
        largest = errors.max(axis=1) if index is None else errors[:, index]
        by_chance = float(np.quantile(largest, 0.95))
    if index is None:
        index = first_largest(utility.errors(forecast, outcomes)[0])
    predictions = predictions_of(utility, forecast, outcomes, index, drawn.labels)
    return utility_diagram(predictions, bins), by_chance


def predictions_of(
    utility: UtilityClass, forecast: Forecast, outcomes: Outcomes, index: int, drawn: Array
) -> Predictions:
    """Evaluate utility `index` on a forecast, its outcomes, and redrawn labels `drawn` [R, n]."""
    predicted, realized = utility.predicted_and_realized(forecast, outcomes, index)
    redrawn = np.empty(drawn.shape)
    for rows, part in forecast.parts():
        vectors = as_array(utility.outcome_utilities(part, index))
        places = drawn[:, rows].T.astype(np.int64, copy=False)
        redrawn[:, rows] = np.take_along_axis(vectors, places, axis=1).T
    weights = np.ones(forecast.n) if outcomes.weights is None else outcomes.weights[0]
    columns = (predicted, realized, redrawn, weights)
    return Predictions(*(column.astype(np.float64, copy=False) for column in columns))


def utility_diagram(predictions: Predictions, bins: int = 15, points: int = 201) -> UtilityDiagram:
    """Return the diagram of one utility.

    Args:
        predictions: predictions of the utility. If `redrawn` has no rows, the band is NaN.
        bins: number of bins of equal width. With equal weights, most bins would lie near 0, because
            few points belong to a class.
        points: about how many places of the running curve are kept, at least 2; its extremes are
            always among them.
    """
    v, u, weights = predictions.predicted, predictions.realized, predictions.weights
    worst, total = worst_interval(v, u, sample_weight=weights), weights.sum()
    order = np.argsort(v, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(v[order]) > ROUNDED * np.abs(v).max(), True))
    running = np.cumsum((weights * (u - v))[order])[ends] / total
    at = v[order][ends]
    # Half of the places are evenly spread by number, half by value, and the extremes are kept.
    last, half = len(running) - 1, max(2, points // 2)
    by_number = np.linspace(0, last, min(half, last + 1)).round().astype(np.intp)
    by_value = np.searchsorted(at, np.linspace(at[0], at[-1], half)).clip(max=last)
    places = np.unique([*by_number, *by_value, running.argmin(), running.argmax()])
    noise = np.empty((len(predictions.redrawn), len(places)))
    for draw, curve in zip(predictions.redrawn, noise, strict=True):
        curve[:] = np.cumsum((weights * (draw - v))[order])[ends][places] / total
    inside = (v >= worst.low) & (v <= worst.high)
    binned, shares = _binned(predictions, bins)
    ranked = v[order][weights[order] > 0]
    return UtilityDiagram(
        running=Curve(at[places], running[places], *_band(noise)),
        bins=binned,
        worst=worst,
        share=float(weights[inside].sum() / total),
        gap=float(np.average((u - v)[inside], weights=weights[inside])),
        shares=shares,
        quantiles=ranked[thin(len(ranked), RUG)],
    )


def _band(noise: Array) -> tuple[Array, Array]:
    """Return the quantiles over the draws of noise [R, g]: [g] each, NaN without draws."""
    if not len(noise):
        unknown = np.full(noise.shape[1], np.nan)
        return unknown, unknown
    low, high = np.quantile(noise, BAND, axis=0)
    return low, high


def _binned(predictions: Predictions, bins: int) -> tuple[Curve, Array]:
    """Return the means of the bins that have points, and the share of points in each."""
    v, weights = predictions.predicted, predictions.weights
    counted = np.flatnonzero(weights > 0)
    edges = np.linspace(v[counted].min(), v[counted].max(), max(bins, 1) + 1)[1:-1]
    place = np.searchsorted(edges, v[counted], side="right")
    parts = [counted[place == b] for b in np.unique(place)]
    means = [
        np.stack([np.average(values[..., part], -1, weights[part]) for part in parts], axis=-1)
        for values in (v, predictions.realized, predictions.redrawn)
    ]
    shares = np.array([weights[part].sum() for part in parts]) / weights.sum()
    return Curve(means[0], means[1], *_band(means[2])), shares
