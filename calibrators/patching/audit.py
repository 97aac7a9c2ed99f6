"""The audit of Algorithm 1 (lines 3 and 4): the witness of largest error, without sorting all.

U_CWE ∪ U_topK are 2C utilities whose predictions are columns of the probabilities and of their
top-K sums, so no matrix is built for them. Upper bounds by sums of columns
(`metrics.kernels.bounds`) order them; errors are computed in rounds, those of the largest bounds
first, until none left can win. The errors of sampled utilities are all computed.

Intervals end only in gaps of v that are wide against rounding (`TIED`), and errors are compared
with a tolerance (`EQUAL`): the witness found does not depend on the last bit of any number.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from calibrators.patching.state import PatchedForecast
from calibrators.patching.utilities import (
    ClassUtility,
    Kind,
    PayoffUtility,
    Utility,
    drops,
    numbered,
)
from metrics.forecast import Outcomes
from metrics.kernels.bounds import indicator_bounds
from metrics.kernels.prefix_range import prefix_range
from metrics.kernels.product import product
from metrics.utilities.base import UtilityClass
from metrics.utilities.payoffs import sample_unit_sphere_infinity
from metrics.utility_calibration import worst_interval

TIED = 1e-6
"""Predictions that lie no further apart are tied: more than float32 is off after many patches."""
EQUAL = 1e-10
"""Errors that differ by less are equal: the first utility in the order of the families wins."""
EXACT_AT_ONCE = 16
"""Utilities of a family computed exactly in the first round."""
MORE_AT_ONCE = 4
"""How many times as many in each next one: a few columns cost as much as many."""
EXACT_AT_ONCE_ON_GPU = 256


@dataclass(frozen=True)
class Witness:
    """w = ξ u⃗ 1{v in I}: the utility, its interval of v, the sign, and E<f - Y, w>, its error.

    ξ is +1 where the predicted utility exceeds the realized one, -1 where it falls short, and 0
    where both agree everywhere. rows: int64 [k], the points with v in I.
    """

    utility: Utility
    low: float
    high: float
    sign: int
    error: float
    rows: Tensor


def rows_within(v: Tensor, low: float, high: float) -> Tensor:
    """Return the points with low <= v <= high: int64 [k]."""
    return torch.nonzero((v >= low) & (v <= high)).flatten()


def witness_of(state: PatchedForecast, utility: Utility) -> Witness:
    """Return the worst witness of one utility; the ends of its interval lie amid gaps of v."""
    v = utility.predicted(state)
    worst = worst_interval(v, utility.realized(state), TIED)
    below, above = v[v < worst.low], v[v > worst.high]
    low = (float(below.max()) + worst.low) / 2 if len(below) else -math.inf
    high = (float(above.min()) + worst.high) / 2 if len(above) else math.inf
    return Witness(utility, low, high, worst.sign, worst.error, rows_within(v, low, high))


class Family(ABC):
    """Utilities audited together."""

    @abstractmethod
    def bounds(self) -> Tensor:
        """Return upper bounds on their errors: [m]."""

    @abstractmethod
    def errors(self, chosen: Tensor) -> Tensor:
        """Return the errors of some: int64 [k] to float64 [k]."""

    @abstractmethod
    def utility(self, index: int) -> Utility:
        """Return one of them."""


@dataclass(frozen=True)
class IndicatorFamily(Family):
    """Utilities that pay 1 or 0: predictions [n, m], with the sums [2, m] of `indicator_bounds`."""

    kind: Kind
    predicted: Tensor
    payoffs: Tensor
    codes: Tensor
    sums: Tensor

    def bounds(self) -> Tensor:
        """From the sums."""
        hits = torch.bincount(self.codes, minlength=len(self.payoffs))
        if self.kind == "top_k":
            hits = hits.cumsum(dim=0)
        return indicator_bounds(self.sums, hits, len(self.codes))

    def errors(self, chosen: Tensor) -> Tensor:
        """Computed for the chosen columns of the predictions."""
        return _errors(self.predicted.T[chosen], self.payoffs[chosen], self.codes)

    def utility(self, index: int) -> Utility:
        """The indicator of a class, or of the K most probable."""
        make = PayoffUtility.of_class if self.kind == "class" else PayoffUtility.of_top_k
        return make(index, len(self.payoffs))


class ExactFamily(Family):
    """Utilities whose errors are all computed; a bound takes hardly less time."""

    def __init__(self, errors: Tensor) -> None:
        self.all_errors = errors

    def bounds(self) -> Tensor:
        """The errors themselves."""
        return self.all_errors

    def errors(self, chosen: Tensor) -> Tensor:
        """Known already."""
        return self.all_errors[chosen]


class PayoffFamily(ExactFamily):
    """Utilities with predictions [m, n] and payoffs [m, C] by class or by rank."""

    def __init__(self, kind: Kind, predicted: Tensor, payoffs: Tensor, codes: Tensor) -> None:
        super().__init__(_errors(predicted, payoffs, codes))
        self.kind, self.payoffs = kind, payoffs

    def utility(self, index: int) -> Utility:
        """Its payoffs, in memory of their own."""
        return PayoffUtility(self.kind, index, self.payoffs[index].cpu().clone())


class ClassFamily(ExactFamily):
    """The utilities of a class of `metrics`; numbered from `first`."""

    def __init__(self, utilities: UtilityClass, state: PatchedForecast, first: int = 0) -> None:
        forecast = state.forecast()
        outcomes = Outcomes(state.labels[None], forecast=forecast)
        self.utilities, self.first = utilities, first
        blocks = utilities.tied_blocks(forecast, outcomes)
        super().__init__(torch.cat([_errors(b.predicted, b.payoffs, b.codes[0]) for b in blocks]))

    def utility(self, index: int) -> Utility:
        """By its number."""
        return ClassUtility(self.utilities, self.first + index, self.first)


def _errors(predicted: Tensor, payoffs: Tensor, codes: Tensor) -> Tensor:
    """Errors of k utilities over intervals between gaps: predicted [k, n], payoffs [k, L]."""
    sums = prefix_range(predicted, payoffs, codes[None], tolerance=TIED)
    return (sums.high - sums.low)[0] / predicted.shape[1]


Auditor = Callable[[PatchedForecast, int], Sequence[Family]]
"""Gives the families for audit number 0, 1, … of a forecast, in their fixed order."""


class StandardFamilies:
    """An auditor of U_CWE ∪ U_topK, and of utilities sampled anew for every audit.

    Args:
        classes: C.
        sampled_count: utilities drawn from each of U_lin and U_rank for every audit; 0 for none.
        seed: of the draws; audit t draws the same utilities in every run with this seed.
    """

    def __init__(self, classes: int, sampled_count: int, seed: int, device: torch.device) -> None:
        self.classes = classes
        self.sampled_count = sampled_count
        self.seed = seed
        # Realized utilities by outcome: 1{y = c}, and 1{rank < K}.
        self.hits = torch.eye(classes, dtype=torch.float64, device=device)
        self.within = torch.ones_like(self.hits).tril()

    def __call__(self, state: PatchedForecast, number: int) -> list[Family]:
        by_class, by_rank = state.indicator_sums()
        fixed: list[Family] = [
            IndicatorFamily("class", state.probabilities, self.hits, state.labels, by_class),
            IndicatorFamily("top_k", state.top_sums, self.within, state.ranks, by_rank),
        ]
        return fixed + self.sampled(state, number)

    def draw(self, number: int) -> tuple[Tensor, Tensor]:
        """Return payoffs by class and by rank for audit `number`: float64 [count, C] each."""
        seed = (self.seed * 100_003 + number) * 2
        linear = sample_unit_sphere_infinity(self.sampled_count, self.classes, seed)
        rank = sample_unit_sphere_infinity(self.sampled_count, self.classes, seed + 1)
        # NumPy sorts rows in vector lanes, five times as fast as torch.
        return linear, torch.from_numpy(-np.sort(-rank.numpy(), axis=1))

    def sampled(self, state: PatchedForecast, number: int) -> list[Family]:
        """Return U_lin and U_rank, drawn for audit `number`."""
        if not self.sampled_count:
            return []
        p, sums = state.probabilities, state.top_sums
        linear, rank = (payoffs.to(p.device) for payoffs in self.draw(number))
        return [
            PayoffFamily("linear", product(linear, p.T), linear, state.labels),
            PayoffFamily("rank", product(drops(rank), sums.T), rank, state.ranks),
        ]


@dataclass(frozen=True)
class OwnFamilies:
    """An auditor of the families of another one, if any, and of classes of one's own.

    All compete by their errors, each in its own unit: a payoff of 100 outweighs one of 1.
    """

    others: Auditor | None
    own: Sequence[UtilityClass]
    classes: int

    def __call__(self, state: PatchedForecast, number: int) -> list[Family]:
        families = [] if self.others is None else list(self.others(state, number))
        own = numbered(self.own, self.classes)
        return [*families, *(ClassFamily(utilities, state, first) for first, utilities in own)]


def find_worst(families: Sequence[Family]) -> tuple[int, int, float]:
    """Return (family, index, error) of the utility with the largest error, the first among equals.

    In rounds: each family's largest bounds that exceed the largest error so far come next.
    """
    bounds = [family.bounds().cpu() for family in families]
    orders = [each.argsort(descending=True, stable=True) for each in bounds]
    device = families[0].bounds().device
    size = EXACT_AT_ONCE if device.type == "cpu" else EXACT_AT_ONCE_ON_GPU
    found: list[tuple[int, int, float]] = []
    largest = -math.inf
    waiting = sorted(range(len(families)), key=lambda k: -float(bounds[k].max()))
    while waiting:
        for k in waiting.copy():
            part, orders[k] = orders[k][:size], orders[k][size:]
            part = part[bounds[k][part] >= largest - EQUAL]
            if not len(part):  # nor do the bounds of any after these reach it
                waiting.remove(k)
                continue
            columns = part.sort().values  # neighbours are read together
            errors = families[k].errors(columns.to(device)).cpu()
            found += zip([k] * len(columns), columns.tolist(), errors.tolist(), strict=True)
            largest = max(largest, float(errors.max()))
        size *= MORE_AT_ONCE
    return min(candidate for candidate in found if candidate[2] >= largest - EQUAL)


def worst_witness(families: Sequence[Family], state: PatchedForecast) -> Witness:
    """Return the witness of largest error (lines 3 and 4)."""
    family, index, _ = find_worst(families)
    return witness_of(state, families[family].utility(index))
