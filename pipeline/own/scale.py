"""The scale of a person's answers: logits, probabilities, or one line that asks.

Answers become logits in float32. What could be either is refused.
"""

import warnings
from dataclasses import replace
from typing import Any

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

from ..precision import in_float32
from .file_points import FilePoints
from .rules import SUMS_ARE_NOT_ONE, first_that_holds, is_softmax_of_probabilities

NOTED = 1e-5  # a larger difference of a row's sum from one is noted; float32 makes smaller ones
DIGITS = (2, 3, 4, 5)  # probabilities may have been rounded to so many, significant or not
BFLOAT16 = 2**-8  # the largest difference of a row's sum from one after bfloat16
LIKE_COSINES = 0.75  # cosines of embeddings stay below; of sigmoid scores some are larger
FARTHEST_SUM = 0.05  # from one, of a row of rounded probabilities; beyond, they are refused


def with_logits(given: FilePoints, values: str) -> FilePoints:
    """`given` with logits float32 [n, C]; InputError: these are neither kind, or may be both."""
    kind = given.kind if values == "auto" else values
    matrix = given.matrix if given.single is None else np.reshape(given.matrix, (-1, 1))
    numbers = check_numbers(matrix, kind or "answers")
    are_matrix = numbers.ndim == 2 and numbers.size > 0
    near = are_matrix and values != "logits" and _are_probabilities(numbers, kind)
    kind = kind or ("probabilities" if near else "logits")
    notes = list(given.notes)
    if kind == "logits":
        logits = check_logits(both_classes(numbers, kind, log_odds=True), name=kind)
        if values == "auto":
            seen = lookalike(both_classes(numbers, kind))
            if seen is not None:
                message = f"{seen.what}, but would be read as logits"
                fixes = ["give logits", f"{seen.step}save them as `probabilities`"]
                if not seen.step:
                    fixes = ["say that they are: --values probabilities"]
                fixes.append("if they are logits, say so: --values logits")
                raise InputError(message, field=kind, fixes=fixes)
            _refuse_two_kinds(np.asarray(matrix), given.tested)
        elif values == "logits":
            notes += _note_on_unit_range(numbers)
        warning = lost_digits(logits)
        if warning:
            notes.append(f"WARNING: {warning}")
    else:
        logits, off = _logarithms(both_classes(numbers, kind))
        if is_softmax_of_probabilities(logits):
            notes.append(
                "no row's largest probability is more than e = 2.718 times its smallest, as after "
                "a softmax of probabilities: if so, give what the first softmax returned"
            )
        if off > NOTED:
            why = "taken for rounding or clipping; rows are renormalised"
            notes.append(f"probabilities are off by up to {off:.1g}, {why}")
    if given.single is not None:
        logits = logits[:, ::-1].copy() if given.single == 0 else logits
        meant = (given.names or ["0", "1"])[given.single]
        what = "probability" if kind == "probabilities" else "log-odds"
        notes.append(f"the single column is taken for the {what} of {meant}")
    if given.order is not None:
        count = len(given.order)
        if logits.shape[1] != count:
            message = f"{logits.shape[1]} columns for {count} classes"
            raise InputError(message, field=kind, fixes="give one per class and no other")
        logits = logits[:, given.order]
    return replace(given, kind=kind, matrix=in_float32(logits), notes=tuple(notes))


