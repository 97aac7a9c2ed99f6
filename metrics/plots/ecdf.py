"""The distribution of calibration errors over a class of utilities, and what all figures share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullFormatter,
    PercentFormatter,
)
from numpy.typing import NDArray

from metrics.ecdf import dkw_band, ecdf, levels, thin
from metrics.validation import InputError

Array = NDArray[np.float64]
DRAWN_POINTS = 201
MARKED_POINTS = 8
MOST_TICKS = 6
BAND = 0.14
"""Opacity of the bands around the curves."""


def plot_ecdf(
    errors: Any, *, title: str = "", confidence: float = 0.95, ax: Axes | None = None
) -> Figure:
    """Return curves of the share of utilities with an error of at most e (section 4).

    Args:
        errors: [M] UC of sampled utilities, as `Linear.sample(…).calibration_errors(…)` returns
            them; or a mapping from the names of several methods to such errors.
        title: title of the figure.
        confidence: confidence of the band (Dvoretzky-Kiefer-Wolfowitz), which comes from the sample
            of M utilities and does not contain the noise of the points.
        ax: axes to draw into; those of a new figure if not given.

    Returns:
        The figure; a new one belongs to no window: save it, or show it in a notebook.

    Raises:
        InputError: there is nothing to draw, or errors are not finite or not of shape [M].
    """
    curves = {name: ecdf(values)[0] for name, values in named(errors).items()}
    if not curves:
        raise InputError("errors: nothing to draw; give an array [M], or {name: array}")
    axis = Figure(figsize=(5.2, 3.8), layout="constrained").subplots() if ax is None else ax
    for place, (name, values) in enumerate(curves.items()):
        index = thin(len(values), DRAWN_POINTS)
        band, height = dkw_band(len(values), confidence), levels(len(values))
        draw_curve(
            axis, values[index], height[index], band, color=f"C{place % 10}", label=plain(name)
        )
    error_axes(axis, curves.values())
    axis.set_ylabel("Share of utilities with error ≤ $e$")
    axis.set_title(plain(title))
    if any(curves):
        axis.legend(frameon=False)
    return figure_of(axis)


def figure_of(axis: Axes) -> Figure:
    """Return the figure of axes, also of axes in a part of a figure."""
    figure = axis.get_figure(root=True)
    assert isinstance(figure, Figure)
    return figure


def draw_curve(
    axis: Axes, errors: Array, height: Array, band: float, *, color: str, **line: Any
) -> None:
    """Draw sorted errors as an eCDF of these heights; `line` goes to matplotlib's `plot`.

    band: half of the height of the band around the curve.
    """
    # The band is drawn only where both its sides lie within 0..1; its ends would be long boxes.
    inner = (height >= band) & (height <= 1 - band)
    below, above = height[inner] - band, height[inner] + band
    axis.fill_between(errors[inner], below, above, color=color, alpha=BAND, lw=0, zorder=2)
    every = max(1, len(errors) // MARKED_POINTS)
    axis.plot(errors, height, color=color, zorder=3, ms=4, markevery=every, **line)


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
