"""Helpers of all figures: logarithmic axes whose labels never overlap, and literal texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter


def plain_log_axis(axis: Any, limits: tuple[float, float], most: int) -> None:
    """Label an axis (`axes.xaxis` or `.yaxis`) that is set to log scale and to `limits`.

    At most about `most` round numbers are labelled, as plain decimals.
    """
    decades = np.log10(limits[1] / limits[0])
    if decades < 1:  # one-digit numbers may be too few, and the axis is nearly linear
        axis.set_major_locator(MaxNLocator(most - 1, steps=[1, 2, 2.5, 5, 10]))
    else:
        fits = [subs for subs in ((1, 2, 5), (1, 3)) if len(subs) * decades <= most]
        axis.set_major_locator(LogLocator(subs=fits[0] if fits else (1,), numticks=most))
    axis.set_major_formatter(FuncFormatter(lambda value, _: plain_number(value)))
    axis.set_minor_formatter(NullFormatter())


def plain_number(value: float) -> str:
    """Return a number as `0.0005` instead of `5e-04`."""
    return np.format_float_positional(value, precision=4, fractional=False, trim="-")


def plain(text: str) -> str:
    """Return `text` with every `$` escaped, because matplotlib would begin a formula there."""
    return text.replace("$", r"\$")


def named(values: Any) -> dict[str, Any]:
    """Return a mapping from names unchanged, and a single array under the empty name."""
    return dict(values) if isinstance(values, Mapping) else {"": values}
