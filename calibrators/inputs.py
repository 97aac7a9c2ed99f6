"""Inputs of calibrators: scores that become logits. What looks odd about them is noticed."""

import math
import warnings
from functools import cache
from typing import Any, Literal, NamedTuple, get_args, get_origin, get_type_hints, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from utility_calibration.metrics import validation
from utility_calibration.metrics.arrays import Array, OtherArray, like
from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.kernels.threads import row_blocks
from utility_calibration.metrics.shown import LIKELIHOOD_FLOOR

Inputs = Literal["logits", "probabilities", "log_probabilities"]
"""log_probabilities: logarithms of probabilities; -inf is the logarithm of 0."""
SMALLEST_POSITIVE = LIKELIHOOD_FLOOR * (1 + 2e-4)
"""What smaller positive probabilities stand as in a fit. It is above the number that zeros stand
as, so that conditioning.py can tell which ones are zeros of few votes."""
FLOAT32_STEPS = 1e-5  # some steps of float32 near log 1e-12
SAME_SUMS = 0.05  # sums are common if none differs from the median by more than this share
MAJORITY = 0.6
"""Rows with a common sum are votes only if some row's largest entry exceeds this share of it.
Shifted or quantised logits can also have a common sum, but with more than a few classes their
largest entry hardly exceeds half of it."""
ENOUGH_ROWS = 10
"""Fewer rows may be in some order, or have one sum, or look like probabilities by chance."""


@overload
def from_probabilities(probabilities: OtherArray) -> OtherArray: ...
@overload
def from_probabilities(probabilities: ArrayLike) -> NDArray[np.float64]: ...
def from_probabilities(probabilities: Any) -> Any:
    """Return the logarithms of `probabilities` [n, C]: logits whose softmax they are.

    >>> from_probabilities([[0.75, 0.25]]).round(3)
    array([[-0.288, -1.386]])

    Zeros stand as 1e-12, the floor of the negative log-likelihood, because a fit cannot use the
    logarithm of 0. Positive probabilities below 1e-12 stand as 1.0002e-12. A forecast that is
    scored as it is keeps its zeros: score the probabilities themselves. Rows whose sum differs from
    one by rounding are renormalised by the softmax.

    For two classes they may also be [n] or [n, 1], the probability of class 1. The result is
    float64 [n, C], of the same kind and on the same device. `InputError` if a value is outside
    [0, 1], or a row does not sum to one.
    """
    return like(floored(log_of(probabilities)), probabilities)


def log_of(probabilities: ArrayLike) -> NDArray[np.float64]:
    """Return log p of checked `probabilities`, float64 [n, C]; -inf for 0."""
    matrix = validation.check_probabilities(probabilities)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(matrix, 0), dtype=np.float64)


def floored(log_probabilities: Array) -> Array:
    """Return logarithms [n, C] that a fit can use: those of 0 as log 1e-12, all others above it.

    What this returned before comes back unchanged, also in float32.
    """
    floor = math.log(LIKELIHOOD_FLOOR)
    is_raised = np.abs(log_probabilities - floor) <= FLOAT32_STEPS
    logits = np.maximum(log_probabilities, math.log(SMALLEST_POSITIVE))
    logits[is_raised | np.isneginf(log_probabilities)] = floor
    return logits


def logits_of(X: Any, inputs: Inputs, keeps_zeros: bool = False) -> Array:
    """Return what a calibrator was given as checked logits, float32 or float64 [n, C].

    A calibrator that learns nothing keeps the zeros of probabilities: their logits are -inf.
    """
    numbers = validation.check_numbers(X, inputs)
    if inputs == "probabilities":
        numbers = log_of(numbers)
    elif inputs == "logits":
        numbers = validation.both_classes(numbers, inputs, log_odds=True)
    logits = validation.check_logits(numbers)
    if inputs != "logits" and not keeps_zeros:
        logits = floored(logits)
    # Half precision is computed in float32. The last bit of a sum over a row depends on the order
    # in memory; so all logits have the same one. Others are not copied.
    dtype = logits.dtype if logits.dtype in (np.float32, np.float64) else np.float32
    return np.require(logits, dtype, ["C", "A"])


def column_names(X: ArrayLike) -> list[str] | None:
    """Return the names of a data frame's columns; None if there are none, or not all are text."""
    names = list(getattr(X, "columns", [None]))
    return names if all(isinstance(name, str) for name in names) else None


