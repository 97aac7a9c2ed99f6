"""The zero of a function of one variable, found by Newton's steps inside a bracket."""

import math
from collections.abc import Callable

MAX_STEPS = 200


def solve_increasing(
    function: Callable[[float], tuple[float, float, bool]], start: float, low: float, high: float
) -> tuple[float, bool]:
    """Find the zero of an increasing function in (low, high); return it and whether it was reached.

    `function(x)` returns value, derivative and whether the value is zero up to rounding. The
    bracket shrinks with every step. If Newton's step would leave it, its middle is taken instead.
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
            # If the bracket is wide, the geometric middle takes fewer steps.
            following = math.sqrt(low * high) if low > 0 and high > 4 * low else (low + high) / 2
        # Newton doubles the correct digits. After a step of 1e-9 the next step would be rounding.
        if abs(following - x) <= 1e-9 * abs(x):
            return following, True
        x = following
    return x, False
