"""A grid that numbers are rounded to where only a rounding error may tell two of them apart.

Processors add in different orders, and some of them round a product and a sum at once. So numbers
that are equal by definition may differ in the last bits: sums of all classes' probabilities, or
entries that a projection made equal. Ranks and intervals would then depend on the processor. The
cells are far above rounding errors, and far below all that a report prints.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array

CELL = 2.0**-32
"""Of probabilities that decide further steps. A classifier has thousands of probabilities near 1,
closer to each other than any cell. A rounding error of 1e-16 moves one of them to another cell once
in 2 million times; with 2^-40 it changed a noise floor in one of two fits."""
NORMAL = 1.5 * 2.0**52
SHIFT = NORMAL * CELL
"""Doubles near this number are multiples of `CELL`, so adding it rounds."""


def on_grid(values: Array, cell: Any = CELL, out: Array | None = None) -> Array:
    """Return `values` rounded to multiples of `cell`, a power of two or an array of them.

    Values are below 2^50 cells. With `out`, which may be `values`, the result is written there.
    """
    shift = NORMAL * cell
    rounded: Array = np.add(values, shift, out=out)
    rounded -= shift
    return rounded


def power_above(sizes: Array) -> Array:
    """Return the power of two above each of `sizes` (>= 0)."""
    _, exponents = np.frexp(sizes)
    return np.ldexp(1.0, exponents)
