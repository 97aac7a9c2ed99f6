"""Checks of input, which becomes NumPy arrays (`arrays.py`).

An error is one clear line that names the field and the fix.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .arrays import Array, as_array
from .errors import InputError, reason_of
from .kernels.row_facts import facts_of_rows

ROW_SUM_TOLERANCE = 1e-3 + 1e-9
"""Largest allowed |row sum - 1|. A float16 softmax over 1000 classes is below it. Three
probabilities of three decimals can sum to 1 ± .001 exactly; 1e-9 covers the rounding of the sum."""
ROUNDING = 1e-6
"""A probability may lie this far outside [0, 1]: float32 and projections round by less."""
COARSE_ROUNDING = 1e-4
"""Printed probabilities may lie this far outside [0, 1]; such rows are renormalised."""
LARGEST_LOGIT = 1e100
"""Largest allowed logit, so that squares do not overflow. Only float64 can hold larger ones."""
LARGEST_WEIGHT = 1e100
"""Largest allowed weight, so that sums and squares do not overflow. Some weight is at least the
inverse of it, so that not all squares are 0."""


def check_nothing_is_masked(values: Any, name: str) -> None:
    """Raise `InputError` for a masked entry, because the value under the mask would be used."""
    if np.ma.is_masked(values):
        row = int(np.argwhere(np.ma.getmaskarray(values))[0, 0])
        message = f"{np.ma.count_masked(values)} values are masked, the first"
        raise InputError(message, field=name, row=row, fixes="fill or remove such rows")


def check_numbers(values: Any, name: str, fix: Sequence[str] = ()) -> Array:
    """Return `values` as an array of any shape and real type; `InputError` otherwise.

    `fix` says what to give instead of an array that is no numbers.
    """
    check_nothing_is_masked(values, name)
    try:
        array = as_array(values, name)
    except InputError:
        raise
    except (TypeError, ValueError, RuntimeError) as error:
        message = f"not an array of numbers ({reason_of(error)})"
        raise InputError(message, field=name, fixes=fix) from error
    if array.dtype.kind == "c":
        raise InputError(f"expected real numbers, got {array.dtype}", field=name)
    return array


def _are_whole(numbers: Array) -> bool:
    return numbers.dtype.kind != "f" or bool((numbers == numbers.round()).all())


def _first(bad: Any) -> int:
    return int(np.flatnonzero(bad)[0])


def _matrix(values: Any, name: str) -> Array:
    """Return `values` as numbers [n, C], n >= 1 and C >= 2; `InputError` otherwise."""
    matrix = check_numbers(values, name)
    if matrix.dtype == np.bool_:
        raise InputError(f"expected real numbers, got {matrix.dtype}", field=name)
    if matrix.ndim != 2:
        fixes = ["give one row per point and one column per class"]
        if matrix.ndim == 1 and _are_whole(matrix):
            fixes = [
                f"these look like labels, which come second: ({name}, labels)",
                "for scikit-learn's model selection take calibration_scorer",
            ]
        message = f"expected shape [n, classes], got {list(matrix.shape)}"
        raise InputError(message, field=name, fixes=fixes)
    if matrix.shape[0] == 0:
        raise InputError("no rows", field=name, fixes="give at least one point")
    if matrix.shape[1] < 2:
        fix = "give one column per class, also for two classes"
        raise InputError(f"{matrix.shape[1]} column", field=name, fixes=fix)
    return matrix


def _has_finite_sum(matrix: Array) -> bool:
    """Whether the sum is finite: then all terms are, which no mask is needed to see."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(matrix.sum()))


def check_finite(matrix: Array, name: str) -> None:
    """Raise `InputError` naming the first row of `matrix` [n, C] with a NaN or an infinity."""
    if _has_finite_sum(matrix):
        return
    # The sum may just have overflowed.
    bad = ~np.isfinite(matrix).all(axis=1)
    if bool(bad.any()):
        message = f"NaN or infinite values in {int(bad.sum())} rows, first"
        raise InputError(message, field=name, row=_first(bad), fixes="recompute or remove them")


