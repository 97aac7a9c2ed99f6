"""Checks of what utility classes are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import InputError
from ..validation import check_numbers


def check_classes(name: str, expected: int, classes: int) -> None:
    """Raise `InputError` if `name`, a parameter for `expected` classes, meets another number."""
    if expected != classes:
        raise InputError(f"for {expected} classes, the forecast has {classes}", field=name)


def check_sample(count: int, classes: int, gain: float = 0.0) -> None:
    """Raise `InputError` for arguments of which no utilities can be drawn."""
    if count < 1 or classes < 2:
        message = f"count {count} and classes {classes} must be >= 1 and >= 2"
        raise InputError(message, field="sample")
    if not 0 <= gain <= 1:
        message = f"a gain of {gain} for errors, expected a number from 0 to 1"
        raise InputError(message, field="sample")


def parameter_matrix(values: Any, name: str, ndim: int = 2) -> Array:
    """Return the parameters of a utility class: finite float64 of `ndim` dimensions.

    It is a read-only copy: a later change of the caller's array would change the utility, but not
    what is kept for it.
    """
    numbers = check_numbers(values, name).astype(np.float64)
    if numbers.ndim == ndim - 1:
        numbers = numbers[None]
    if numbers.ndim != ndim or numbers.size == 0:
        message = f"expected {ndim - 1} or {ndim} dimensions, none empty, got {list(numbers.shape)}"
        raise InputError(message, field=name)
    if not np.isfinite(numbers).all():
        raise InputError("NaN or infinite values", field=name)
    numbers.setflags(write=False)
    return numbers
