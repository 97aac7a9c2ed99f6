"""A grid that numbers are rounded to where only a rounding error may tell two of them apart.

Processors add in different orders, and some of them round a product and a sum at once. So numbers
that are equal by definition may differ in the last bits: sums of all classes' probabilities, or
entries that a projection made equal. Ranks and intervals would then depend on the processor. Its
cells are far above rounding errors, and far below all that a report prints.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array

CELLS = 2.0**40
"""Cells from 0 to 1."""
SHIFT = 1.5 * 2.0**52 / CELLS
"""Doubles near this number are multiples of 1 / `CELLS`, so adding it rounds numbers up to 1."""


def on_grid(values: Array, scale: Any = 1.0) -> Array:
    """Return `values` rounded to multiples of scale / 2^40.

    `scale` is a power of two, at least as large as every value; an array fits to `values`.
    """
    shift = SHIFT * scale
    rounded: Array = values + shift
    rounded -= shift
    return rounded


def power_above(sizes: Array) -> Array:
    """Return the power of two above each of `sizes` (>= 0)."""
    _, exponents = np.frexp(sizes)
    return np.ldexp(1.0, exponents)