def check_logits(logits: Any, name: str = "logits") -> Array:
    """Return `logits` as an array of floats [n, C], C >= 2; `InputError` otherwise.

    Logits are finite, or -inf for impossible classes. Values above `LARGEST_LOGIT` are refused, and
    values below its negative become -inf.
    """
    matrix = _matrix(logits, name)
    if matrix.dtype.kind != "f":
        matrix = matrix.astype(np.float64)
    if not _has_finite_sum(matrix):
        check_finite(np.where(np.isneginf(matrix), 0.0, matrix), name)
    least, largest = float(matrix.min()), float(matrix.max())
    if largest > LARGEST_LOGIT:
        row = _first((matrix > np.float64(LARGEST_LOGIT)).any(axis=1))
        message = f"a value of size {largest:.3g}, the first above {LARGEST_LOGIT:g}"
        fixes = "divide all logits by one constant", "recompute them"
        raise InputError(message, field=name, row=row, fixes=fixes)
    if least < -LARGEST_LOGIT:
        matrix = matrix.copy()
        matrix[matrix < np.float64(-LARGEST_LOGIT)] = -np.inf
        empty = np.isneginf(matrix).all(axis=1)
        if bool(empty.any()):
            message = f"every class is -inf in {int(empty.sum())} rows, first"
            fix = "make at least one class possible"
            raise InputError(message, field=name, row=_first(empty), fixes=fix)
    return matrix


def check_labels(labels: Any, n: int, classes: int, name: str = "labels") -> Array:
    """Return `labels` as int64 [n] with values in [0, classes); `InputError` otherwise."""
    whole = f"give each row its class, a whole number from 0 to {classes - 1}"
    vector = check_numbers(labels, name, [f"{whole}: map names", "name the columns: classes="])
    _check_length(vector, n, classes, name)
    if vector.dtype.kind == "f":
        is_missing = np.isnan(vector)
        if is_missing.any():
            fixes = [whole, "leave such rows out"]
            message = f"{int(is_missing.sum())} are missing (NaN), the first"
            raise InputError(message, field=name, row=_first(is_missing), fixes=fixes)
        is_wrong = (vector != np.rint(vector)) | np.isinf(vector)
        if is_wrong.any():
            row = _first(is_wrong)
            message = f"expected whole numbers, got {float(vector[row]):.6g}"
            raise InputError(message, field=name, row=row, fixes=whole)
    else:
        vector = vector.astype(np.int64, copy=False)
    low, high = vector.min().item(), vector.max().item()
    if low < 0 or high >= classes:
        row = _first((vector < 0) | (vector >= classes))
        fixes = ["correct or remove such rows", "add the columns of the other classes"]
        if low >= 1 and high == classes:
            fixes = ["labels start at 0: subtract 1 from all"]
        elif classes == 2 and np.unique(vector).tolist() == [-1, 1]:
            fixes = ["map -1 to 0, as `labels > 0` does"]
        message = (
            f"values run from {low:.9g} to {high:.9g}, allowed are 0 to {classes - 1} "
            f"({classes} classes), the first outside is {vector[row].item():.9g}"
        )
        raise InputError(message, field=name, row=row, fixes=fixes)
    return vector.astype(np.int64, copy=False)


def _check_length(vector: Array, n: int, classes: int, name: str) -> None:
    """Raise `InputError` if labels are not one per row of a matrix [n, C]."""
    if vector.ndim != 1:
        fix = "give the number of each point's class (argmax of one-hot rows)"
        if vector.ndim == 2 and not _are_whole(vector):
            fix = f"these look like probabilities, which come first: (probabilities, {name})"
        raise InputError(f"expected shape [n], got {list(vector.shape)}", field=name, fixes=fix)
    if not len(vector):
        raise InputError("none", field=name, fixes="give at least one point")
    if len(vector) != n:
        fix = "give one per row"
        if len(vector) == classes:
            fix = "the matrix looks transposed: give one row per point"
        raise InputError(f"{len(vector)} labels for {n} rows", field=name, fixes=fix)


