"""The scale of a person's answers: logits, probabilities, or one line that asks.

Answers become logits in float32. What could be either is refused (rules.py).
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from utility_calibration.calibrators.inputs import ENOUGH_ROWS, log_of, lookalike
from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.precision import lost_digits
from utility_calibration.metrics.validation import (
    COARSE_ROUNDING,
    ROUNDING,
    ROW_SUM_TOLERANCE,
    both_classes,
    check_logits,
    check_numbers,
)

from ...precision import in_float32
from .answers import Answers
from .rules import (
    ARE_NO_ANSWERS,
    SUMS_ARE_NOT_ONE,
    Values,
    first_that_holds,
    is_softmax_of_probabilities,
)

NOTED = 1e-5
"""A larger difference of a row's sum from one is noted; float32 makes smaller ones."""
DIGITS = (2, 3, 4, 5)
"""Probabilities may have been rounded to so many, significant or not."""
BFLOAT16 = 2**-8
"""The largest difference of a row's sum from one after bfloat16."""
LIKE_COSINES = 0.75
"""Cosines of embeddings stay below; of sigmoid scores some are larger."""
FARTHEST_SUM = 0.05
"""From one, of a row of rounded probabilities; beyond, they are refused."""
FEW_ROWS = 9
"""Rows up to which a file of log-odds may lie in [0, 1] by chance."""
LOOKED_AT = 1000
"""Rows that are looked at where the first ones do not decide; they are spread over all."""


class Scaled(NamedTuple):
    """Answers whose scale is known."""

    kind: str
    """logits or probabilities."""
    matrix: Array
    """[n, C], a column for each of two classes, too."""


def scaled(
    answers: Answers, values: str, tested: Any = None, is_for_calibrator: bool = False
) -> Scaled:
    """Find out what the answers are.

    Args:
        values: what the person says, or auto.
        tested: [1, n], True for the rows of a second file; None: there is none.
        is_for_calibrator: whether a calibrator's fit has settled the kind.

    Raises:
        InputError: these are neither kind, or may be both.
    """
    kind = answers.kind if values == "auto" else values
    is_single = answers.single is not None
    matrix = np.reshape(answers.matrix, (-1, 1)) if is_single else answers.matrix
    numbers = check_numbers(matrix, kind or "answers")
    is_matrix = numbers.ndim == 2 and numbers.size > 0
    # Also where the kind is known: the values may then contradict it, which is refused.
    may_be_p = is_matrix and values != "logits"
    are_probabilities = may_be_p and _are_probabilities(numbers, kind, values)
    if kind is None:
        kind = "probabilities" if are_probabilities else "logits"
    if kind == "probabilities":
        return Scaled(kind, both_classes(numbers, kind))
    logits = check_logits(both_classes(numbers, kind, log_odds=True), name=kind)
    if values == "auto":
        _refuse_lookalike(both_classes(numbers, kind), is_for_calibrator)
        _refuse_two_kinds(np.asarray(matrix), tested)
    return Scaled(kind, logits)


def logits_of(
    answers: Answers, scale: Scaled, values: str, notes: list[str]
) -> NDArray[np.float32]:
    """The answers as logits [n, C], or as logarithms of probabilities."""
    if scale.kind == "probabilities":
        logits: Array = _logarithms(scale.matrix, notes)
    else:
        logits = scale.matrix
        if values == "logits":
            notes += _note_on_unit_range(scale.matrix if answers.single is None else answers.matrix)
        warning = lost_digits(logits)
        if warning:
            notes.append(f"WARNING: {warning}")
    if answers.single is not None:
        logits = logits[:, ::-1].copy() if answers.single == 0 else logits
        meant = (answers.names or ["0", "1"])[answers.single]
        what = "probability" if scale.kind == "probabilities" else "log-odds"
        notes.append(f"the single column is taken for the {what} of {meant}")
    return in_float32(logits)


