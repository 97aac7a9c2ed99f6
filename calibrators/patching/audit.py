"""The audit of Algorithm 1 (lines 3 and 4), which finds the witness of largest error.

U_CWE ∪ U_topK are 2C utilities whose predictions are columns of the probabilities and of their
top-K sums, so no matrix is built for them. Sums of the columns give upper bounds on their errors
(calibrators/patching/bounds.py). The errors are then computed in rounds, in descending order of the
bounds, until no remaining bound exceeds the largest error.

Intervals end only in gaps of v that are much wider than rounding errors (`TIED`), and errors are
compared with a tolerance (`EQUAL`). So the witness does not depend on the last bit of any number.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.forecast import Outcomes
from utility_calibration.metrics.kernels.compiled import compiled
from utility_calibration.metrics.kernels.prefix_range import prefix_range
from utility_calibration.metrics.uc import interval_of_sums
from utility_calibration.metrics.utilities.base import UtilityClass
from utility_calibration.metrics.utilities.payoffs import Linear, Rank

from .bounds import indicator_bounds, payoff_bounds, top_k_bounds
from .state import PatchedForecast
from .utilities import Kind, Utility, drops

TIED = 1e-6  # predictions no further apart are tied; float32 errors are smaller
EQUAL = 1e-10  # errors that differ by less are equal: the first utility of the families wins
EXACT_AT_ONCE = 16  # number of a family's errors that the first round computes
WORTH_SHARPENING = 64  # errors that sharper bounds must replace to save time
MORE_AT_ONCE = 4  # times more in each later round: many columns take little longer than a few


@dataclass(frozen=True)
class Witness:
    """w = ξ u⃗ 1{v in I}: the utility, its interval of v, the sign, and the error E<f - Y, w>.

    ξ is +1 if the predicted utility exceeds the realized one on I, -1 if it falls short, and 0 if
    both agree on every interval. rows: int64 [k], the points with v in I; v, u: float64 [n], the
    predicted and the realized utility of every point.
    """

    utility: Utility
    low: float
    high: float
    sign: int
    error: float
    rows: Array
    v: Array
    u: Array


def rows_within(v: Array, low: float, high: float) -> Array:
    """Return the points with low <= v <= high: int64 [k]."""
    return np.flatnonzero((v >= low) & (v <= high))


def witness_of(state: PatchedForecast, utility: Utility) -> Witness:
    """Return the worst witness of one utility; its interval ends in the middle of gaps of v."""
    v, u = utility.predicted_and_realized(state)
    worst = interval_of_sums(v, u, TIED)
    below, above = v[v < worst.low], v[v > worst.high]
    low = (float(below.max()) + worst.low) / 2 if len(below) else -math.inf
    high = (float(above.min()) + worst.high) / 2 if len(above) else math.inf
    rows = rows_within(v, low, high)
    return Witness(utility, low, high, worst.sign, worst.error, rows, v, u)


@dataclass(frozen=True)
class Family:
    """Utilities that are audited together.

    `bounds`, float64 [m], are upper bounds on their errors. `errors` maps numbers of utilities,
    int64 [k], to their errors, float64 [k], `utility` a number to its utility, and `sharper`
    numbers to upper bounds that are smaller, but take longer to compute.
    """

    bounds: Array
    errors: Callable[[Array], Array]
    utility: Callable[[int], Utility]
    sharper: Callable[[Array], Array] | None = None


def _payoff_family(
    kind: Kind,
    payoffs: Array,
    codes: Array,
    predicted: Callable[[Array], Array],
    bounds: Array,
    sharper: Callable[[Array], Array] | None = None,
) -> Family:
    """Return utilities with `payoffs` [m, L] for `codes` [n]; `predicted` gives v of numbers."""
    return Family(
        bounds,
        lambda numbers: _errors(predicted(numbers), payoffs[numbers], codes),
        # The clone is needed, because a view of a row would keep all payoffs in memory.
        lambda number: Utility.standard(kind, number, payoffs[number].copy()),
        sharper,
    )


def _sampled_family(
    kind: Kind, payoffs: Array, factors: Array, matrix: Array, codes: Array
) -> Family:
    """Return utilities with v = matrix @ factors.T."""
    bounds = payoff_bounds(factors, matrix, payoffs, codes)
    return _payoff_family(kind, payoffs, codes, lambda k: factors[k] @ matrix.T, bounds)


def class_family(utilities: UtilityClass, state: PatchedForecast, first: int = 0) -> Family:
    """Return the utilities of a `UtilityClass`, numbered from `first`, with their exact errors."""
    forecast = state.forecast()
    outcomes = Outcomes(state.labels[None], forecast=forecast)
    blocks = utilities.tied_blocks(forecast, outcomes)
    errors = np.concatenate([_errors(b.predicted, b.payoffs, b.codes[0], math.inf) for b in blocks])
    return Family(errors, errors.__getitem__, lambda k: Utility("own", first + k, utilities, k))


def _errors(predicted: Array, payoffs: Array, codes: Array, margin: float = 2 * EQUAL) -> Array:
    """Return the errors [k] over intervals between gaps: predicted [k, n], payoffs [k, L].

    Errors within `margin` of the largest are exact. The others are upper bounds, which are also
    smaller than the largest by more than `margin`.
    """
    n = predicted.shape[1]
    ranges, _ = prefix_range(predicted, payoffs, codes[None], tolerance=TIED, margin=margin * n)
    return ranges[0] / n


def chosen_columns(matrix: Array, numbers: Array) -> Array:
    """Return some columns of a matrix float64 [n, m] as rows: [k, n].

    On the CPU eight rows are read at a time, so that every cache line is read and written once.
    """
    columns = np.empty((len(numbers), len(matrix)))
    _copy_columns(matrix, numbers, columns)
    return columns


@compiled
def _copy_columns(matrix: Any, numbers: Any, columns: Any) -> None:
    for first in range(0, len(matrix), 8):
        last = min(len(matrix), first + 8)
        for k in range(numbers.size):
            for i in range(first, last):
                columns[k, i] = matrix[i, numbers[k]]


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
        p, top_sums, labels, ranks = state.probabilities, state.top_sums, state.labels, state.ranks
        classes = p.shape[1]
        hits = np.eye(classes)  # 1{y = c}
        within = np.tri(classes)  # 1{rank < K}
        by_class = indicator_bounds(p, labels)
        by_rank = indicator_bounds(top_sums, ranks, by_rank=True)
        sharper = partial(top_k_bounds, top_sums, ranks)
        columns, sums = partial(chosen_columns, p), partial(chosen_columns, top_sums)
        families = [
            _payoff_family("class", hits, labels, columns, by_class),
            _payoff_family("top_k", within, ranks, sums, by_rank, sharper),
        ]
        if self.sampled_count:
            linear, rank = self.draw(number, classes)
            families += [
                _sampled_family("linear", linear, linear, p, labels),
                _sampled_family("rank", rank, drops(rank), top_sums, ranks),
            ]
        return families

    def draw(self, number: int, classes: int) -> tuple[Array, Array]:
        """Return payoffs by class and by rank for audit `number`: float64 [count, C] each."""
        seed = (self.seed * 100_003 + number) * 2
        linear = Linear.sample(self.sampled_count, classes, seed)
        return linear.matrix, Rank.sample(self.sampled_count, classes, seed + 1).matrix


def find_worst(families: Sequence[Family]) -> tuple[int, int, float]:
    """Return (family, number, error) of the utility with the largest error, the first among equals.

    Rounds take each family's utilities in descending order of bounds, until these are below it.
    """
    bounds = [family.bounds.copy() for family in families]
    orders = [np.argsort(-each, kind="stable") for each in bounds]
    size = EXACT_AT_ONCE
    candidates: list[tuple[int, int, float]] = []
    largest = -math.inf
    waiting = sorted(range(len(families)), key=lambda k: -float(bounds[k].max()))
    while waiting:
        for k in waiting.copy():
            # Bounds that are all infinite leave nothing out.
            taken = size if bounds[k].min() < math.inf else len(orders[k])
            following, orders[k] = orders[k][:taken], orders[k][taken:]
            following = following[bounds[k][following] >= largest - EQUAL]
            if not len(following):  # the family's other bounds are even smaller
                waiting.remove(k)
                continue
            numbers = np.sort(following)  # neighbouring columns are read together
            errors = families[k].errors(numbers)
            largest = max(largest, float(errors.max()))
            near = errors >= largest - EQUAL
            pairs = zip(numbers[near].tolist(), errors[near].tolist(), strict=True)
            candidates += [(k, *pair) for pair in pairs]
            sharper = families[k].sharper
            if size == EXACT_AT_ONCE and sharper is not None:
                left = np.sort(orders[k][bounds[k][orders[k]] >= largest - EQUAL])
                if len(left) >= WORTH_SHARPENING:
                    bounds[k][left] = np.minimum(bounds[k][left], sharper(left))
                    orders[k] = left[np.argsort(-bounds[k][left], kind="stable")]
        size *= MORE_AT_ONCE
    return min(candidate for candidate in candidates if candidate[2] >= largest - EQUAL)
