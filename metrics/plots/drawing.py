"""The parts of all figures: eCDFs, the two panels of a utility's diagram, and axes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from ..shown import UtilityDiagram

Array = NDArray[np.float64]
GREY, WORST = "#808080", "#A66F00"
"""Lines whose contrast is at least 3 : 1 on white and on black."""
FLOOR_FILL, FLOOR_EDGE = "#D0D0D0", "#8C8C8C"
"""The noise floor of eCDFs: a pale band between edges that are seen."""
DASH = (0, (5, 3))
CALIBRATED, EXPECTED, WORST_NAME = (
    "95 % of the dots, if all is right",
    "as predicted",
    "worst range",
)
CALIBRATED_LINE = "95 % of the lines, if all is right"
DOT_NAME = "came true, mean of similar predictions"
SHADE_OPACITY = 0.15
MARKED_POINTS = 8
MOST_TICKS = 6
COLUMNS = (4, 3, 2)
"""How many diagrams a row may have; the number that leaves the fewest places empty is taken."""
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


def draw_floor(axis: Axes, low: Array, high: Array, levels: Array) -> None:
    """Draw the noise floor of eCDFs: between both ends [g] at these `levels` [g]."""
    axis.fill_betweenx(levels, low, high, color=FLOOR_FILL, linewidth=0, zorder=1)
    for edge in (low, high):
        axis.plot(edge, levels, color=FLOOR_EDGE, linewidth=0.5, zorder=1.1)


def floor_handle(label: str) -> Patch:
    """The line of a legend for `draw_floor`."""
    return Patch(facecolor=FLOOR_FILL, edgecolor=FLOOR_EDGE, lw=0.5, label=label)


def error_axes(axis: Axes, drawn: Iterable[Array]) -> None:
    """Make a logarithmic error axis from the smallest error of all curves to the largest.

    Errors of good and bad methods differ by a factor of ten and more. On a linear axis the good
    methods and the noise floor would share a few millimetres. The axis begins at a 1 % quantile,
    because a nearly constant utility has almost no error and would need decades of the axis.
    """
    axis.set_xlabel("Utility calibration error $e$ (in the unit of the payoff)")
    axis.set_ylim(0, 1.01)
    axis.yaxis.set_major_formatter(ticker.PercentFormatter(1.0, decimals=0))
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
        axis.set_major_locator(ticker.MaxNLocator(most - 1, steps=[1, 2, 2.5, 5, 10]))
    else:
        fits = [subs for subs in ((1, 2, 5), (1, 3)) if len(subs) * decades <= most]
        axis.set_major_locator(ticker.LogLocator(subs=fits[0] if fits else (1,), numticks=most))
    decimal = partial(np.format_float_positional, precision=4, fractional=False, trim="-")
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: decimal(value)))
    axis.set_minor_formatter(ticker.NullFormatter())


def plain(text: str) -> str:
    """Return `text` with every `$` escaped, because matplotlib would begin a formula there."""
    return text.replace("$", r"\$")


def diagram_figure(
    panels: Sequence[tuple[str, UtilityDiagram]],
    title: str,
    colors: Sequence[str],
    unit: str = "utility",
) -> Figure:
    """Return a figure with a column of two panels for each pair of a heading and a diagram.

    Args:
        panels: the headings and diagrams.
        title: of the figure.
        colors: of the diagrams' dots and lines.
        unit: what is predicted and realized.
    """
    columns = columns_for(len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(0.6 + 2.3 * columns, 0.4 + 3.3 * rows), layout="constrained")
    grid = figure.subplots(
        2 * rows, columns, squeeze=False, gridspec_kw={"height_ratios": [1.25, 1] * rows}
    )
    for axis in grid.flat:
        axis.set_visible(False)
    for place, ((heading, diagram), color) in enumerate(zip(panels, colors, strict=True)):
        row, column = divmod(place, columns)
        upper, lower = grid[2 * row : 2 * row + 2, column]
        for axis in (upper, lower):
            axis.set_visible(True)
            axis.tick_params(labelsize=8)
            axis.xaxis.set_major_locator(ticker.MaxNLocator(4))
            axis.yaxis.set_major_locator(ticker.MaxNLocator(4))
            axis.spines[["top", "right"]].set_visible(False)
            mark_worst(axis, diagram.worst.low, diagram.worst.high)
        places = diagram.running.predicted
        ends = float(places.min()), float(places.max())
        draw_binned(upper, ends, diagram.bins, color=color, ms=3.5)
        draw_running(lower, diagram.running, color=color, lw=1.4)
        upper.set_title(plain(heading), fontsize=9)
        lower.set_xlabel(f"Predicted {unit}", fontsize=8.5)
        # Panels have their own scales, because a bad method would make the others' bands lines.
        largest = float(np.nanmax(np.abs(diagram.running[1:])))
        if largest > 0:
            lower.set_ylim(-1.08 * largest, 1.08 * largest)
        if not column:
            upper.set_ylabel(f"Realized {unit}", fontsize=8.5)
            lower.set_ylabel("Running difference", fontsize=8.5)
    figure.suptitle(plain(title), fontsize=11.5, fontweight="bold")
    return figure


def columns_for(count: int) -> int:
    """Return how many of `count` diagrams stand in a row, so that few places stay empty."""
    if count <= COLUMNS[0]:
        return count
    return min(COLUMNS, key=lambda columns: -count % columns)


def diagram_handles(color: str) -> list[Line2D | Patch]:
    """Return the legend of a diagram of predicted against realized utility, each part as drawn."""
    dots = Line2D([], [], linestyle="", marker="o", ms=4.5, color=color, label=DOT_NAME)
    expected = Line2D([], [], color=GREY, lw=1, linestyle=DASH, label=EXPECTED)
    noise = Line2D([], [], color=GREY, lw=1.6, marker="|", ms=6, label=CALIBRATED)
    shade = to_rgba(WORST, SHADE_OPACITY)
    return [dots, expected, noise, Patch(facecolor=shade, edgecolor=WORST, label=WORST_NAME)]


def draw_binned(axis: Axes, ends: Sequence[float], bins: Sequence[Array], **line: Any) -> Line2D:
    """Draw mean realized against mean predicted utility of each bin (`Curve`), over the noise.

    The diagonal runs between the `ends`; `line` goes to matplotlib's `plot`. Return the dots.
    """
    predicted, realized, low, high = bins
    once = partial(_label_once, axis)
    if np.isfinite(low).any():
        axis.vlines(predicted, low, high, color=GREY, lw=1.6, zorder=1, label=once(CALIBRATED))
        for end in (low, high):
            axis.plot(predicted, end, ls="", marker="_", color=GREY, zorder=1)
    axis.plot(ends, ends, color=GREY, lw=1, ls=DASH, zorder=1.5, label=once(EXPECTED))
    look: dict[str, Any] = {"marker": "o", "linestyle": "", "zorder": 3}
    (dots,) = axis.plot(predicted, realized, **(look | line))
    return dots


def draw_running(axis: Axes, curve: Sequence[Array], **line: Any) -> None:
    """Draw the running difference of realized and predicted utility, over its noise band."""
    predicted, difference, low, high = curve
    if np.isfinite(low).any():
        # The edges have the contrast that a pale band lacks.
        label = _label_once(axis, CALIBRATED_LINE)
        axis.fill_between(
            predicted, low, high, facecolor=GREY, alpha=0.35, lw=0, zorder=1, label=label
        )
        for edge in (low, high):
            axis.plot(predicted, edge, color=GREY, lw=0.8, zorder=1)
    axis.axhline(0, color=GREY, lw=0.8, zorder=1.5)
    axis.plot(predicted, difference, **({"zorder": 3} | line))


def draw_reliability(
    axes: Axes, bins: Sequence[Array], shares: Array, rug: Array, **line: Any
) -> None:
    """Draw the bins of `draw_binned`, fainter where points are few, and where the predictions lie.

    Args:
        axes: where to draw.
        bins: predicted and realized utility, and both ends of the noise, [bins] each.
        shares: [bins], the share of points in each bin.
        rug: some predicted utilities, each of which becomes a tick at the bottom.
        **line: arguments of matplotlib's `plot`, for the dots.
    """
    predicted, realized, *_ = bins
    ends = [min(predicted.min(), rug.min()), max(predicted.max(), rug.max())]
    # The edge of a dot is always seen; its face fades with the number of points behind it.
    dots = draw_binned(axes, ends, bins, **(line | {"markerfacecolor": "none"}))
    face = np.tile(to_rgba(dots.get_color()), (len(shares), 1))
    face[:, 3] = np.sqrt(shares / shares.max())
    size = dots.get_markersize() ** 2
    axes.scatter(predicted, realized, s=size, c=face, marker=dots.get_marker(), lw=0, zorder=2.9)
    at_the_bottom = axes.get_xaxis_transform()
    tick: dict[str, Any] = {"ls": "", "marker": "|", "ms": 7, "mew": 0.6, "color": dots.get_color()}
    axes.plot(rug, np.full(len(rug), 0.02), transform=at_the_bottom, zorder=1, **tick)


def mark_worst(axes: Axes, low: float, high: float) -> None:
    """Shade the worst interval of predicted utility, between two lines, because a shade is pale."""
    axes.axvspan(low, high, facecolor=WORST, alpha=SHADE_OPACITY, lw=0, zorder=0)
    for end in (low, high):
        axes.axvline(end, color=WORST, lw=1, zorder=0.5)
    shade = to_rgba(WORST, SHADE_OPACITY)
    axes.fill([], [], facecolor=shade, edgecolor=WORST, label=_label_once(axes, WORST_NAME))


def _label_once(axes: Axes, label: str) -> str:
    """Return the label, or one that legends leave out if the axes have it of another forecast."""
    _, labels = axes.get_legend_handles_labels()
    return "_nolegend_" if label in labels else label