def _are_probabilities(numbers: Array, kind: str | None, said: str) -> bool:
    """Whether all values [n, C] are in [0, 1] and rows sum to one, rounding and clipping included.

    A single column may be of any class. InputError: predicted classes, percentages, other sums.
    """
    for rows in (numbers[:8], numbers):  # the first rows of logits show what they are
        if not bool((rows >= -COARSE_ROUNDING).all()):
            return False
    values = Values(numbers, kind, is_said=said == "probabilities")
    rule = first_that_holds(ARE_NO_ANSWERS, values)
    if rule is not None:
        raise rule.error(values, kind or "columns")
    if values.exceeds_one:
        return False
    sums = numbers.sum(axis=1, dtype=np.float64)
    off = np.abs(sums - 1)
    if values.is_single or bool((off <= ROW_SUM_TOLERANCE).all()) or _are_rounded(numbers):
        return True
    raise _sums_are_not_one(numbers, kind, sums)


def _sums_are_not_one(numbers: Array, kind: str | None, sums: NDArray[np.float64]) -> InputError:
    """The error on values in [0, 1] whose rows have other sums."""
    matrix = numbers.astype(np.float64)
    rule = first_that_holds(SUMS_ARE_NOT_ONE, matrix)
    assert rule is not None  # the last rule always holds
    fixes = [*rule.fixes]
    if float(numbers.max()) < LIKE_COSINES:
        fixes.append("if they are logits, such as cosines: --values logits")
    row = int(np.abs(sums - 1).argmax())
    what = rule.message_of(matrix)
    message = f"all values are in [0, 1], and {what}: the sum is {float(sums[row]):.4g}"
    return InputError(message, field=kind or "columns", row=row, fixes=fixes)


def _refuse_lookalike(matrix: Array, is_for_calibrator: bool) -> None:
    """Raise `InputError` if what would be read as logits [n, C] looks like probabilities."""
    seen = lookalike(matrix)
    if seen is None:
        return
    fixes = ["say that they are: --values probabilities"]
    if is_for_calibrator:
        fixes = ["give logits, on which the calibrator was fitted"]
    elif seen.step:
        fixes = ["give logits", f"{seen.step}save them as `probabilities`"]
    fixes.append("if they are logits, say so: --values logits")
    raise InputError(f"{seen.what}, but would be read as logits", field="logits", fixes=fixes)


def _note_on_unit_range(values: Any) -> list[str]:
    """A note if logits, as the person says they are, can be probabilities or sigmoid scores."""
    numbers = np.asarray(values)
    numbers = numbers.reshape(len(numbers), -1)
    is_in_unit = bool((numbers >= 0).all() and (numbers <= 1).all())
    if len(numbers) < ENOUGH_ROWS or not is_in_unit:
        return []
    sums_to_one = bool((np.abs(numbers.sum(axis=1) - 1) <= ROW_SUM_TOLERANCE).all())
    if not sums_to_one and float(numbers.max()) < LIKE_COSINES:
        return []
    return [
        "WARNING: all values are in [0, 1], but --values says that they are logits: if these are "
        "probabilities or sigmoid scores, give what the softmax or the sigmoid was applied to"
    ]


def _refuse_two_kinds(matrix: NDArray[Any], tested: NDArray[np.bool_] | None) -> None:
    """Raise `InputError` if some rows of logits, or all of one of two files, are probabilities."""
    if matrix.shape[1] == 1:
        if tested is not None and _one_file_has_probabilities(matrix, tested[0]):
            raise _of_two_kinds()
    elif _some_rows_are_probabilities(matrix):
        are_shares = _are_shares(matrix)
        is_odd = ~are_shares if are_shares.mean() > 0.5 else are_shares
        raise _of_two_kinds(int(is_odd.argmax()))


