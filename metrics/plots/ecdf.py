"""The distribution of calibration errors over a class of utilities, and what all figures share."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import (
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    PercentFormatter,
)
from numpy.typing import NDArray

Array = NDArray[np.float64]
MARKED_POINTS = 8
MOST_TICKS = 6
BAND = 0.14
"""Opacity of the bands around the curves."""


def draw_curve(axis: Axes, errors: Array, height: Array, band: float, **line: Any) -> None:
    """Draw sorted errors as an eCDF of these heights, with a band of half-width `band`."""
    every = max(1, len(errors) // MARKED_POINTS)
    (curve,) = axis.plot(errors, height, zorder=3, ms=4, markevery=every, **line)
    # The band is drawn only where both its sides lie within 0..1; its ends would be long boxes.
    inner = (height >= band) & (height <= 1 - band)
    below, above = height[inner] - band, height[inner] + band
    look: dict[str, Any] = {"color": curve.get_color(), "alpha": BAND, "lw": 0, "zorder": 2}
    axis.fill_between(errors[inner], below, above, **look)


def error_axes(axis: Axes, drawn: Iterable[Array]) -> None:
    """Make a logarithmic error axis from the smallest error of all curves to the largest.

    Errors of good and bad methods differ by a factor of ten and more. On a linear axis the good
    methods and the noise floor would share a few millimetres. The axis begins at a 1 % quantile,
    because a nearly constant utility has almost no error and would need decades of the axis.
    """
    axis.set_xlabel("Utility calibration error $e$ (units of utility)")
    axis.set_ylim(0, 1.01)
    axis.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    curves = [values for values in drawn if values.any()]
    if not curves:
        return
    foot = min(float(np.quantile(values[values > 0], 0.01)) for values in curves)
    axis.set_xscale("log")
    axis.set_xlim(foot / 1.15, max(float(values.max()) for values in curves) * 1.08)
    plain_log_axis(axis.xaxis, axis.get_xlim(), MOST_TICKS)


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
    decimal = partial(np.format_float_positional, precision=4, fractional=False, trim="-")
    axis.set_major_formatter(FuncFormatter(lambda value, _: decimal(value)))
    axis.set_minor_formatter(NullFormatter())


def plain(text: str) -> str:
    """Return `text` with every `$` escaped, because matplotlib would begin a formula there."""
    return text.replace("$", r"\$")