def check_weights(weights: Any, n: int, name: str = "sample_weight") -> Array:
    """Return `weights` as float64 [n], from 0 to `LARGEST_WEIGHT`, not all 0; or `InputError`."""
    vector = check_numbers(weights, name).astype(np.float64, copy=False)
    if vector.shape != (n,):
        message = f"shape {list(vector.shape)} for {n} rows"
        raise InputError(message, field=name, fixes="give one per row")
    is_unusable = ~np.isfinite(vector) | (vector < 0)
    if is_unusable.any():
        row = _first(is_unusable)
        fix = "give weights that are finite and not negative"
        raise InputError(f"{float(vector[row]):g}", field=name, row=row, fixes=fix)
    is_too_large = vector > LARGEST_WEIGHT
    if is_too_large.any():
        row = _first(is_too_large)
        message = f"{float(vector[row]):g}, the first above {LARGEST_WEIGHT:g}"
        raise InputError(message, field=name, row=row, fixes="divide all weights by one constant")
    if not bool((vector * LARGEST_WEIGHT >= 1).any()):
        message = f"all are zero or less than {1 / LARGEST_WEIGHT:g}"
        raise InputError(message, field=name, fixes="give some point a larger weight")
    return vector


def both_classes(scores: Any, name: str, log_odds: bool = False) -> Array:
    """Return scores of both classes, [n, 2], for those of class 1 alone, [n] or [n, 1].

    Probabilities p become [1 - p, p], `log_odds` z become the logits [0, z]. Matrices of several
    columns are returned unchanged, and so are vectors of whole numbers, which look like labels.
    """
    array = check_numbers(scores, name)
    is_column = array.ndim == 2 and array.shape[1] == 1
    if not is_column and (array.ndim != 1 or _are_whole(array)):
        return array
    second = array.reshape(-1).astype(np.float64, copy=False)
    return np.stack([np.zeros_like(second) if log_odds else 1 - second, second], axis=1)


def check_probabilities(
    probabilities: Any, name: str = "probabilities", rows_sum_to_one: bool = True
) -> Array:
    """Return `probabilities` as float64 [n, C]: in [0, 1], rows that sum to one if asked.

    For two classes they may also be [n] or [n, 1], the probabilities of class 1.
    Rows whose values leave [0, 1] by less than `COARSE_ROUNDING` are renormalised, with a warning.
    """
    matrix, _ = checked_probabilities(probabilities, name, rows_sum_to_one)
    return matrix


def checked_probabilities(
    probabilities: Any, name: str = "probabilities", rows_sum_to_one: bool = True
) -> tuple[Array, Array | None]:
    """Return what `check_probabilities` does, and the top class of each row, [n].

    It comes from the same pass over the rows; None for rows that were renormalised.
    """
    matrix = _matrix(both_classes(probabilities, name), name).astype(np.float64, copy=False)
    low, high, sums, top = facts_of_rows(matrix)
    if not bool(np.isfinite(sums).all()):
        check_finite(matrix, name)
    rounding = COARSE_ROUNDING if rows_sum_to_one else ROUNDING
    excess = max(-low, high - 1)
    if excess > rounding:
        is_outside = (matrix < -rounding) | (matrix > 1 + rounding)
        row = _first(is_outside.any(axis=1))
        fix = "are these logits?"
        if rows_sum_to_one and low >= 0:
            total = float(np.quantile(sums, 0.5, method="lower"))
            if total > 2 and bool((np.abs(sums - total) <= 0.01 * total).all()):
                fix = f"all rows sum to {total:.4g}: divide by it"
        raise InputError("values outside [0, 1], first", field=name, row=row, fixes=fix)
    if not rows_sum_to_one:
        return matrix, top
    gap = np.abs(sums - 1)
    count = int((gap > ROW_SUM_TOLERANCE).sum())
    if count:
        row = int(gap.argmax())
        fixes = ["divide each row by its sum", "give logits"]
        if bool((np.abs(matrix.sum(axis=0) - 1) <= ROW_SUM_TOLERANCE).all()):
            fixes = ["its columns do, so transpose it: give one row per point"]
        message = f"{count} rows do not sum to one, but to {float(matrix[row].sum()):.6g}"
        raise InputError(message, field=name, row=row, fixes=fixes)
    if excess > ROUNDING:
        warnings.warn(
            f"{name}: values leave [0, 1] by up to {excess:.1g}, taken for rounding; "
            "rows are renormalised",
            stacklevel=3,
        )
        matrix = matrix.clip(0, 1)
        matrix = matrix / matrix.sum(axis=1, keepdims=True)
        return matrix, None
    return matrix, top
