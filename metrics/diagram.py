"""The reliability diagram of any utility: realized against predicted, with and without bins.

The running curve D(t) = mean((u - v) · 1{v <= t}) needs no bins. It rises where the realized
utility is larger than the predicted one and falls where it is smaller. UC (eq. 3.2) is its range.
The binned view shows the same points as a usual reliability diagram.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from .arrays import as_array
from .forecast import Forecast, Outcomes
from .kernels.threads import row_blocks
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


REDRAWN_TOGETHER = 1 << 21
"""Realized utilities under redrawn labels that are held at a time: 16 MB, and 16 for places."""


@dataclass(frozen=True)
class Predictions:
    """One utility on n points: v, u and the points' weights, [n] each."""

    predicted: Array
    realized: Array
    weights: Array

    @staticmethod
    def pooled(parts: list[Predictions]) -> Predictions:
        """Return the points of several test splits, one split after the other."""
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return Predictions(*map(np.concatenate, columns))


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
    redrawn = redrawn_utilities(utility, index, [(forecast, drawn.labels)])
    predictions = predictions_of(utility, forecast, outcomes, index)
    return utility_diagram(predictions, redrawn, bins), by_chance


def predictions_of(
    utility: UtilityClass, forecast: Forecast, outcomes: Outcomes, index: int
) -> Predictions:
    """Evaluate utility `index` on a forecast and its outcomes."""
    predicted, realized = utility.predicted_and_realized(forecast, outcomes, index)
    weights = np.ones(forecast.n) if outcomes.weights is None else outcomes.weights[0]
    columns = (predicted, realized, weights)
    return Predictions(*(column.astype(np.float64, copy=False) for column in columns))


def redrawn_utilities(
    utility: UtilityClass, index: int, parts: Sequence[tuple[Forecast, Array]]
) -> Iterator[Array]:
    """Yield u of utility `index` under redrawn labels, some draws at a time: float64 [r, n].

    Under labels drawn from the forecast itself, the forecast is perfectly calibrated.

    Args:
        parts: the forecast and the redrawn labels [R, n] of each test split. Their points are put
            side by side.
    """
    n_points = sum(forecast.n for forecast, _ in parts)
    for start, stop in row_blocks(len(parts[0][1]), n_points, REDRAWN_TOGETHER):
        of_parts = [_redrawn(utility, index, part, labels[start:stop]) for part, labels in parts]
        yield np.concatenate(of_parts, axis=1)


def _redrawn(utility: UtilityClass, index: int, forecast: Forecast, labels: Array) -> Array:
    """Return u of utility `index` under redrawn labels [r, n]: float64 [r, n]."""
    redrawn = np.empty(labels.shape)
    for rows, part in forecast.parts():
        vectors = as_array(utility.outcome_utilities(part, index))
        places = labels[:, rows].T.astype(np.int64, copy=False)
        redrawn[:, rows] = np.take_along_axis(vectors, places, axis=1).T
    return redrawn


def utility_diagram(
    predictions: Predictions, redrawn: Iterable[Array] = (), bins: int = 15, points: int = 201
) -> UtilityDiagram:
    """Return the diagram of one utility.

    Args:
        predictions: predictions of the utility.
        redrawn: [r, n] each, u under redrawn labels. Without any, the band is NaN.
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
    place_of, in_bins = _bins_of(predictions, bins)
    noise, noise_of_bins = [], []
    for draw in chain.from_iterable(redrawn):
        noise.append(np.cumsum((weights * (draw - v))[order])[ends[places]] / total)
        noise_of_bins.append(_means(draw, weights, place_of, in_bins))
    inside = (v >= worst.low) & (v <= worst.high)
    ranked = v[order][weights[order] > 0]
    return UtilityDiagram(
        running=Curve(at[places], running[places], *_band(noise, len(places))),
        bins=Curve(
            _means(v, weights, place_of, in_bins),
            _means(u, weights, place_of, in_bins),
            *_band(noise_of_bins, int(np.count_nonzero(in_bins))),
        ),
        worst=worst,
        share=float(weights[inside].sum() / total),
        gap=float(np.average((u - v)[inside], weights=weights[inside])),
        shares=in_bins[in_bins > 0] / total,
        quantiles=ranked[thin(len(ranked), RUG)],
    )


def _band(noise: Sequence[Array], size: int) -> tuple[Array, Array]:
    """Return the quantiles over the draws of noise, `size` numbers each; NaN without draws."""
    if not noise:
        unknown = np.full(size, np.nan)
        return unknown, unknown
    low, high = np.quantile(np.stack(noise), BAND, axis=0)
    return low, high


def _bins_of(predictions: Predictions, bins: int) -> tuple[NDArray[np.intp], Array]:
    """Return the bin of each point, [n], and the weight in each bin, [bins]."""
    v, weights = predictions.predicted, predictions.weights
    bins, counted = max(bins, 1), v[weights > 0]
    edges = np.linspace(counted.min(), counted.max(), bins + 1)[1:-1]
    place_of = np.searchsorted(edges, v, side="right")
    in_bins = np.bincount(place_of, weights, bins).astype(np.float64, copy=False)
    return place_of, in_bins


def _means(values: Array, weights: Array, place_of: NDArray[np.intp], in_bins: Array) -> Array:
    """Return the weighted mean of `values` [n] in each bin whose weight is not 0."""
    sums = np.bincount(place_of, weights * values, len(in_bins))
    return sums[in_bins > 0] / in_bins[in_bins > 0]
