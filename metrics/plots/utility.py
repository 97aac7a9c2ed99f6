"""The panels of a utility's diagram, with bins and without, and a figure of many diagrams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from metrics.diagram import UtilityDiagram
from metrics.plots.ecdf import Array, plain

NOISE, SHADE, DIAGONAL = "#D0D0D0", "#F3D9B1", "#8C8C8C"
COLUMNS = 4


def diagram_figure(
    panels: Sequence[tuple[str, UtilityDiagram]], title: str, colors: Sequence[str]
) -> Figure:
    """Return a figure with a column of two panels for each pair of a heading and a diagram."""
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(0.6 + 2.3 * columns, 0.4 + 3.3 * rows), layout="constrained")
    grid = figure.subplots(
        2 * rows, columns, squeeze=False, gridspec_kw={"height_ratios": [1.25, 1] * rows}
    )
    for axis in grid.flat:
        axis.set_visible(False)
    for place, ((heading, diagram), color) in enumerate(zip(panels, colors, strict=True)):
        row, column = divmod(place, columns)
        upper, lower = grid[2 * row, column], grid[2 * row + 1, column]
        for axis in (upper, lower):
            axis.set_visible(True)
            axis.tick_params(labelsize=8)
            axis.xaxis.set_major_locator(MaxNLocator(4))
            axis.yaxis.set_major_locator(MaxNLocator(4))
            axis.spines[["top", "right"]].set_visible(False)
            shade_worst(axis, diagram.worst.low, diagram.worst.high)
        ends = float(diagram.predicted.min()), float(diagram.predicted.max())
        draw_binned(upper, ends, astuple(diagram.bins), color=color, ms=3.5)
        draw_running(lower, diagram.curve, color=color, lw=1.4)
        upper.set_title(plain(heading), fontsize=9)
        lower.set_xlabel("Predicted utility", fontsize=8.5)
        # Panels have their own scales, because a bad method would make the others' bands lines.
        largest = float(np.nanmax(np.abs([diagram.difference, diagram.low, diagram.high])))
        if largest > 0:
            lower.set_ylim(-1.08 * largest, 1.08 * largest)
        if not column:
            upper.set_ylabel("Realized utility", fontsize=8.5)
            lower.set_ylabel("Running difference", fontsize=8.5)
    figure.suptitle(plain(title), fontsize=11.5, fontweight="bold")
    return figure


def draw_binned(axis: Axes, ends: Sequence[float], bins: Sequence[Array], **line: Any) -> None:
    """Draw mean realized against mean predicted utility of each bin, over the noise.

    Args:
        axis: the axes to draw into.
        ends: where the diagonal begins and ends.
        bins: mean v, mean u, and the ends of its noise band, as in `Bins`.
        **line: arguments of matplotlib's `plot`.
    """
    predicted, realized, low, high = bins
    axis.vlines(predicted, low, high, color=NOISE, lw=5, zorder=1)
    axis.plot(ends, ends, color=DIAGONAL, lw=0.8, zorder=1.5)
    look: dict[str, Any] = {"marker": "o", "linestyle": "", "zorder": 3}
    axis.plot(predicted, realized, **(look | line))


def draw_running(axis: Axes, curve: Sequence[Array], **line: Any) -> None:
    """Draw the running difference of realized and predicted utility, over its noise band."""
    predicted, difference, low, high = curve
    axis.fill_between(predicted, low, high, color=NOISE, lw=0, zorder=1)
    axis.axhline(0, color=DIAGONAL, lw=0.8, zorder=1.5)
    axis.plot(predicted, difference, **({"zorder": 3} | line))


def shade_worst(axis: Axes, low: float, high: float) -> None:
    """Shade the worst interval of predicted utility."""
    axis.axvspan(low, high, color=SHADE, alpha=0.55, lw=0, zorder=0)