def check_columns(X: ArrayLike, columns: int, calibrator: Any) -> None:
    """Raise `InputError` if `X` with so many columns does not have those of the fit, by name."""
    before = getattr(calibrator, "feature_names_in_", ())
    for place, (name, fitted) in enumerate(zip(column_names(X) or (), before)):
        if name != fitted:
            message = f"column {place} is {name!r}, at the fit {str(fitted)!r}"
            raise InputError(message, field="logits", fixes="give the columns of the fit in order")
    if columns != calibrator.n_features_in_:
        name, fix = type(calibrator).__name__, ""
        message = f"{columns} columns, but the {name} was fitted on {calibrator.n_features_in_}"
        if np.ndim(X) == 1:
            fix = "give one point as X.reshape(1, -1)"
        raise InputError(f"{message} classes", field="logits", fixes=fix)


@cache
def _choices(kind: type[Any]) -> dict[str, tuple[Any, ...]]:
    hints = get_type_hints(kind).items()
    return {name: get_args(hint) for name, hint in hints if get_origin(hint) is Literal}


def check_choices(calibrator: Any) -> None:
    """Raise `InputError` for an argument that is none of the literals of its type."""
    for name, choices in _choices(calibrator.__class__).items():
        value = getattr(calibrator, name)
        if value not in choices:
            raise InputError(f"{value!r}", field=name, fixes=f"choose {' or '.join(choices)}")


def warn_of_lookalike(logits: Array, stacklevel: int = 3) -> None:
    """Warn a caller, that of `fit` by default, if `logits` [n, C] look like something else."""
    is_single = logits.shape[1] == 2 and not bool(logits[:, 0].any())
    scores = validation.both_classes(logits[:, 1:], "logits") if is_single else logits
    seen = lookalike(scores)
    if seen is not None:
        warnings.warn(
            f"logits: {seen.what}; {seen.step}give their logarithm: "
            "utility_calibration.calibrators.from_probabilities(probabilities)",
            stacklevel=stacklevel,
        )


def warn_of_absent(labels: Array, classes: NDArray[Any], is_learned: bool) -> None:
    """Warn the caller of `fit` about classes without a point among `labels` [n]."""
    if not is_learned:
        return
    present = np.unique(labels)
    absent = np.delete(classes, present)
    if len(present) == 1:
        points = "the only point is" if len(labels) == 1 else f"all {len(labels)} are"
        warnings.warn(
            f"labels: {points} {classes[present[0]]}, so nothing can be learned and "
            "probabilities stay as they are; give points of at least two classes",
            stacklevel=3,
        )
    elif len(absent):
        shown = ", ".join(map(str, absent[:5]))
        shown += f" and {len(absent) - 5} more" * (len(absent) > 5)
        warnings.warn(
            f"labels: class {shown} of {len(classes)} has no calibration point; its probability "
            "is multiplied by kept_, a factor from 0 to 1 that follows from how often the other "
            "classes occur",
            stacklevel=3,
        )


class Lookalike(NamedTuple):
    what: str
    step: str  # what turns them into probabilities


def lookalike(matrix: Array) -> Lookalike | None:
    """Return what `matrix` [n, C] looks like; None if it looks like logits.

    `matrix` may be a memory-mapped file, so it is read in blocks of rows. Logits have negative
    entries, so the first block usually decides.
    """
    sums, largest = [], 0.0
    for start, stop in row_blocks(*matrix.shape):
        rows = matrix[start:stop].astype(np.float64, copy=False)
        if not bool((rows >= -validation.COARSE_ROUNDING).all()):
            return None
        sums.append(rows.sum(axis=1))
        largest = max(largest, float(rows.max()))
    total = np.concatenate(sums) if sums else np.zeros(1)
    common = float(np.quantile(total, 0.5, method="lower"))
    if not bool((np.abs(total - common) <= SAME_SUMS * common).all()):  # true for NaN, too
        return None
    off = float(np.abs(total - 1).max())
    if largest <= 1 + validation.COARSE_ROUNDING and off <= SAME_SUMS:
        what = f"these look like probabilities (in [0, 1], rows sum to one within {off:.1g})"
        return Lookalike(what, "")
    if len(total) < ENOUGH_ROWS or not largest > MAJORITY * common:
        return None
    return Lookalike(
        f"all rows sum to about {common:.6g} and nothing is negative, as in votes, percentages or "
        "probabilities times a number",
        "divide each row by its sum and ",
    )