def _of_two_kinds(row: int | None = None) -> InputError:
    """The error on rows of two kinds; `row` is the first of the fewer ones, if it is known."""
    message = "some rows look like probabilities, others do not"
    fixes = ["give logits of all cases", "give probabilities of all"]
    if row is not None:  # one wrong number may be all that is wrong
        message += ", first"
        fixes.insert(0, "correct it")
    return InputError(message, field="logits", row=row, fixes=fixes)


def _one_file_has_probabilities(column: NDArray[Any], tests: NDArray[np.bool_]) -> bool:
    """Whether all values of one file are in [0, 1], while those of the other one are not.

    Log-odds of a few points may all lie there by chance.
    """
    for values in (column[~tests], column[tests]):
        is_in_unit_range = bool(((values >= 0) & (values <= 1)).all())
        if len(values) > FEW_ROWS and is_in_unit_range:
            return True
    return False


def _some_rows_are_probabilities(matrix: NDArray[Any]) -> bool:
    """Whether rows [C] of shares or percentages are among logits [n, C], more than by chance."""
    rows = matrix[:: max(1, len(matrix) // LOOKED_AT)]
    return bool(_are_shares(rows).sum() > max(2, 0.02 * len(rows)))


def _are_shares(matrix: NDArray[Any]) -> NDArray[np.bool_]:
    """Which rows of [n, C] are shares or percentages, [n]; whole numbers may be logits."""
    rows = matrix.astype(np.float64)
    sums = rows.sum(axis=1)
    sums_to_one = (np.abs(sums - 1) < 1e-3) | (np.abs(sums - 100) < 0.1)
    has_fractions = (rows != np.round(rows)).any(axis=1)
    return (rows >= 0).all(axis=1) & sums_to_one & has_fractions


def _logarithms(p: Array, notes: list[str]) -> NDArray[np.float64]:
    """The logarithms of probabilities [n, C], -inf for 0; notes on what these are surely not."""
    sums = p.sum(axis=1, keepdims=True, dtype=np.float64)
    off_sum = float(np.abs(sums - 1).max())
    off = float(max(off_sum, -p.min(), p.max() - 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the note says the same
        logarithms = log_of(p / sums if _are_rounded(p) else p)
    if is_softmax_of_probabilities(logarithms):
        notes.append(
            "no row's largest probability is more than e = 2.718 times its smallest, as after "
            "a softmax of probabilities: if so, give what the first softmax returned"
        )
    if off > NOTED:
        why = "taken for rounding or clipping; rows are renormalised"
        notes.append(f"probabilities are off by up to {off:.1g}, {why}")
    return logarithms


def _are_rounded(matrix: Array) -> bool:
    """Whether rows of probabilities [n, C] may miss a sum of one by rounding or clipping."""
    p = matrix.astype(np.float64, copy=False)
    off = np.abs(p.sum(axis=1) - 1)
    gap, lowest = float(off.max()) - ROUNDING, float(p.min())
    if lowest < 0 or p.max() > 1 or not ROW_SUM_TOLERANCE - ROUNDING < gap <= FARTHEST_SUM:
        return False
    if gap <= BFLOAT16:
        return True
    # Small values may have been raised to the smallest one.
    n_lowest = (p == lowest).sum(axis=1)
    if lowest > 0 and bool((off <= lowest * n_lowest + BFLOAT16).all()):
        return True
    return _shows_rounding(p, gap)


def _shows_rounding(p: NDArray[np.float64], gap: float) -> bool:
    """Whether the values have so few digits that sums [n] of a row [C] may be off by `gap`.

    What was cut to the top K has more digits.
    """
    some = p[:: max(1, len(p) // LOOKED_AT)]
    some = some[some > 0]
    places = np.floor(np.log10(some))
    for digits in DIGITS:
        # As whole numbers, of which float16 is off by up to .05.
        whole = some * 10 ** (digits - 1 - places)
        are_whole = bool((np.abs(whole - whole.round()) < 0.1).all())
        if gap <= p.shape[1] * 10.0**-digits / 2 and are_whole:
            return True
    return False
