"""Rules on matrices that are no forecast: how each shows itself, what is said, and what settles it.

A fix must be right for whoever follows it. Divided by its sum, a row of cumulative probabilities
would pass as a forecast, and every number would be wrong.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.calibrators.inputs import ENOUGH_ROWS
from utility_calibration.metrics.validation import ROW_SUM_TOLERANCE

NEAR_LIMIT = 0.9
"""Of two classes, an honest forecast may stay between 1/(1 + e) and e/(1 + e). One that a softmax
of probabilities has made also comes near these ends."""
Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Rule:
    """What a matrix may be by mistake.

    name: for the tests. holds: whether the values [n, C] show it. message: what they look like.
    fixes: each settles it by itself.
    """

    name: str
    holds: Callable[[Matrix], bool]
    message: str
    fixes: tuple[str, ...]


def first_that_holds(rules: Sequence[Rule], matrix: Matrix) -> Rule:
    """The first rule that holds; the last one of a table always does."""
    return next(rule for rule in rules if rule.holds(matrix))


def _columns_sum_to_one(p: Matrix) -> bool:
    return bool((np.abs(p.sum(axis=0) - 1) <= ROW_SUM_TOLERANCE).all())


def _are_cumulative(p: Matrix) -> bool:
    """P(class <= k) rises to 1 in the last column; P(class >= k) falls from 1 in the first."""
    differences = np.diff(p, axis=1)
    rises, falls = bool((differences >= 0).all()), bool((differences <= 0).all())
    ends = p[:, -1] if rises else p[:, 0]
    is_one = bool((np.abs(ends - 1) <= ROW_SUM_TOLERANCE).all())
    return len(p) >= ENOUGH_ROWS and (rises or falls) and is_one


def _are_sorted(p: Matrix) -> bool:
    differences = np.diff(p, axis=1)
    is_in_order = bool((differences >= 0).all() or (differences <= 0).all())
    return len(p) >= ENOUGH_ROWS and p.shape[1] > 2 and is_in_order


def _has_one_value_per_row(p: Matrix) -> bool:
    return bool(((p > 0).sum(axis=1) <= 1).all())


def _is_cut_off(p: Matrix) -> bool:
    """Rows that miss their sum have zeros, and no sum exceeds one by more than rounding."""
    sums = p.sum(axis=1)
    misses = sums < 1 - ROW_SUM_TOLERANCE
    has_zero = (p == 0).any(axis=1)
    return bool((sums <= 1 + ROW_SUM_TOLERANCE).all() and has_zero[misses].all())


def _lacks_a_class(p: Matrix) -> bool:
    sums = p.sum(axis=1)
    return bool((sums <= 1 + ROW_SUM_TOLERANCE).all()) and len(p) >= ENOUGH_ROWS


ALL_CLASSES = "give the probabilities of all classes"
SUMS_ARE_NOT_ONE = (
    Rule(
        "transposed",
        _columns_sum_to_one,
        "the columns sum to one, not the rows",
        ("transpose it",),
    ),
    Rule(
        "cumulative",
        _are_cumulative,
        "every row goes steadily to or from 1, as cumulative probabilities do",
        ("give the differences between neighbouring columns, one per class",),
    ),
    Rule(
        "one value per row",
        _has_one_value_per_row,
        "no row has more than one value above 0, as if only the predicted class had one",
        (ALL_CLASSES,),
    ),
    Rule(
        "cut off",
        _is_cut_off,
        "rows of a smaller sum have zeros, as if small values were left out",
        (ALL_CLASSES,),
    ),
    Rule(
        "in order",
        _are_sorted,
        "every row is in order, as cumulative values or the K largest ones are",
        (f"{ALL_CLASSES}, one column per class",),
    ),
    Rule(
        "a class lacks",
        _lacks_a_class,
        "no sum is larger than one, as if the column of a class were left out",
        ("add the column of the class", "divide each row by its sum if such a class cannot occur"),
    ),
    Rule(
        "scores of each class by itself",
        lambda p: True,
        "rows do not sum to one, as of sigmoid scores or of one decimal",
        ("give probabilities whose sum is one", "divide each row by its sum"),
    ),
)
"""Values in [0, 1] whose rows do not sum to one."""


def is_softmax_of_probabilities(logarithms: NDArray[Any]) -> bool:
    """Whether log p [n, C] can be of softmax(q) of probabilities q, which stay within a factor e.

    The bound allows for a rounding of float32.
    """
    spread = logarithms.max(axis=1) - logarithms.min(axis=1)
    if len(spread) < ENOUGH_ROWS or not spread.max() <= 1 + 1e-5:
        return False
    return logarithms.shape[1] > 2 or float(spread.max()) > NEAR_LIMIT
