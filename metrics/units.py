"""The independent observations behind a certificate: points, or clusters of points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from metrics.forecast import Forecast, Outcomes
from metrics.resampling import DRAWN_TOGETHER
from metrics.validation import InputError

MULTIPLIERS = 200


@dataclass(frozen=True)
class Units:
    """The independent observations, points or clusters.

    Attributes:
        count: their number.
        of_points: [n], the number of each point's cluster, None without clusters.
        largest: the largest total weight of one of them; their mean is one.
        known: the largest weight for the finite-sample bound, and what its sums of weights are to
            be multiplied by; None if the weights of the population are not known.
    """

    count: int
    of_points: Tensor | None
    largest: float
    known: tuple[float, float] | None

    def second_moments(self, residuals: Tensor) -> Tensor:
        """Return the mean over the units of the square of the sum of |residuals| [b, n]: [b]."""
        if self.of_points is None:
            return residuals.square_().mean(dim=1)
        sums = residuals.new_zeros(len(residuals), self.count)
        sums.index_add_(1, self.of_points, residuals.abs_())
        return sums.square_().mean(dim=1) * (self.count / residuals.shape[1]) ** 2


def units_of(
    forecast: Forecast,
    outcomes: Outcomes,
    clusters: Tensor | None,
    population_weights: tuple[float, float] | None = None,
) -> Units:
    """Return the independent observations of a sample."""
    n, count, size = forecast.n, forecast.n, 1.0
    weights = torch.ones(n) if outcomes.weights is None else outcomes.weights[0]
    shares = weights / weights.mean()
    if clusters is not None:
        found, clusters, sizes = clusters.unique(return_inverse=True, return_counts=True)
        count = len(found)
        shares = shares.new_zeros(count).index_add_(0, clusters, shares) * (count / n)
        size = float(sizes.max()) * count / n
    largest = float(shares.max())
    if outcomes.weights is None:
        return Units(count, clusters, largest, (largest, 1.0))
    if population_weights is None:
        return Units(count, clusters, largest, None)
    seen = float(weights.max())
    mean, most = population_weights if np.shape(population_weights) == (2,) else (0.0, 0.0)
    if not 0 < mean <= most or most < seen:
        raise InputError(
            f"population_weights: {population_weights}, and the largest weight here is {seen:g}; "
            "give (mean, largest) of all weights in the population"
        )
    known = (most / mean * size, float(weights.mean()) / mean)
    return Units(count, clusters, largest, known)


def normal_multipliers(units: Units, device: torch.device, seed: int) -> Tensor:
    """Return `MULTIPLIERS` sets of a normal number per unit, float32 [`MULTIPLIERS`, n].

    The seven digits of float32 are enough, and reading the numbers takes most of the time.
    """
    generator = torch.Generator().manual_seed(seed)
    sets = torch.empty(MULTIPLIERS, units.count)
    for block in sets.split(max(1, DRAWN_TOGETHER // units.count)):
        block.copy_(torch.randn(block.shape, generator=generator, dtype=torch.float64))
    sets = sets.to(device)
    return sets if units.of_points is None else sets[:, units.of_points]
