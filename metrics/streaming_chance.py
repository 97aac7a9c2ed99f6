"""Chance and confidence from sums over the points, without a second pass.

Under a calibrated forecast the running sum of u - v, in the order of v, is a walk with independent
steps. Its range depends on no more than its variance S = Σ w² Var(u | p), as that of a Brownian
motion does, whatever the order: P(range > x √S) = 8 Σ_k (-1)^(k-1) k Q(k x) (Feller 1951), with Q
the upper tail of the normal distribution. Ties make the range smaller, so the law is conservative.

Rare outcomes make large upward steps. Their number is about Poisson, so x is the solution of
x √S + r x²/6 = t, t the range and r the largest step (Cornish & Fisher). For frequent outcomes this
changes little.

For several utilities the probabilities are added up. Utilities that depend on each other, such as
top-K ones, make this bound conservative.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from .arrays import Array
from .certificate import CalibrationInterval, asymptotic_deviation, finite_deviation
from .option_checks import check_confidence
from .resampling import NoiseFloor
from .weights import are_equal

TERMS = 12
"""Terms of the series."""
ALWAYS = 0.75
"""Below this the range of a standard Brownian motion hardly ever lies, and the series is long."""
STEPS = 400


def range_tail(x: Array) -> Array:
    """Return P(range of a standard Brownian motion on [0, 1] > x)."""
    k = np.arange(1.0, TERMS + 1)
    upper = ndtr(-k * x[..., None])
    series = 8 * (k * (1 - 2 * ((k + 1) % 2)) * upper).sum(axis=-1)
    return np.where(x < ALWAYS, 1.0, series.clip(0, 1))


class Walks(NamedTuple):
    """The running sums of m utilities under chance.

    moments: [m, 2], those of `Buckets`. spread: [m], the range ρ of each utility. n, weight,
    largest and inverse: the number of points, the sum of their weights, the largest one, and the
    inverse of the smallest one.
    """

    moments: Array
    spread: Array
    n: float
    weight: float
    largest: float
    inverse: float

    def exceeded(self, errors: Array, column: int = 0) -> Array:
        """Return a bound on P(largest UC > error) for `errors` [k] by a column of `moments`."""
        root = np.sqrt(self.moments[:, column].clip(min=0))
        step = (self.spread * self.largest).clip(min=1e-300)
        t = errors[:, None] * self.weight
        # The positive root of step x²/6 + root x - t, in a form without cancellation.
        x = 2 * t / (root + np.sqrt(np.square(root) + 2 / 3 * step * t)).clip(min=1e-300)
        return range_tail(x).sum(axis=1).clip(max=1)

    def quantile(self, level: float, column: int = 0) -> float:
        """Return the error that the largest UC exceeds with a probability of at most 1 - level."""
        low, high = 0.0, float(self.spread.max())
        for _ in range(60):
            middle = (low + high) / 2
            if float(self.exceeded(np.array([middle]), column)[0]) > 1 - level:
                low = middle
            else:
                high = middle
        return high

    def noise_floor(self, observed: float) -> NoiseFloor:
        """Return mean, 95 % quantile and p-value of the largest UC by chance: upper bounds."""
        end = max(self.quantile(1 - 1e-6), 1e-12)
        grid = np.linspace(0, end, STEPS)
        mean = float(np.trapezoid(self.exceeded(grid), grid))
        p_value = float(self.exceeded(np.array([observed]))[0])
        return NoiseFloor(mean, self.quantile(0.95), p_value)

    def interval(self, lower: Any, upper: Any, confidence: float) -> CalibrationInterval:
        """Return the certificate for errors between `lower` and `upper` [m] on these points.

        The module `certificate` explains it; here the laws are those of walks in place of drawn
        labels and multipliers. With weights that differ there is no finite-sample bound below ρ.
        """
        check_confidence(confidence)
        second = self.moments[:, 1] * (self.n / self.weight**2)
        most, least = upper, lower
        spread = self.spread * (self.largest * self.n / self.weight)
        count = max(1, int(self.n))
        deviation = asymptotic_deviation(second, spread, count, confidence)
        top = float(np.minimum(most + deviation, self.spread).max())
        finite = float(self.spread.max())
        if are_equal(1 / self.inverse, self.largest):
            deviation = finite_deviation(second, spread, count, confidence)
            finite = float(np.minimum(most + deviation, self.spread).max())
        noise = max(self.quantile(confidence, column) for column in (0, 1))
        bottom = max(0.0, float(least.max()) - noise)
        middle = float((least.max() + most.max()) / 2)
        estimate = math.sqrt(max(0.0, middle**2 - self.noise_floor(middle).mean ** 2))
        return CalibrationInterval(min(max(estimate, bottom), top), bottom, top, finite)
