"""A certificate: between which bounds the true UC of a class of utilities lies on fresh points.

On n points that were not used for fitting let Û be the largest UC over the class, v_i and u_i the
predicted and realized utility of point i, and ρ the range of the utility. Of a utility and an
interval write g = (u - v) 1{v ∈ I}; E is the mean over the population, E_n that over the points.

*Upper bounds.* The true UC is ξ* E g* at a worst utility u*, interval I* and sign ξ*, which are
fixed: they belong to the population. Since ξ* E_n g* <= Û(u*),

    UC = ξ* E_n g* + ξ* (E - E_n) g*  <=  Û(u*) + ξ* (E - E_n) g*,

the deviation of one mean, so no union over utilities and intervals is needed; u* is unknown, hence
the maximum over u of the right side. Var g* <= E (u* - v*)², estimated by V = E_n (u - v)².

* asymptotic (central limit theorem): UC <= max_u [ Û_u + z_{1-α} √(V_u / n) ].
* finite sample: Bernstein's inequality with second moments (Boucheron, Lugosi & Massart 2013, th.
  2.10: E e^{λX} <= exp(λ E X + E X² φ(λb)/b²) for X <= b) for -ξ* g* <= ρ gives, but for
  probability e^{-L₁}, a deviation of at most √(2 M L₁/n) + ρ L₁/(3n) with M = E (u* - v*)². The
  lower tail of the non-negative (u* - v*)² <= ρ² (Maurer 2003) gives, but for e^{-L₂},
  √M <= √(V + ρ² L₂/2n) + ρ √(L₂/2n). With e^{-L₁} = 0.8 α and e^{-L₂} = 0.2 α,
  UC <= max_u [ Û_u + (√(V_u + ρ_u² L₂/2n) + ρ_u √(L₂/2n)) √(2 L₁/n) + ρ_u L₁/3n ].

*Lower bound.* For every utility Û_u - UC_u <= sup_I |(E_n - E) g|, and the law of its maximum over
u is that of the same process with each residual times an independent standard normal number
(Gaussian multipliers: van der Vaart & Wellner 1996, ch. 2.9; Chernozhukov, Chetverikov & Kato
2013). A sum over an interval is a difference of running sums, so the supremum is their range, in
the same sort. UC >= Û - the 1-α quantile of max_u range.

*Estimate.* Û is biased upwards as a maximum is; √max(0, Û² - f²) with f the mean of the noise floor
removes most of that.

A certificate speaks of the classifier at hand and of the utilities of the class, on points like
these. Of a class given by functions, ρ is the range seen on these points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import torch
from torch import Tensor

from metrics.floor import DRAWN_TOGETHER, point_numbers, redrawn_outcomes
from metrics.forecast import Forecast, Outcomes
from metrics.kernels.prefix_range import prefix_range
from metrics.scores import checked
from metrics.utilities.base import UtilityClass
from metrics.validation import InputError

MULTIPLIERS = 200
REDRAWS = 200
SHARE = 0.8
"""Of the error probability α that the finite-sample bound spends on the mean; the rest on V."""


class CalibrationInterval(NamedTuple):
    """Bounds on the true UC of a class, each of the stated confidence, in units of utility."""

    estimate: float
    """√max(0, Û² - f²): the largest error on these points, `errors.max()`, corrected for the upward
    bias of a maximum by f, the mean of the noise floor; so it is the smaller of the two."""
    lower: float
    upper: float
    """Asymptotic."""
    upper_finite: float
    """Valid at any number of points."""


def calibration_interval(
    utilities: UtilityClass,
    probabilities: Any,
    labels: Any,
    confidence: float = 0.95,
    seed: int = 0,
) -> CalibrationInterval:
    """Return bounds on the true UC, the largest over a class of utilities; see the module.

    "With confidence 95 % no user of this class is off by more than `.upper`."

    Args:
        utilities: any `UtilityClass`, of any range.
        probabilities, labels: [n, C] and [n], points that were not used for fitting.
        confidence: 1 - α of each bound.
        seed: of the multipliers and of the drawn labels.

    Raises:
        InputError: shapes, ranges or row sums are off, or the confidence is not in (0, 1).
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence: {confidence}, expected a number in (0, 1)")
    forecast, outcomes = checked(probabilities, labels)
    points = point_numbers(None, forecast.n).to(outcomes.labels.device)
    draws = redrawn_outcomes(forecast, points, REDRAWS, seed, forecast.n)
    floor = torch.cat([utilities.errors(forecast, some).max(dim=1).values for some in draws])
    multipliers = normal_multipliers(forecast, seed)
    found = evidence_of(utilities, forecast, outcomes, floor, confidence, multipliers)
    return found.interval(confidence)


