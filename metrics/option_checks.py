"""Checks of options: whole numbers, a confidence, known names."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any

from .errors import InputError

USUAL_CONFIDENCE = 0.95
BEYOND = 20
"""Draws that lie beyond a quantile that is taken of them, about."""


def is_whole(value: Any) -> bool:
    """Whether `value` is an integer of Python or NumPy; `True` and `2.0` are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def check_whole(value: Any, name: str, least: int, fix: str = "") -> None:
    """Raise `InputError` if `value`, an option, is no whole number of at least `least`."""
    if not is_whole(value) or value < least:
        message = f"{value!r}, expected a whole number of at least {least}"
        raise InputError(message, field=name, fixes=fix)


def check_confidence(value: Any) -> None:
    """Raise `InputError` if `value` is no number between 0 and 1."""
    if not isinstance(value, Real) or not 0 < float(value) < 1:
        raise InputError(
            f"{value!r}, expected a number in (0, 1)", field="confidence", fixes="give .95 for 95 %"
        )


def draws_for(confidence: float) -> int:
    """Return the number of draws for a quantile at `confidence`, or at the usual one if higher."""
    share = 1 - max(confidence, USUAL_CONFIDENCE)
    return math.ceil(BEYOND / share - 1e-6)  # 1 - .95 is less than .05 by rounding


def check_known(names: Iterable[str], known: Sequence[str], where: str, what: str) -> None:
    """Raise `InputError`, with the nearest name, for the first of `names` that is not `known`."""
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            fix = f"known: {', '.join(known)}"
            raise InputError(f"{name} is no {what}{hint}", field=where, fixes=fix)
