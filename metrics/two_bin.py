"""An error of a forecast that the true probabilities minimise, at every number of points.

A label is 1 with probability p. The squared sums of y - v over two bins of points, {v <= t} and
{v > t}, have the expectation Σ p (1 - p) plus the squared sums of p - v. The former does not depend
on the forecast. So v = p minimises the expectation for every t and n, and also that of the mean
over t uniform on [0, 1] (Hartline, Hu and Wu 2025, arXiv 2508.13100; of several classes arXiv
2510.06388). Σ v (1 - v) must not be subtracted, although it estimates that constant: it depends on
the forecast, and a forecast nearer to 1/2 than the truth would gain.
"""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Array
from .forecast import Forecast, Outcomes
from .kernels.ranks import ascending_order, ranked_sums, ranked_values
from .kernels.threads import row_blocks
from .keywords import PointOptions
from .scores import checked

TOGETHER = 1 << 20  # probabilities at a time: 80 MB for what is computed from them


def two_bin_error(
    probabilities: ArrayLike, labels: ArrayLike, **options: Unpack[PointOptions]
) -> float:
    """Return the truthful two-bin error: the sum over classes of the mean over t in [0, 1] of

    (Σ_{p_c <= t} (1{y = c} - p_c) / n)² + (Σ_{p_c > t} (1{y = c} - p_c) / n)².

    The true probabilities minimise its expectation, so of two forecasts the one with the smaller
    error is the better guess where no test tells them apart. It is not zero for the truth.

    >>> p = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]
    >>> round(two_bin_error(p, labels=[0, 1, 1, 0]), 4)
    0.0435

    Args:
        probabilities, labels: [n, C] and [n], as in `accuracy`, with the same errors.
        **options: as in `accuracy`.

    The unit is squared shares of points (Hartline, Hu and Wu 2025).
    """
    return float(two_bin_errors(*checked(probabilities, labels, **options))[0])


def two_bin_errors(forecast: Forecast, outcomes: Outcomes) -> Array:
    """Return `two_bin_error` under each outcome, weighted where the outcomes are: float64 [R].

    Each class has its own part of the sum, so that some classes at a time need little memory.
    """
    blocks = row_blocks(forecast.classes, forecast.n, TOGETHER)
    parts = [_of_classes(forecast, outcomes, *block) for block in blocks]
    return np.stack(parts).sum(axis=0) / outcomes.size.ravel() ** 2


def _of_classes(forecast: Forecast, outcomes: Outcomes, start: int, stop: int) -> Array:
    """The parts of the classes from `start` to `stop` in the sums, [R]."""
    p = np.ascontiguousarray(forecast.probabilities[:, start:stop].T)
    order = ascending_order(p)
    ordered = ranked_values(p, order)
    # Between two neighbours t has the same two bins; tied ones have no t between them.
    lengths = np.diff(ordered, axis=1, append=1.0)
    errors = []
    for draw in range(outcomes.draws):
        labels = outcomes.labels[draw % len(outcomes.labels)]  # one draw may have many weights
        points = np.flatnonzero((labels >= start) & (labels < stop))
        residuals = -p
        residuals[labels[points] - start, points] += 1
        if outcomes.weights is not None:
            residuals *= outcomes.weights[draw % len(outcomes.weights)]
        sums = ranked_sums(residuals, order)
        whole = sums[:, -1:]
        below = ordered[:, 0] * whole[:, 0] ** 2
        errors.append((lengths * (sums**2 + (whole - sums) ** 2)).sum() + below.sum())
    return np.stack(errors)
