"""What a pass over points has found: bounds of all errors, from the sums in its buckets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .arrays import Array
from .certificate import CalibrationInterval
from .forecast import Forecast, Outcomes
from .kernels.bucket_sums import MASS, Bounds, Buckets, bounds_of
from .resampling import NoiseFloor
from .scores import accuracies, brier_scores, log_losses, tied_points, zero_likelihoods
from .shown import WorstInterval
from .streaming_chance import Walks
from .uc import first_largest
from .weights import are_counts, say_nothing


class Totals(NamedTuple):
    """Sums over the points, none of which depends on a utility."""

    n_points: float
    """Of a weight above 0, as all that are counted here."""
    weight: float
    hits: float
    """Weighted, as the next two."""
    squared_errors: float
    log_losses: float
    n_importances: float
    """Points in blocks whose weights are not all counts."""
    n_zeros: float
    """Points whose label had probability 0."""
    n_tied: float
    """Points with several most probable classes."""


class Seen(NamedTuple):
    """What is kept of all points; `COMBINED` says how two of these become one.

    The first three are those of `Buckets`.
    """

    sums: Array
    ends: Array
    moments: Array
    totals: Array
    """[8], the fields of `Totals`."""
    largest: Array
    """[2], the largest weight, and the inverse of the smallest one."""
    log_wealth: Array
    """[m, …], of bets against calibration (`kernels/bets.py`)."""

    @property
    def buckets(self) -> Buckets:
        """The buckets, which share their memory with this."""
        return Buckets(self.sums, self.ends, self.moments)

    @property
    def has_weights(self) -> bool:
        """Whether the weights of the points say something (metrics/weights.py)."""
        largest, inverse = self.largest.tolist()
        return largest > 0 and not say_nothing(1 / inverse, largest)

    def in_units(self) -> Seen:
        """Return the same with weights of 1 in place of equal ones."""
        unit = float(self.largest[0])
        totals = Totals(*self.totals.tolist())
        sums = self.sums / unit
        sums[..., MASS] = sums[..., MASS].round()  # numbers of points
        return self._replace(
            sums=sums,
            moments=self.moments / unit**2,
            totals=np.array(
                totals._replace(
                    weight=totals.n_points,
                    hits=totals.hits / unit,
                    squared_errors=totals.squared_errors / unit,
                    log_losses=totals.log_losses / unit,
                    n_importances=0.0,
                )
            ),
            largest=np.ones(2),
        )

    def with_points_of(self, other: Seen) -> Seen:
        """Return what is kept of the points of both."""
        pairs = zip(COMBINED.values(), self, other, strict=True)
        return Seen(*(combine(these, those) for combine, these, those in pairs))


COMBINED: dict[str, Callable[[Array, Array], Array]] = {
    "sums": np.add,
    "ends": np.maximum,
    "moments": np.add,
    "totals": np.add,
    "largest": np.maximum,
    "log_wealth": np.add,
}


@dataclass(frozen=True)
class StreamingResult:
    """What is known of the calibration errors of m utilities.

    Attributes:
        lower, upper: [m], bounds of each utility's UC on the points seen, in its unit.
        equal_width: [m], the binned error with bins of equal width on the utility's range.
        equal_mass: [2, m], lower and upper bounds of that with bins of equal weight.
        n, accuracy, brier, nll: the number of points, and the scores of the forecast.
        zero_likelihood: the number of points whose label had probability 0. The true NLL is then
            infinite; `nll` takes these probabilities as 1e-12.
        tied_share: the share of the points that have several most probable classes, which are
            ranked in the order of the columns.
    """

    lower: np.ndarray[Any, np.dtype[np.float64]]
    upper: np.ndarray[Any, np.dtype[np.float64]]
    equal_width: np.ndarray[Any, np.dtype[np.float64]]
    equal_mass: np.ndarray[Any, np.dtype[np.float64]]
    n: int
    accuracy: float
    brier: float
    nll: float
    zero_likelihood: int
    tied_share: float
    _worst: tuple[int, WorstInterval]
    _walks: Walks

    @property
    def worst(self) -> tuple[int, WorstInterval]:
        """The utility of largest `lower`, and its worst interval that ends between buckets."""
        return self._worst

    def noise_floor(self) -> NoiseFloor:
        """Return an upper bound of the largest error that chance alone makes (`Walks`)."""
        return self._walks.noise_floor(float(self.lower.max()))

    def calibration_interval(self, confidence: float = 0.95) -> CalibrationInterval:
        """Return bounds on the largest true UC on fresh points, as `evaluate(…).interval` has."""
        return self._walks.interval(self.lower, self.upper, confidence)


def totals_of(forecast: Forecast, outcomes: Outcomes, weights: Array) -> Totals:
    """Return what a block of points with positive weights [n] adds to the totals."""
    n_points, weight = len(weights), float(outcomes.size[0, 0])
    return Totals(
        n_points=n_points,
        weight=weight,
        hits=accuracies(outcomes)[0] * weight,
        squared_errors=brier_scores(forecast, outcomes)[0] * weight,
        log_losses=log_losses(forecast, outcomes)[0] * weight,
        n_importances=0 if are_counts(weights) else n_points,
        n_zeros=zero_likelihoods(forecast, outcomes)[0],
        n_tied=tied_points(forecast),
    )


def result_of(seen: Seen, ranges: Array, bins: int) -> StreamingResult:
    """Return what was found for utilities with these ranges of predictions [m, 2]."""
    if not seen.has_weights:
        seen = seen.in_units()
    totals = Totals(*seen.totals.tolist())
    n_points, weight = totals.n_points, totals.weight
    bounds = bounds_of(seen.buckets)
    spread = ranges[:, 1] - ranges[:, 0]
    return StreamingResult(
        lower=bounds.lower / weight,
        upper=bounds.upper / weight,
        equal_width=_equal_width(seen.buckets, ranges, bins) / weight,
        equal_mass=_equal_mass(seen.buckets, bounds, bins, totals.n_importances == 0) / weight,
        n=int(n_points),
        accuracy=totals.hits / weight,
        brier=totals.squared_errors / weight,
        nll=totals.log_losses / weight,
        zero_likelihood=int(totals.n_zeros),
        tied_share=totals.n_tied / n_points,
        _worst=_worst(seen.buckets, bounds, weight),
        _walks=Walks(seen.moments, spread, n_points, weight, *seen.largest.tolist()),
    )


def _equal_width(buckets: Buckets, ranges: Array, bins: int) -> Array:
    """Return Σ_bins |Σ (u - v) 1_bin|, [m]: a bucket lies in the bin of its predictions."""
    low, high = ranges[:, :1], ranges[:, 1:]
    scale = np.divide(1.0, high - low, out=np.zeros_like(high), where=high > low)
    t = (np.clip(buckets.ends[..., 1], low, high) - low) * scale
    bin_of = (t * bins).astype(np.int64).clip(0, bins - 1)
    residuals = buckets.sums[..., 0] - buckets.sums[..., 1]
    pairs = zip(bin_of, residuals, strict=True)
    sums = np.stack([np.bincount(places, values, bins) for places, values in pairs])
    return np.abs(sums).sum(axis=1)


def _equal_mass(buckets: Buckets, bounds: Bounds, bins: int, are_counts: bool) -> Array:
    """Return lower and upper bounds on Σ_bins |Σ (u - v) 1_bin| by rank: [2, m].

    An edge inside a bucket leaves the running sum there open between the bucket's bounds, also
    in a group of ties, whose points come in an order that is not known. The edges of weights that
    are counts are whole numbers.
    """
    mass = buckets.sums[..., MASS].cumsum(axis=1)
    ends = mass[:, -1:] * np.arange(1.0, bins) / bins
    net, before = bounds.at_borders, bounds.at_borders[:, :-1]
    least = before - buckets.sums[..., 1]
    most = before + buckets.sums[..., 0]
    lows, highs = [np.zeros_like(net[:, :1])], [np.zeros_like(net[:, :1])]
    place = _places(mass, np.floor(ends + 1e-9) if are_counts else ends * (1 - 1e-12))
    lows.append(np.take_along_axis(least, place, axis=1))
    highs.append(np.take_along_axis(most, place, axis=1))
    low = np.concatenate([*lows, net[:, -1:]], axis=1)
    high = np.concatenate([*highs, net[:, -1:]], axis=1)
    gap = np.maximum(low[:, 1:] - high[:, :-1], low[:, :-1] - high[:, 1:]).clip(min=0)
    most_of_bin = np.maximum(high[:, 1:] - low[:, :-1], high[:, :-1] - low[:, 1:])
    return np.stack([gap.sum(axis=1), most_of_bin.sum(axis=1)])


def _worst(buckets: Buckets, bounds: Bounds, weight: float) -> tuple[int, WorstInterval]:
    """Return the utility of largest error at the borders, and its worst interval."""
    index = first_largest(bounds.lower)
    sums, ends = bounds.at_borders[index], buckets.ends[index]
    bottom, top = int(sums.argmin()), int(sums.argmax())
    if bottom == top:
        first, last, sign = 0, len(ends), 0
    else:
        first, last = min(bottom, top), max(bottom, top)
        sign = 1 if bottom > top else -1
    inside = ends[first:last].max(axis=0)
    error = float(bounds.lower[index]) / weight
    return index, WorstInterval(error, -float(inside[0]), float(inside[1]), sign)


def _places(mass: Array, ends: Array) -> Array:
    return np.stack([np.searchsorted(m, e) for m, e in zip(mass, ends, strict=True)])
