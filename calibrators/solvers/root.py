"""The zero of a function of one variable: Newton's steps inside a bracket."""

from __future__ import annotations

import math
from collections.abc import Callable

MAX_STEPS = 200


def solve_increasing(
    function: Callable[[float], tuple[float, float, bool]], start: float, low: float, high: float
) -> tuple[float, bool]:
    """Find the zero of an increasing function in (low, high); return it and whether it was reached.

    `function(x)` returns value, derivative and whether the value is zero up to rounding. Newton's
    steps are kept inside the shrinking bracket; a step that leaves it is replaced by its middle.
    """
    x = start
    for _ in range(MAX_STEPS):
        value, derivative, is_zero = function(x)
        if is_zero:
            return x, True
        if value < 0:
            low = x
        else:
            high = x
        following = x - value / derivative if derivative > 0 else math.nan
        if not low < following < high:
            # The middle of a bracket over many powers of ten is its geometric middle.
            following = math.sqrt(low * high) if low > 0 and high > 4 * low else (low + high) / 2
        # Newton doubles the correct digits: after a step of 1e-9 the next one would be rounding.
        if abs(following - x) <= 1e-9 * abs(x):
            return following, True
        x = following
    return x, False
