"""The audit of Algorithm 1 (lines 3 and 4), which finds the witness of largest error.

U_CWE ∪ U_topK are 2C utilities whose predictions are columns of the probabilities and of their
top-K sums, so no matrix is built for them.

Intervals end only in gaps of v that are much wider than rounding errors (`TIED`), and errors are
compared with a tolerance (`EQUAL`). So the witness does not depend on the last bit of any number.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.forecast import Outcomes
from utility_calibration.metrics.kernels.prefix_range import prefix_range
from utility_calibration.metrics.kernels.threads import row_blocks
from utility_calibration.metrics.uc import interval_of_sums
from utility_calibration.metrics.utilities.base import UtilityClass
from utility_calibration.metrics.utilities.linear_and_rank import Linear, Rank

from .state import PatchedForecast
from .utilities import Kind, Utility, drops

TIED = 1e-6  # predictions no further apart are tied; float32 errors are smaller
EQUAL = 1e-10  # errors that differ by less are equal: the first utility of the families wins
PREDICTED_AT_ONCE = 1 << 22  # predictions of sampled utilities that are in memory at a time


@dataclass(frozen=True)
class Witness:
    """w = ξ u⃗ 1{v in I}."""

    utility: Utility
    low: float
    """The ends of the interval I of v."""
    high: float
    sign: int
    """ξ: +1 if the predicted utility exceeds the realized one on I, -1 if it falls short, and 0 if
    both agree on every interval."""
    error: float
    """E<f - Y, w>."""
    rows: Array
    """int64 [k], the points with v in I."""
    v: Array
    """float64 [n], the predicted utility of every point."""
    u: Array
    """float64 [n], the realized utility of every point."""


def rows_within(v: Array, low: float, high: float) -> Array:
    """Return the points with low <= v <= high: int64 [k]."""
    return np.flatnonzero((v >= low) & (v <= high))


def witness_of(state: PatchedForecast, utility: Utility) -> Witness:
    """Return the worst witness of one utility; its interval ends in the middle of gaps of v."""
    v, u = utility.predicted_and_realized(state)
    worst = interval_of_sums(v, u, TIED, state.weights)
    below, above = v[v < worst.low], v[v > worst.high]
    low = (float(below.max()) + worst.low) / 2 if len(below) else -math.inf
    high = (float(above.min()) + worst.high) / 2 if len(above) else math.inf
    rows = rows_within(v, low, high)
    return Witness(utility, low, high, worst.sign, worst.error, rows, v, u)


@dataclass(frozen=True)
class Family:
    """Utilities that are audited together."""

    errors: Callable[[float], Array]
    """`errors(known)` computes the errors of all m utilities, float64 [m]. Those that are clearly
    smaller than `known`, the error of another utility, or than the largest may be upper bounds,
    which saves time."""
    utility: Callable[[int], Utility]
    """The utility with a number."""


class Realized(NamedTuple):
    """What happened at n points."""

    codes: Array
    """[n], of the outcomes: classes or ranks."""
    weights: Array | None
    """[n]"""


def _payoff_family(kind: Kind, payoffs: Array, realized: Realized, predicted: Array) -> Family:
    """Return utilities with `payoffs` [m, L] for outcomes, and their `predicted` [m, n]."""
    return Family(
        lambda known: _errors(predicted, payoffs, realized, known),
        # The copy is needed, because a view of a row would keep all payoffs in memory.
        lambda number: Utility.standard(kind, number, payoffs[number].copy()),
    )


def _sampled_family(
    kind: Kind, payoffs: Array, factors: Array, matrix: Array, realized: Realized
) -> Family:
    """Return utilities whose predictions are `factors` [m, C] @ `matrix` [n, C] transposed."""

    def errors(known: float) -> Array:
        parts = []
        for start, stop in row_blocks(len(factors), len(matrix), PREDICTED_AT_ONCE):
            predicted = factors[start:stop] @ matrix.T
            parts.append(_errors(predicted, payoffs[start:stop], realized, known))
        return np.concatenate(parts)

    return Family(errors, lambda number: Utility.standard(kind, number, payoffs[number].copy()))


def class_family(utilities: UtilityClass, state: PatchedForecast, first: int = 0) -> Family:
    """Return the utilities of a `UtilityClass`, numbered from `first`, with their exact errors."""
    forecast = state.forecast()
    outcomes = Outcomes(state.labels[None], forecast=forecast)
    errors = []
    for block in utilities.tied_blocks(forecast, outcomes):
        realized = Realized(block.codes[0], state.weights)
        errors.append(_errors(block.predicted, block.payoffs, realized, 0.0, math.inf))
    exact = np.concatenate(errors)
    return Family(lambda known: exact, lambda k: Utility("own", first + k, utilities, k))


def _errors(
    predicted: Array, payoffs: Array, realized: Realized, known: float, margin: float = 2 * EQUAL
) -> Array:
    """Return the errors [k] over intervals between gaps: predicted [k, n], payoffs [k, L].

    Errors within `margin` of the largest and of `known` are exact. The others may be upper bounds,
    which are also smaller by more than `margin`.
    """
    codes, weights = realized
    if weights is not None:
        return _weighted_errors(predicted, payoffs, codes, weights)
    n = predicted.shape[1]
    limits = {"tolerance": TIED, "margin": margin * n, "known": known * n}
    ranges, _ = prefix_range(predicted, payoffs, codes[None], **limits)
    return ranges[0] / n


def _weighted_errors(predicted: Array, payoffs: Array, codes: Array, weights: Array) -> Array:
    """Return `_errors` of points with weights [n], all of them exact, by sorting."""
    ranges = np.empty(len(predicted))
    for start, stop in row_blocks(len(ranges), predicted.shape[1], PREDICTED_AT_ONCE):
        block = predicted[start:stop]
        order = np.argsort(block, axis=1, kind="stable")
        v = np.take_along_axis(block, order, axis=1)
        u = np.take_along_axis(payoffs[start:stop], codes[order], axis=1)
        sums = np.cumsum(weights[order] * (u - v), axis=1)
        is_end = np.diff(v, axis=1, append=math.inf) > TIED
        # The running sum begins at 0, so a 0 in place of a sum within a tie changes no extreme.
        ends = np.where(is_end, sums, 0.0)
        ranges[start:stop] = ends.max(axis=1).clip(min=0) - ends.min(axis=1).clip(max=0)
    return ranges / weights.sum()


Auditor = Callable[[PatchedForecast, int], Sequence[Family]]
"""Returns the families that audit number 0, 1, … of a forecast compares, in a fixed order."""


@dataclass(frozen=True)
class StandardFamilies:
    """An auditor of U_CWE ∪ U_topK, and of utilities sampled anew for every audit.

    An audit draws `sampled_count` from each of U_lin and U_rank, the same in every run with this
    `seed`.
    """

    sampled_count: int
    seed: int

    def __call__(self, state: PatchedForecast, number: int) -> list[Family]:
        p, top_sums = state.probabilities, state.top_sums
        classes = p.shape[1]
        hits = np.eye(classes)  # 1{y = c}
        within = np.tri(classes)  # 1{rank < K}
        by_class = Realized(state.labels, state.weights)
        by_rank = Realized(state.ranks, state.weights)
        families = [
            _payoff_family("class", hits, by_class, p.T),
            _payoff_family("top_k", within, by_rank, top_sums.T),
        ]
        if self.sampled_count:
            linear, rank = self.draw(number, classes)
            families += [
                _sampled_family("linear", linear, linear, p, by_class),
                _sampled_family("rank", rank, drops(rank), top_sums, by_rank),
            ]
        return families

    def draw(self, number: int, classes: int) -> tuple[Array, Array]:
        """Return payoffs by class and by rank for audit `number`: float64 [count, C] each."""
        seed = (self.seed * 100_003 + number) * 2
        linear = Linear.sample(self.sampled_count, classes, seed)
        rank = Rank.sample(self.sampled_count, classes, seed + 1)
        # Kernels would be compiled once more for these read-only matrices.
        return linear.matrix.copy(), rank.matrix.copy()


def find_worst(families: Sequence[Family]) -> tuple[int, int, float]:
    """Return (family, number, error) of the utility of largest error, the first of equal ones."""
    errors_of_families = []
    largest = 0.0
    for family in families:
        errors = family.errors(largest)
        errors_of_families.append(errors)
        largest = max(largest, float(errors.max()))
    # Of errors that differ by rounding the first wins, so that the last bit decides nothing.
    is_worst = [bool((errors >= largest - EQUAL).any()) for errors in errors_of_families]
    first = is_worst.index(True)
    number = int((errors_of_families[first] >= largest - EQUAL).argmax())
    return first, number, float(errors_of_families[first][number])
