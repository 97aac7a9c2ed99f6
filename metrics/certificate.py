"""A certificate: bounds on the true UC of a class of utilities on fresh points.

Let Û be the largest UC over the class on n points that were not used for fitting, v_i and u_i the
predicted and realized utility of point i, and ρ the range of the utility. For a utility and an
interval write g = (u - v) 1{v ∈ I}. E is the mean over the population, E_n that over the points.

*Upper bounds.* The true UC is ξ* E g* at a worst utility u*, interval I* and sign ξ*. These belong
to the population, so they are fixed. Since ξ* E_n g* <= Û(u*),

    UC = ξ* E_n g* + ξ* (E - E_n) g*  <=  Û(u*) + ξ* (E - E_n) g*.

The last term is the deviation of one mean, so no union over utilities and intervals is needed. The
bound is the maximum of the right side over u, because u* is unknown. Var g* is at most
M = E (u* - v*)², which V = E_n (u - v)² estimates.

* asymptotic: the central limit theorem gives a deviation of at most z √(M/n), z = z_{1-α}. If the
  points contain few misses, V is smaller than M in the same samples in which E_n g* is smaller than
  E g*, so V must not replace M. Rare misses of size ρ are the worst case. Their number K is Poisson
  with mean λ = n M / ρ², and the 1-α upper bound on λ solves λ - z √λ + (z² - 1)/6 = K + ½ (normal
  approximation with the corrections for skewness and continuity; for α = 5 % it is within 5 % of
  the exact bound for all K >= 0). So with c = (4 - z²)/6 and K = n V / ρ²,
  UC <= max_u [ Û_u + z √(M_u/n) + c ρ_u/n ], √M_u = √(V_u + (c + z²/4) ρ_u²/n) + z ρ_u/(2√n).
  With many misses the deviation is z √(V_u/n) except for terms of order ρ_u/n.
* finite sample: Bernstein's inequality with second moments (Boucheron, Lugosi & Massart 2013, th.
  2.10: E e^{λX} <= exp(λ E X + E X² φ(λb)/b²) for X <= b) is applied to -ξ* g* <= ρ. It gives a
  deviation of at most √(2 M L₁/n) + ρ L₁/(3n), except with probability e^{-L₁}. The lower tail of
  the non-negative (u* - v*)² <= ρ² (Maurer 2003) gives √M <= √(V + ρ² L₂/2n) + ρ √(L₂/2n), except
  with probability e^{-L₂}. With e^{-L₁} = 0.8 α and e^{-L₂} = 0.2 α,
  UC <= max_u [ Û_u + (√(V_u + ρ_u² L₂/2n) + ρ_u √(L₂/2n)) √(2 L₁/n) + ρ_u L₁/3n ].

*Lower bound.* For every utility Û_u - UC_u <= sup_I |(E_n - E) g|. So UC >= Û - q, where q is the
1-α quantile of the maximum of this supremum over u. The larger of two estimates of q is taken, each
from so many draws that 20 are beyond the quantile, 20/α:

* the residuals, each times an independent standard normal number (Gaussian multipliers: van der
  Vaart & Wellner 1996, ch. 2.9; Chernozhukov, Chetverikov & Kato 2013). The residuals are not
  centred, which can only make the quantile larger. A sum over an interval is a difference of
  running sums, so the supremum is their range, in the same sort;
* the largest UC under labels drawn from the forecast, that is, the noise floor. The multipliers
  ignore misses that are too rare to have occurred on these points. The floor contains them, as far
  as the forecast gives them a probability.

*Estimate.* Û is biased upwards, because it is a maximum. √max(0, Û² - f²), with f the larger mean
of these two, removes most of this bias. With few points or clusters it is still too large for small
errors, because it is never negative. If it is outside the bounds, the nearer bound is taken.

*Weights.* Weights w_i are scaled to a mean of one. The asymptotic bounds then hold for w g instead
of g, with the range ρ max w. So a weight of 3 moves the error like three points, and narrows the
bounds like one point. The finite-sample bound is ρ, because a rare large weight of the population
may not have occurred on these points. Equal weights are none.

*Clusters.* The rows of one patient, say, are one observation. With G clusters of n points in all,
everything above holds for the G sums of g over a cluster, times G/n. Such a sum is at most that of
|u - v|, and at most ρ times the size of the largest cluster. The multipliers are one per cluster.
The finite-sample bound takes the sizes of the clusters as given.

*Range.* |u - v| <= ρ, so no UC exceeds ρ, and neither does a bound.

A certificate holds for this classifier and the utilities of the class, on points like these. The
rows must sum to one, because labels are drawn from them and |u - v| <= ρ requires it. ρ belongs to
the class (`UtilityClass.spread`). Only for a utility given as a function, it is the range of the
function's values on these points, over all outcomes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from .arrays import Array
from .kernels.prefix_range import prefix_range
from .samples import Sample
from .utilities.blocks import Utilities

SHARE = 0.8
"""Share of the error probability α that the finite-sample bound uses for the mean, not for V."""


class CalibrationInterval(NamedTuple):
    """Bounds on the true UC of a class, in units of utility.

    Each bound holds with the stated confidence by itself; both together hold with less. `lower` and
    `upper` are approximate: at 95 % they held in at least 93 % of the samples in all cells of
    `tests/metrics/test_coverage.py`. `upper_finite` holds for any number of points. With weights
    that differ it is the utility's range.
    """

    estimate: float
    """√max(0, Û² - f²), clipped to [`lower`, `upper`]: the largest error Û on these points,
    corrected for the upward bias of a maximum by f, the mean of the noise. With few points or
    clusters it is still too large for errors that are small beside the noise."""
    lower: float
    upper: float
    upper_finite: float


@dataclass(frozen=True)
class Evidence:
    """What a sample says about a class of utilities; the evidence on several classes can be joined.

    The attributes are what the module's text derives.
    """

    largest: float
    """Û, the largest UC on these points."""
    upper: float
    """The asymptotic bound."""
    upper_finite: float
    """The bound for any number of points."""
    multiplied: Array
    """[R], the largest range of the residuals times normal numbers."""
    redrawn: Array
    """[R'], the largest UC under drawn labels."""

    def interval(self, confidence: float) -> CalibrationInterval:
        """Return the certificate."""
        noise = [float(np.quantile(law, confidence)) for law in (self.multiplied, self.redrawn)]
        lower = max(0.0, self.largest - max(noise))
        f = max(float(law.mean()) for law in (self.multiplied, self.redrawn))
        estimate = math.sqrt(max(0.0, self.largest**2 - f**2))
        clipped = min(max(estimate, lower), self.upper)
        return CalibrationInterval(clipped, lower, self.upper, self.upper_finite)


def joined(parts: Sequence[Evidence]) -> Evidence:
    """Return the evidence on the union of classes, where each value is a maximum over classes."""
    return Evidence(
        max(part.largest for part in parts),
        max(part.upper for part in parts),
        max(part.upper_finite for part in parts),
        np.stack([part.multiplied for part in parts]).max(axis=0),
        np.stack([part.redrawn for part in parts]).max(axis=0),
    )


def evidence_of(
    utilities: Utilities,
    sample: Sample,
    redrawn: Array,
    confidence: float,
    multipliers: Array,
) -> Evidence:
    """Return the evidence of one sample of labels on a class of utilities.

    `redrawn`: the largest UC of the class under drawn labels, [R'], at least one.
    `multipliers`: [R, n], by `Sample.multipliers`.
    """
    largest, uppers, finite, multiplied = [], [], [], []
    n, count, weights = sample.forecast.n, sample.count, sample.outcomes.weights
    has_equal_weights = sample.has_equal_weights
    if weights is not None:
        weights = weights / weights.mean()
        multipliers = multipliers * weights
    for block in utilities.tied_blocks(sample.forecast, sample.outcomes):
        ranges, _ = prefix_range(block.predicted, block.payoffs, block.codes, weights=weights)
        errors = ranges[0] / n
        residuals = block.payoffs[:, block.codes[0]] - block.predicted
        spread = utilities.spread(block)
        if weights is not None:
            residuals *= weights
        second = sample.second_moments(residuals)
        deviation = asymptotic_deviation(second, spread * sample.largest, count, confidence)
        largest.append(errors)
        uppers.append(np.minimum(errors + deviation, spread))
        # Where weights differ, the population may have larger ones, so only the range is sure.
        upper_finite = spread
        if has_equal_weights:
            deviation = finite_deviation(second, spread * sample.largest, count, confidence)
            upper_finite = np.minimum(errors + deviation, spread)
        finite.append(upper_finite)
        ranges, _ = prefix_range(*block[:3], weights=multipliers, orders=block.orders)
        multiplied.append(ranges.max(axis=1))
    return Evidence(
        float(np.concatenate(largest).max()),
        float(np.concatenate(uppers).max()),
        float(np.concatenate(finite).max()),
        np.stack(multiplied).max(axis=0) / n,
        redrawn,
    )


def asymptotic_deviation(second: Array, spread: Array, n: int, confidence: float) -> Array:
    """Return the normal deviation for second moments V and ranges ρ, corrected for rare misses."""
    z = NormalDist().inv_cdf(confidence)
    extra = (4 - z**2) / 6
    moment = np.sqrt(second + np.square(spread) * ((extra + z**2 / 4) / n))
    moment += spread * (z / 2 / math.sqrt(n))
    return moment * (z / math.sqrt(n)) + spread * (extra / n)


def finite_deviation(second: Array, spread: Array, n: int, confidence: float) -> Array:
    """Return the finite-sample deviation for second moments V and ranges ρ."""
    of_mean = -math.log(SHARE * (1 - confidence))
    of_moment = -math.log((1 - SHARE) * (1 - confidence)) / (2 * n)
    moment = np.sqrt(second + np.square(spread) * of_moment) + spread * math.sqrt(of_moment)
    return moment * math.sqrt(2 * of_mean / n) + spread * of_mean / (3 * n)
