"""Stable float64 softmax, compiled.

All calibrators that end in a softmax use these functions, so the rule is in one place: subtract
the row's maximum first, compute in float64 whatever the logits' type, never return a probability
that was rounded in float32 (a good classifier would say exactly 1 in a quarter of the rows).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..arrays import Array
from .compiled import compiled
from .threads import over_blocks, row_blocks


@partial(compiled, fastmath={"contract"})
def exponential(x: Any) -> Any:
    """exp(x) for x <= 0 with a relative error of 3.5e-16, in a form that compilers vectorise.

    x = k ln 2 + r with |r| <= ln(2)/2, a Taylor polynomial of degree 12 in r (remainder 1.7e-16),
    and 2^k written into the exponent bits. Below -708, where doubles leave their normal range, 0.
    The C library's exp would be called once per element.
    """
    clipped = max(x, -708.0)
    k = np.floor(clipped * 1.4426950408889634 + 0.5)
    # ln 2 in two parts, the first short enough that its product with k is exact.
    r = clipped - k * 6.93147180369123816490e-01
    r = r - k * 1.90821492927058770002e-10
    p = 1.0 / 479001600.0
    p = p * r + 1.0 / 39916800.0
    p = p * r + 1.0 / 3628800.0
    p = p * r + 1.0 / 362880.0
    p = p * r + 1.0 / 40320.0
    p = p * r + 1.0 / 5040.0
    p = p * r + 1.0 / 720.0
    p = p * r + 1.0 / 120.0
    p = p * r + 1.0 / 24.0
    p = p * r + 1.0 / 6.0
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    power_of_two = np.int64((np.int64(k) + 1023) << 52)
    value = p * power_of_two.view(np.float64)
    return value if x > -708.0 else 0.0


@compiled
def sum_in_lanes(values: Any) -> float:
    """Return the sum of `values` [C], added in four lanes.

    The lanes are written out, because a loop that adds and also writes to another array may get two
    versions from the compiler: one in vector lanes, and one in order, which runs where the two
    arrays might overlap. Where they lie in memory then decided the last bit.
    """
    first = second = third = fourth = 0.0
    whole = values.size - values.size % 4
    for j in range(0, whole, 4):
        first += values[j]
        second += values[j + 1]
        third += values[j + 2]
        fourth += values[j + 3]
    for j in range(whole, values.size):
        first += values[j]
    return (first + second) + (third + fourth)


@compiled
def softmax_rows(logits: Any, scale: float, out: Any) -> None:
    """Write softmax(scale * logits) to `out`, row by row; scale > 0."""
    for i in range(logits.shape[0]):
        row = logits[i]
        target = out[i]
        largest = row[0]
        for j in range(row.size):
            largest = max(largest, row[j])
        for j in range(row.size):
            target[j] = exponential(scale * (np.float64(row[j]) - np.float64(largest)))
        factor = 1.0 / sum_in_lanes(target)
        for j in range(row.size):
            target[j] *= factor


def has_kernels(array: Array) -> bool:
    """Whether the compiled kernels can read `array`: float32 or float64."""
    return array.dtype in (np.float32, np.float64)


def softmax(logits: Array, scale: float = 1.0) -> Array:
    """Return softmax(scale * logits) of `logits` [n, C] in float64; scale > 0."""
    n, classes = logits.shape
    out = np.empty((n, classes))
    values = np.ascontiguousarray(logits if has_kernels(logits) else logits.astype(np.float64))
    over_blocks(
        lambda start, stop: softmax_rows(values[start:stop], scale, out[start:stop]),
        row_blocks(n, classes),
    )
    return out
