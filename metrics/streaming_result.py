"""What a pass over points has found: bounds of all errors, from the sums in its buckets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .arrays import Array
from .certificate import CalibrationInterval
from .kernels.bucket_sums import MASS, Bounds, Buckets, bounds_of
from .resampling import NoiseFloor
from .shown import WorstInterval
from .streaming_chance import Walks
from .uc import first_largest


class Seen(NamedTuple):
    """What is kept of all points; `COMBINED` says how two of these become one.

    sums, ends and moments: those of `Buckets`, [m, …]. totals: [8], the number of points, their
    weight, the weighted sums of hits, of squared errors and of log losses, and the numbers of
    points in blocks whose weights are not all counts, of those whose label had probability 0, and
    of those whose weight is neither 0 nor 1. largest: [1], the largest weight. log_wealth:
    [m, …], of bets against calibration (`kernels/bets.py`).
    """

    sums: Array
    ends: Array
    moments: Array
    totals: Array
    largest: Array
    log_wealth: Array

    @property
    def buckets(self) -> Buckets:
        """The buckets, which share their memory with this."""
        return Buckets(self.sums, self.ends, self.moments)

    def with_points_of(self, other: Seen) -> Seen:
        """Return what is kept of the points of both."""
        pairs = zip(COMBINED.values(), self, other, strict=True)
        return Seen(*(combine(own, new) for combine, own, new in pairs))


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
        """Return bounds on the largest true UC on fresh points, as `calibration_interval` does."""
        return self._walks.interval(self.lower, self.upper, confidence)


def result_of(seen: Seen, ranges: Array, bins: int) -> StreamingResult:
    """Return what was found for utilities with these ranges of predictions [m, 2]."""
    n, weight, hits, squares, losses, importances, zeros, _ = seen.totals.tolist()
    bounds = bounds_of(seen.buckets)
    lower, upper = bounds.lower / weight, bounds.upper / weight
    return StreamingResult(
        lower,
        upper,
        _equal_width(seen.buckets, ranges, bins) / weight,
        _equal_mass(seen.buckets, bounds, bins, importances == 0) / weight,
        int(n),
        hits / weight,
        squares / weight,
        losses / weight,
        int(zeros),
        _worst(seen.buckets, bounds, weight),
        Walks(seen.moments, ranges[:, 1] - ranges[:, 0], n, weight, float(seen.largest[0])),
    )


def _equal_width(buckets: Buckets, ranges: Array, bins: int) -> Array:
    """Return Σ_bins |Σ (u - v) 1_bin|, [m]: a bucket lies in the bin of its predictions."""
    low, high = ranges[:, :1], ranges[:, 1:]
    scale = np.divide(1.0, high - low, out=np.zeros_like(high), where=high > low)
    t = (np.clip(buckets.ends[..., 1], low, high) - low) * scale
    bin_of = (t * bins).astype(np.int64).clip(0, bins - 1)
    net = buckets.sums[..., 0] - buckets.sums[..., 1]
    return np.abs(np.stack([np.bincount(b, r, bins) for b, r in zip(bin_of, net)])).sum(axis=1)


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
    first, last = (0, len(ends)) if bottom == top else (min(bottom, top), max(bottom, top))
    inside = ends[first:last].max(axis=0)
    sign = 0 if bottom == top else 1 if bottom > top else -1
    error = float(bounds.lower[index]) / weight
    return index, WorstInterval(error, -float(inside[0]), float(inside[1]), sign)


def _places(mass: Array, ends: Array) -> Array:
    return np.stack([np.searchsorted(m, e) for m, e in zip(mass, ends, strict=True)])
