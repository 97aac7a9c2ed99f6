"""What all figures share: logarithmic axes whose labels never collide, texts as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter

MANTISSAS = (
    (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0),
    (1.0, 1.5, 2.0, 3.0, 5.0, 7.0),
    (1.0, 2.0, 5.0),
    (1.0, 3.0),
    (1.0,),
)
"""Labelled numbers within a decade, the densest choice first."""


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """At most `most` round numbers in [low, high], as dense as that allows and evenly spread."""
    if high / low < 2:
        return _linear_ticks(low, high, most)
    decades = np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    for mantissas in MANTISSAS:
        numbers = sorted(float(f"{m * 10.0**d:.6g}") for d in decades for m in mantissas)
        inside = [number for number in numbers if low <= number <= high]
        if len(inside) <= most:
            return inside
    return inside[:: -(-len(inside) // most)]


def _linear_ticks(low: float, high: float, most: int) -> list[float]:
    """A range too narrow for round numbers of one digit is as good as linear."""
    ticks = MaxNLocator(most - 1, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    return [float(tick) for tick in ticks if low <= tick <= high]


def plain_log_axis(axis: Any, limits: tuple[float, float], most: int) -> None:
    """Label an axis (`axes.xaxis` or `.yaxis`) that is set to log scale and to `limits`."""
    axis.set_major_locator(FixedLocator(log_ticks(*limits, most)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain_number(value)))
    axis.set_minor_formatter(NullFormatter())


def plain_number(value: float) -> str:
    """`0.0005`, not `5e-04`."""
    return np.format_float_positional(value, precision=4, fractional=False, trim="-")


def plain(text: str) -> str:
    """`text` as matplotlib shows it letter by letter: a `$` would begin a formula."""
    return text.replace("$", r"\$")


def named(values: Any) -> dict[str, Any]:
    """A mapping from names as it is, a single array under the empty name."""
    return dict(values) if isinstance(values, Mapping) else {"": values}