def _are_probabilities(numbers: Array, kind: str | None) -> bool:
    """Whether all values [n, C] are in [0, 1] and rows sum to one, rounding and clipping included.

    A single column may be of any class. InputError: predicted classes, percentages, other sums.
    """
    classes = numbers.shape[1]
    for rows in (numbers[:8], numbers):  # the first rows of logits show what they are
        if not bool((rows >= -COARSE_ROUNDING).all()):
            return False
    if bool((numbers == numbers.round()).all()) and (
        classes == 1 or bool((numbers.sum(axis=1) == 1).all())
    ):
        message = "only whole numbers, like predicted classes"
        fixes = ["give the classifier's probabilities (predict_proba)", "give its logits"]
        raise InputError(message, field=kind or "columns", fixes=fixes)
    low, high = float(numbers.min()), float(numbers.max())
    if high > 1 + COARSE_ROUNDING or high != high:
        if kind == "probabilities" and classes > 1:
            seen = lookalike(numbers)
            if seen is not None:
                raise InputError(seen.what, field=kind, fixes="divide each row by its sum")
        if classes == 1 and kind != "probabilities":
            message = f"a single column with values from {low:g} to {high:g}: percentages?"
            fixes = ["give probabilities", "give log-odds of either sign"]
            fixes.append("if all log-odds are positive: --values logits")
            raise InputError(message, field="columns", fixes=fixes)
        return False
    sums = numbers.sum(axis=1, dtype=np.float64)
    off = np.abs(sums - 1)
    if classes == 1 or bool((off <= ROW_SUM_TOLERANCE).all()) or _are_rounded(numbers):
        return True
    row = int(off.argmax())
    rule = first_that_holds(SUMS_ARE_NOT_ONE, numbers.astype(np.float64))
    fixes = [*rule.fixes]
    if high < LIKE_COSINES:
        fixes.append("if they are logits, such as cosines: --values logits")
    message = f"all values are in [0, 1], and {rule.message}: the sum is {float(sums[row]):.4g}"
    raise InputError(message, field=kind or "columns", row=row, fixes=fixes)


def _note_on_unit_range(numbers: Array) -> list[str]:
    """A note if logits, as the person says they are, can be probabilities or sigmoid scores."""
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
    """Raise `InputError` if some rows of logits, or those of one of two files, are probabilities.

    A thousand rows are looked at, which are spread over all. Whole numbers may be logits.
    """
    rows = matrix[:: max(1, len(matrix) // 1000)].astype(np.float64)
    if matrix.shape[1] > 1:
        sums = rows.sum(axis=1)
        sums_to_one = (np.abs(sums - 1) < 1e-3) | (np.abs(sums - 100) < 0.1)
        odd = (rows >= 0).all(axis=1) & sums_to_one & (rows != np.round(rows)).any(axis=1)
        is_mixed = odd.sum() > max(2, 0.02 * len(odd))
    else:
        halves = [] if tested is None else [matrix[~tested[0]], matrix[tested[0]]]
        is_mixed = any(len(half) > 9 and bool(((half >= 0) & (half <= 1)).all()) for half in halves)
    if is_mixed:
        message = "some rows look like probabilities, others do not"
        fixes = ["give logits of all points", "give probabilities of all"]
        raise InputError(message, field="logits", fixes=fixes)


def _logarithms(p: Array) -> tuple[NDArray[np.float64], float]:
    """The logarithms of probabilities, -inf for 0, and how far these are from being probabilities.

    That is how far sums differ from one, and values from [0, 1].
    """
    sums = p.sum(axis=1, keepdims=True, dtype=np.float64)
    off = float(max(np.abs(sums - 1).max(), -p.min(), p.max() - 1))
    p = p / sums if _are_rounded(p) else p
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the note says the same
        return log_of(p), off


def _are_rounded(matrix: Array) -> bool:
    """Whether rows of probabilities [n, C] may miss a sum of one by rounding or clipping."""
    p = matrix.astype(np.float64, copy=False)
    off = np.abs(p.sum(axis=1) - 1)
    gap, low = float(off.max()) - ROUNDING, float(p.min())
    if low < 0 or p.max() > 1 or not ROW_SUM_TOLERANCE - ROUNDING < gap <= FARTHEST_SUM:
        return False
    if gap <= BFLOAT16:
        return True
    # Small values may have been raised to the smallest one.
    if low > 0 and bool((off <= low * (p == low).sum(axis=1) + BFLOAT16).all()):
        return True
    # The values show the rounding: what was cut to the top K has more digits. Each value is
    # compared with its digits as a whole number, of which float16 is off by up to .05.
    some = p[:: max(1, len(p) // 1000)]
    some = some[some > 0]
    places = np.floor(np.log10(some))
    for digits in DIGITS:
        whole = some * 10 ** (digits - 1 - places)
        if gap <= p.shape[1] * 10.0**-digits / 2 and bool(
            (np.abs(whole - whole.round()) < 0.1).all()
        ):
            return True
    return False
