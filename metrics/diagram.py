"""The reliability diagram of any utility: realized against predicted, with and without bins.

The running curve D(t) = mean((u - v) · 1{v <= t}) needs no bins. It rises where the realized
utility is larger than the predicted one and falls where it is smaller. UC (eq. 3.2) is its range.
The binned view shows the same points as a usual reliability diagram.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from .arrays import as_array
from .forecast import Forecast, Outcomes
from .keywords import PointOptions
from .scores import checked
from .shown import Array, Curve, UtilityDiagram
from .uc import first_largest, worst_interval
from .utilities.base import UtilityClass

BAND = (0.025, 0.975)
"""The quantiles between which the noise band lies, at each place of the curve and in each bin."""
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
) -> UtilityDiagram:
    """Return the diagram of utility `index` of a class, of the worst one if it is None.

    Args:
        probabilities, labels: [n, C] and [n], as in `accuracy`.
        **options: as in `accuracy`.
        repetitions, seed: number and seed of the label vectors redrawn for the noise; 0 for none.
        bins: number of bins of the binned view.
    """
    forecast, outcomes = checked(probabilities, labels, **options)
    if index is None:
        index = first_largest(utility.errors(forecast, outcomes)[0])
    uniforms = np.random.default_rng(seed).random((repetitions, forecast.n))
    drawn = forecast.redraw(uniforms).labels
    return utility_diagram(predictions_of(utility, forecast, outcomes, index, drawn), bins)


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
    running, at = np.cumsum((weights * (u - v))[order])[ends] / total, v[order][ends]
    # Half of the places are evenly spread by number, half by value, and the extremes are kept.
    last, half = len(running) - 1, max(2, points // 2)
    by_number = np.linspace(0, last, min(half, last + 1)).round().astype(np.intp)
    by_value = np.searchsorted(at, np.linspace(at[0], at[-1], half)).clip(max=last)
    kept = np.unique([*by_number, *by_value, running.argmin(), running.argmax()])
    noise = np.empty((len(predictions.redrawn), len(kept)))
    for draw, curve in zip(predictions.redrawn, noise, strict=True):
        curve[:] = np.cumsum((weights * (draw - v))[order])[ends][kept] / total
    inside = (v >= worst.low) & (v <= worst.high)
    return UtilityDiagram(
        running=Curve(at[kept], running[kept], *_band(noise)),
        bins=_binned(predictions, bins),
        worst=worst,
        share=float(weights[inside].sum() / total),
        gap=float(np.average((u - v)[inside], weights=weights[inside])),
    )


def _band(noise: Array) -> tuple[Array, Array]:
    low, high = np.quantile(noise, BAND, axis=0) if len(noise) else [noise.sum(0) * np.nan] * 2
    return low, high


def _binned(predictions: Predictions, bins: int) -> Curve:
    v, weights = predictions.predicted, predictions.weights
    counted = np.flatnonzero(weights > 0)
    edges = np.linspace(v[counted].min(), v[counted].max(), max(bins, 1) + 1)[1:-1]
    place = np.searchsorted(edges, v[counted], side="right")
    parts = [counted[place == b] for b in np.unique(place)]
    means = [
        np.stack([np.average(values[..., part], -1, weights[part]) for part in parts], axis=-1)
        for values in (v, predictions.realized, predictions.redrawn)
    ]
    return Curve(means[0], means[1], *_band(means[2]))
