"""Rules on answers and points that are no forecast: how each shows itself, and what settles it.

A fix must be right for whoever follows it. Divided by its sum, a row of cumulative probabilities
would pass as a forecast, and every number would be wrong. Every rule has a case in test_rules.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from utility_calibration.calibrators.inputs import ENOUGH_ROWS, lookalike
from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.validation import COARSE_ROUNDING, ROW_SUM_TOLERANCE

from ..words.message_text import typed

NEAR_LIMIT = 0.9
"""Of two classes, an honest forecast may stay between 1/(1 + e) and e/(1 + e). One that a softmax
of probabilities has made also comes near these ends."""
Matrix = NDArray[np.float64]
Facts = TypeVar("Facts")


@dataclass(frozen=True)
class Rule(Generic[Facts]):
    """What some values may be by mistake."""

    name: str
    """For the tests."""
    holds: Callable[[Facts], bool]
    """Whether the values show it."""
    message: str | Callable[[Facts], str]
    """What they look like."""
    fixes: tuple[str, ...]
    """Each settles it by itself."""
    field: str = ""
    """What is wrong, if it is always the same array or column."""
    row: Callable[[Facts], int] | None = None
    """The first row that shows it, if single rows do."""

    def message_of(self, facts: Facts) -> str:
        """What these values look like."""
        return self.message if isinstance(self.message, str) else self.message(facts)

    def error(self, facts: Facts, field: str = "") -> InputError:
        """The refusal of these values."""
        row = None if self.row is None else self.row(facts)
        message = self.message_of(facts)
        return InputError(message, field=field or self.field, row=row, fixes=self.fixes)


def first_that_holds(rules: Sequence[Rule[Facts]], facts: Facts) -> Rule[Facts] | None:
    """The first rule that holds, if there is one."""
    return next((rule for rule in rules if rule.holds(facts)), None)


def _columns_sum_to_one(p: Matrix) -> bool:
    return bool((np.abs(p.sum(axis=0) - 1) <= ROW_SUM_TOLERANCE).all())


def _by_size(p: Matrix) -> Matrix:
    """The columns by their mean: those of classes with names stand in the order of the names."""
    return p[:, np.argsort(p.mean(axis=0), kind="stable")]


def _are_cumulative(p: Matrix) -> bool:
    """P(class <= k) is 1 for the last class, P(class >= k) for the first: in the largest column."""
    ordered = _by_size(p)
    is_one = bool((np.abs(ordered[:, -1] - 1) <= ROW_SUM_TOLERANCE).all())
    rises = bool((np.diff(ordered, axis=1) >= 0).all())
    return len(p) >= ENOUGH_ROWS and rises and is_one


def _are_sorted(p: Matrix) -> bool:
    is_in_order = bool((np.diff(_by_size(p), axis=1) >= 0).all())
    return len(p) >= ENOUGH_ROWS and p.shape[1] > 2 and is_in_order


def _has_one_value_per_row(p: Matrix) -> bool:
    return bool(((p > 0).sum(axis=1) <= 1).all())


def _is_cut_off(p: Matrix) -> bool:
    """Rows that miss their sum have zeros, and no sum exceeds one by more than rounding."""
    sums = p.sum(axis=1)
    misses = sums < 1 - ROW_SUM_TOLERANCE
    # What was left out of a row is written as zeros.
    has_zero = (p == 0).any(axis=1)
    return bool((sums <= 1 + ROW_SUM_TOLERANCE).all() and has_zero[misses].all())


def _lacks_a_class(p: Matrix) -> bool:
    sums = p.sum(axis=1)
    return bool((sums <= 1 + ROW_SUM_TOLERANCE).all()) and len(p) >= ENOUGH_ROWS


class Values(NamedTuple):
    """Answers none of which is negative."""

    numbers: Array
    """[n, C]; of a single column [n, 1]."""
    kind: str | None
    """logits or probabilities; None: the file does not say."""
    is_said: bool = False
    """Whether the person says that these are probabilities."""

    @property
    def is_single(self) -> bool:
        """Whether there is one column for two classes."""
        return self.numbers.shape[1] == 1

    @property
    def exceeds_one(self) -> bool:
        """Whether some value is no probability, NaN included."""
        highest = float(self.numbers.max())
        return not highest <= 1 + COARSE_ROUNDING


def _are_predictions(values: Values) -> bool:
    numbers = values.numbers
    # A tree may be certain of every point, so a person may say that 0 and 1 are probabilities.
    if values.is_said or not bool((numbers == numbers.round()).all()):
        return False
    return values.is_single or bool((numbers.sum(axis=1) == 1).all())


def _are_shares_times_a_number(values: Values) -> bool:
    is_named = values.kind == "probabilities" and not values.is_single
    return is_named and values.exceeds_one and lookalike(values.numbers) is not None


def _are_percentages(values: Values) -> bool:
    return values.is_single and values.kind != "probabilities" and values.exceeds_one


def _text_of_shares(values: Values) -> str:
    seen = lookalike(values.numbers)
    return "" if seen is None else seen.what


ONLY_WHOLE = "only whole numbers, like predicted classes"
GIVE = ("give the classifier's probabilities (predict_proba)", "give its logits")
ARE_NO_ANSWERS: tuple[Rule[Values], ...] = (
    Rule(
        "certain classes",
        lambda values: _are_predictions(values) and not values.exceeds_one,
        ONLY_WHOLE,
        (*GIVE, "if they are probabilities, as of a tree: --values probabilities"),
    ),
    Rule("predicted classes", _are_predictions, ONLY_WHOLE, GIVE),
    Rule(
        "shares times a number",
        _are_shares_times_a_number,
        _text_of_shares,
        ("divide each row by its sum",),
    ),
    Rule(
        "percentages",
        _are_percentages,
        lambda values: (
            f"a single column with values from {float(values.numbers.min()):g} to "
            f"{float(values.numbers.max()):g}: percentages?"
        ),
        (
            "give probabilities",
            "give log-odds of either sign",
            "if all log-odds are positive: --values logits",
        ),
    ),
)
"""Answers none of which is negative, and that are neither logits nor probabilities."""

ALL_CLASSES = "give the probabilities of all classes"
SUMS_ARE_NOT_ONE: tuple[Rule[Matrix], ...] = (
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
"""Values in [0, 1] whose rows do not sum to one; the last rule always holds."""


def is_softmax_of_probabilities(logarithms: NDArray[Any]) -> bool:
    """Whether log p [n, C] can be of softmax(q) of probabilities q, which stay within a factor e.

    The bound allows for a rounding of float32.
    """
    spread = logarithms.max(axis=1) - logarithms.min(axis=1)
    # A few honest rows may be as even as that.
    if len(spread) < ENOUGH_ROWS or not spread.max() <= 1 + 1e-5:
        return False
    return logarithms.shape[1] > 2 or float(spread.max()) > NEAR_LIMIT


def refuse_two_models(columns: Sequence[str], matrix: NDArray[Any], codes: NDArray[Any]) -> None:
    """Raise `InputError` if two numbered columns are two models' log-odds of the second class.

    They rise together, and their difference says little more of the class than one of them. Logits
    of two classes rise together only by a constant per row; their difference then says far more.
    """
    if len(columns) != 2 or len(codes) < 10:
        return
    first, second = matrix.T
    with np.errstate(all="ignore"):  # infinite or constant: nan, which refuses nothing
        together = np.corrcoef([first, second, second - first, codes])
    if together[0, 1] > 0.9 and abs(together[2, 3]) < 2 * abs(together[:2, 3]).max():
        message = f"{' and '.join(columns)} rise together, like two models' log-odds of one class"
        fixes = [f"leave one out: {typed('--ignore', name)}" for name in columns]
        raise InputError(message, field="columns", fixes=fixes)
