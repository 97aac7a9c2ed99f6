"""Checks of what comes in from outside: one clear line each, naming the field and the fix."""

from __future__ import annotations

import warnings
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor

from metrics.kinds import as_tensor

ROW_SUM_TOLERANCE = 1e-3 + 1e-9
"""Largest |row sum - 1| that passes: a float16 softmax over 1000 classes stays below it. Three
probabilities of three decimals can sum to 1 ± .001 exactly; 1e-9 covers the rounding of the sum."""

ROUNDING = 1e-6
"""A probability may lie this far outside [0, 1]: float32 and projections round by less."""

COARSE_ROUNDING = 1e-4
"""How far outside [0, 1] values of printed probabilities lie; such rows are renormalised."""

LARGEST_LOGIT = 1e100
"""Squares of logits must not overflow; only float64 can hold anything that large."""


class InputError(ValueError):
    """Input that cannot be used. The message is one line: what is wrong, where, and the fix."""


def is_whole(value: Any) -> bool:
    """Whether `value` is an integer of Python or NumPy; `True` and `2.0` are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_numbers(values: Any, name: str) -> Tensor:
    """Return `values` as a tensor of any shape and real type; `InputError` otherwise."""
    check_nothing_is_masked(values, name)
    try:
        tensor = as_tensor(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"{name}: not an array of numbers ({_reason(error)})") from error
    tensor = _dense(tensor, name)
    if tensor.dtype.is_complex:
        raise InputError(f"{name}: expected real numbers, got {tensor.dtype}")
    return tensor


def _reason(error: Exception) -> str:
    """What torch or NumPy said, on one line and without the list of all types."""
    return " ".join(str(error).partition(" The only supported types")[0].split())[:200]


def check_nothing_is_masked(values: Any, name: str) -> None:
    """`InputError` for a masked entry, which would count with whatever lies under the mask."""
    if isinstance(values, np.ma.MaskedArray):
        mask = np.atleast_1d(np.ma.getmaskarray(values))
        counts = mask.sum(axis=tuple(range(1, mask.ndim)))
    elif isinstance(values, (list, tuple)):
        has_mask = [isinstance(row, np.ma.MaskedArray) for row in values]
        counts = np.array([yes and np.ma.count_masked(row) for row, yes in zip(values, has_mask)])
    else:
        return
    if counts.any():
        raise InputError(
            f"{name}: {int(counts.sum())} values are masked, the first in row "
            f"{int((counts > 0).argmax())}; fill or remove such rows"
        )


def _dense(tensor: Tensor, name: str) -> Tensor:
    """`tensor` if its numbers lie in memory as they are; `InputError` otherwise."""
    is_special = tensor.is_meta or tensor.is_nested or tensor.is_quantized
    if is_special or tensor.layout != torch.strided:
        raise InputError(f"{name}: a meta, nested, quantized or sparse tensor; give a dense one")
    return tensor


def _matrix(values: Any, name: str) -> Tensor:
    matrix = check_numbers(values, name)
    if matrix.dtype == torch.bool:
        raise InputError(f"{name}: expected real numbers, got {matrix.dtype}")
    if matrix.ndim != 2:
        are_labels = matrix.ndim == 1 and _are_whole(matrix)
        raise InputError(
            f"{name}: expected shape [n, classes], got {list(matrix.shape)}; "
            + (
                f"these look like labels, which come second: ({name}, labels)"
                if are_labels
                else "give one row per point and one column per class"
            )
        )
    if matrix.shape[0] == 0:
        raise InputError(f"{name}: no rows; at least one point is needed")
    if matrix.shape[1] < 2:
        raise InputError(
            f"{name}: {matrix.shape[1]} column; give one column per class, also for two classes"
        )
    return matrix


def _are_whole(numbers: Tensor) -> bool:
    return not numbers.dtype.is_floating_point or bool((numbers == numbers.round()).all())


def _first_bad_row(bad: Tensor) -> int:
    return int(torch.nonzero(bad)[0, 0])


def check_finite(matrix: Tensor, name: str) -> None:
    """Raise `InputError` naming the first row of `matrix` [n, C] with a NaN or an infinity."""
    # A finite sum has finite terms and needs no mask; one that overflows is looked into.
    if bool(torch.isfinite(matrix.sum())):
        return
    bad = ~torch.isfinite(matrix).all(dim=1)
    if bool(bad.any()):
        raise InputError(
            f"{name}: {int(bad.sum())} rows hold NaN or infinite values, the first is row "
            f"{_first_bad_row(bad)}; recompute or remove them"
        )


def check_logits(logits: Any, name: str = "logits") -> Tensor:
    """Return `logits` as a floating tensor [n, C], C >= 2, all finite; `InputError` otherwise.

    Values beyond ±`LARGEST_LOGIT` are refused too.
    """
    matrix = _matrix(logits, name)
    if not matrix.dtype.is_floating_point:
        matrix = matrix.to(torch.float64)
    check_finite(matrix, name)
    if matrix.dtype == torch.float64:
        _check_magnitude(matrix, name)
    return matrix


def _check_magnitude(matrix: Tensor, name: str) -> None:
    low, high = torch.aminmax(matrix)
    if max(-float(low), float(high)) <= LARGEST_LOGIT:
        return
    row = _first_bad_row((matrix.abs() > LARGEST_LOGIT).any(dim=1))
    value = float(matrix[row, matrix[row].abs().argmax()])
    raise InputError(
        f"{name}: {value:.3g} in row {row}, allowed are -{LARGEST_LOGIT:g} to {LARGEST_LOGIT:g}; "
        "divide all logits by one constant, or recompute them"
    )


def check_labels(labels: Any, n: int, classes: int, name: str = "labels") -> Tensor:
    """Return `labels` as int64 [n] with values in [0, classes); `InputError` otherwise."""
    vector = _class_numbers(labels, classes, name)
    if vector.ndim != 1:
        fix = (
            f"these look like probabilities, which come first: (probabilities, {name})"
            if vector.ndim == 2 and not _are_whole(vector)
            else "give the number of each point's class (argmax of one-hot rows, ravel of a single "
            "column)"
        )
        raise InputError(f"{name}: expected shape [n], got {list(vector.shape)}; {fix}")
    if not len(vector):
        raise InputError(f"{name}: none; at least one point is needed")
    if vector.shape[0] != n:
        raise InputError(f"{name}: {vector.shape[0]} labels for {n} rows; the lengths must agree")
    if vector.dtype.is_floating_point:
        _check_whole(vector, classes, name)
    elif vector.dtype.is_complex:
        raise InputError(f"{name}: expected whole numbers, got {vector.dtype}")
    else:  # float64 holds, nearly, what of uint64 int64 does not
        vector = vector.to(torch.float64 if vector.dtype == torch.uint64 else torch.int64)
    _check_range(vector, classes, name)
    return vector.to(torch.int64)


def check_weights(weights: Any, n: int, name: str = "sample_weight") -> Tensor:
    """Return `weights` as float64 [n], finite, >= 0 and not all 0; `InputError` otherwise."""
    vector = check_numbers(weights, name).to(torch.float64)
    if vector.shape != (n,):
        raise InputError(f"{name}: shape {list(vector.shape)} for {n} rows; give one per row")
    bad = ~torch.isfinite(vector) | (vector < 0)
    if bool(bad.any()):
        row = _first_bad_row(bad)
        raise InputError(
            f"{name}: {float(vector[row]):g} in row {row}; weights are finite and not negative"
        )
    if not bool(vector.any()):
        raise InputError(f"{name}: all are zero; give some point a weight")
    return vector


def _class_numbers(labels: Any, classes: int, name: str) -> Tensor:
    """`labels` as a tensor; of text, the error shows the first and says what to do with it."""
    check_nothing_is_masked(labels, name)
    try:
        vector = as_tensor(labels)
    except (TypeError, ValueError, RuntimeError) as error:
        entries = np.asarray(labels, dtype=object).ravel()
        text = next((str(entry) for entry in entries if isinstance(entry, (str, bytes))), None)
        problem = f"{name}: not an array of class numbers 0 to {classes - 1}"
        if text is None:
            raise InputError(f"{problem} ({_reason(error)})") from error
        shown = text if len(text) <= 20 else f"{text[:20]}…"
        raise InputError(f"{problem} (it holds {shown!r}); map names to numbers") from error
    return _dense(vector, name)


def _check_whole(vector: Tensor, classes: int, name: str) -> None:
    fix = f"give each row its class, a whole number from 0 to {classes - 1}"
    if not bool(torch.isfinite(vector).all()):
        row = _first_bad_row(~torch.isfinite(vector))
        raise InputError(f"{name}: NaN or infinite values, the first in row {row}; {fix}")
    bad = vector != vector.floor()
    if bool(bad.any()):
        row = _first_bad_row(bad)
        raise InputError(
            f"{name}: expected whole numbers, got {float(vector[row]):.6g} in row {row}; {fix}"
        )


def _check_range(vector: Tensor, classes: int, name: str) -> None:
    low, high = int(vector.min()), int(vector.max())
    if low >= 0 and high < classes:
        return
    row = _first_bad_row((vector < 0) | (vector >= classes))
    if low >= 1 and high == classes:
        fix = "labels start at 0: subtract 1 from all"
    elif low < 0:
        fix = "correct or remove such rows"
    else:
        fix = "correct such rows, or add the columns of the other classes"
    first = _whole(float(vector[row]))
    raise InputError(
        f"{name}: values run from {_whole(low)} to {_whole(high)}, allowed are 0 to {classes - 1} "
        f"({classes} classes), the first outside is {first} in row {row}; {fix}"
    )


def _whole(number: float) -> str:
    """A whole number in full where that is short: 7, 1e+20."""
    return f"{int(number)}" if abs(number) < 1e9 else f"{number:.6g}"


def check_probabilities(
    probabilities: Any, name: str = "probabilities", rows_sum_to_one: bool = True
) -> Tensor:
    """Return `probabilities` as float64 [n, C]: in [0, 1], rows that sum to one if asked.

    Rows whose values leave [0, 1] by less than `COARSE_ROUNDING` are renormalised, with a warning.
    """
    matrix = _matrix(probabilities, name).to(torch.float64)
    sums = matrix.sum(dim=1)
    if not bool(torch.isfinite(sums).all()):
        check_finite(matrix, name)
    if not rows_sum_to_one:
        _check_unit_interval(matrix, name)
        return matrix
    excess = _check_unit_interval(matrix, name, COARSE_ROUNDING)
    gap = (sums - 1).abs()
    if bool((gap > ROW_SUM_TOLERANCE).any()):
        row = int(gap.argmax())
        raise InputError(
            f"{name}: {int((gap > ROW_SUM_TOLERANCE).sum())} rows do not sum to one, row {row} "
            f"sums to {float(matrix[row].sum()):.6g}; divide each row by its sum, or give logits"
        )
    if excess > ROUNDING:
        warnings.warn(
            f"{name}: values leave [0, 1] by up to {excess:.1g}, taken for rounding; "
            "rows are renormalised",
            stacklevel=3,
        )
        matrix = matrix.clamp(0, 1)
        matrix = matrix / matrix.sum(dim=1, keepdim=True)
    return matrix


def look_like_probabilities(matrix: Tensor, sum_tolerance: float = ROW_SUM_TOLERANCE) -> bool:
    """Whether all rows of `matrix` [n, C] could be probabilities, rounding included.

    Logits usually show in the first rows, so that this costs them nothing.
    """
    for rows in (matrix[:8], matrix):
        low, high = torch.aminmax(rows)
        if not (low >= -COARSE_ROUNDING and high <= 1 + COARSE_ROUNDING):
            return False
        if bool(((rows.sum(dim=1, dtype=torch.float64) - 1).abs() > sum_tolerance).any()):
            return False
    return True


def _check_unit_interval(matrix: Tensor, name: str, rounding: float = ROUNDING) -> float:
    """How far values leave [0, 1]; `InputError` if by more than `rounding`."""
    excess = max(-float(matrix.min()), float(matrix.max()) - 1)
    if excess > rounding:
        bad = ((matrix < -rounding) | (matrix > 1 + rounding)).any(dim=1)
        raise InputError(
            f"{name}: values outside [0, 1], the first in row {_first_bad_row(bad)}; "
            "are these logits?"
        )
    return excess