@dataclass(frozen=True)
class Evidence:
    """What a sample says of a class of utilities; that of several classes may be joined.

    largest: Û; upper, upper_finite: the bounds; multiplied: the largest range of the residuals
    times normal numbers, [R]; redrawn: the largest UC under drawn labels, [R'].
    """

    largest: float
    upper: float
    upper_finite: float
    multiplied: Tensor
    redrawn: Tensor

    def interval(self, confidence: float) -> CalibrationInterval:
        """The certificate."""
        lower = self.largest - float(torch.quantile(self.multiplied, confidence))
        noise = float(self.redrawn.mean()) if len(self.redrawn) else 0.0
        estimate = math.sqrt(max(0.0, self.largest**2 - noise**2))
        return CalibrationInterval(estimate, max(0.0, lower), self.upper, self.upper_finite)


def joined(parts: Sequence[Evidence]) -> Evidence:
    """The evidence on the union of classes: everything is a maximum over utilities."""
    return Evidence(
        max(part.largest for part in parts),
        max(part.upper for part in parts),
        max(part.upper_finite for part in parts),
        torch.stack([part.multiplied for part in parts]).max(dim=0).values,
        torch.stack([part.redrawn for part in parts]).max(dim=0).values,
    )


def evidence_of(
    utilities: UtilityClass,
    forecast: Forecast,
    outcomes: Outcomes,
    redrawn: Tensor,
    confidence: float,
    multipliers: Tensor,
) -> Evidence:
    """Return the evidence of one draw of the labels on a class of utilities.

    `redrawn`: the largest UC of the class under drawn labels, [R'].
    `multipliers`: [R, n], by `normal_multipliers`.
    """
    largest, uppers, finite, multiplied = [], [], [], []
    for block in utilities.tied_blocks(forecast, outcomes):
        sums = prefix_range(block.predicted, block.payoffs, block.codes)
        errors = (sums.high[0] - sums.low[0]) / forecast.n
        second = (block.payoffs[:, block.codes[0]] - block.predicted).square_().mean(dim=1)
        spread = block.payoffs.amax(dim=1) - block.payoffs.amin(dim=1)
        largest.append(errors)
        uppers.append(errors + _asymptotic(second, forecast.n, confidence))
        finite.append(errors + _bernstein(second, spread, forecast.n, confidence))
        ranges = prefix_range(block.predicted, block.payoffs, block.codes, weights=multipliers)
        multiplied.append((ranges.high - ranges.low).max(dim=1).values)
    return Evidence(
        float(torch.cat(largest).max()),
        float(torch.cat(uppers).max()),
        float(torch.cat(finite).max()),
        torch.stack(multiplied).max(dim=0).values / forecast.n,
        redrawn,
    )


def _asymptotic(second: Tensor, n: int, confidence: float) -> Tensor:
    """z √(V/n)."""
    return NormalDist().inv_cdf(confidence) * (second / n).sqrt()


def _bernstein(second: Tensor, spread: Tensor, n: int, confidence: float) -> Tensor:
    """The finite-sample deviation for second moments V and ranges ρ."""
    of_mean = -math.log(SHARE * (1 - confidence))
    of_moment = -math.log((1 - SHARE) * (1 - confidence)) / (2 * n)
    moment = (second + spread.square() * of_moment).sqrt() + spread * math.sqrt(of_moment)
    return moment * math.sqrt(2 * of_mean / n) + spread * of_mean / (3 * n)


def normal_multipliers(forecast: Forecast, seed: int) -> Tensor:
    """Return `MULTIPLIERS` sets of standard normal numbers, float32 [`MULTIPLIERS`, n].

    Seven digits of them are enough, and reading them is what takes the time.
    """
    generator = torch.Generator().manual_seed(seed)
    sets = torch.empty(MULTIPLIERS, forecast.n)
    for some in sets.split(max(1, DRAWN_TOGETHER // forecast.n)):
        some.copy_(torch.randn(some.shape, generator=generator, dtype=torch.float64))
    return sets.to(forecast.probabilities.device)
