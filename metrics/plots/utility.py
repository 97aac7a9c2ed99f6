"""The reliability diagram of a utility, with a column of panels for each method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from metrics.diagram import UtilityDiagram, diagram_of, utility_of
from metrics.plots.ecdf import figure_of, named, plain
from metrics.utilities.base import UtilityClass
from metrics.validation import InputError

COLOR = "#0072B2"
NOISE, SHADE, DIAGONAL = "#D0D0D0", "#F3D9B1", "#8C8C8C"
COLUMNS = 4


def plot_utility(
    utility: UtilityClass | Callable[[Any], Any],
    probabilities: Any,
    labels: Any,
    *,
    index: int | None = None,
    title: str = "",
    repetitions: int = 200,
    seed: int = 0,
    bins: int = 15,
    ax: Axes | None = None,
) -> Figure:
    """Draw realized against predicted utility, and their running difference without bins.

    In the upper panel each dot is the mean of the points in one of `bins` bins of equal width. The
    dot of a calibrated forecast lies in the grey bar with probability 95 %. The lower panel is the
    running curve D(t) = mean((u - v) · 1{v <= t}), whose range is UC (eq. 3.2). For a calibrated
    forecast it lies in the grey band with probability 95 % at each t. Each lower panel has its own
    scale. The worst interval of predicted utility (eq. 3.5) is shaded.

    Args:
        utility: a utility class, or a function p [n, C] -> u⃗ [n, C] from torch to torch.
        probabilities: [n, C], or {name: [n, C]} for a column of panels each.
        labels: [n] class numbers.
        index: number of the utility in its class; the worst one of each method if not given.
        title: title of the figure.
        repetitions, seed: number and seed of the label vectors redrawn for the noise; 0 for none.
        bins: number of bins in the upper panels.
        ax: axes to draw into: the upper panel alone, of one method; a new figure if not given.

    Returns:
        The figure; a new one belongs to no window: save it, or show it in a notebook.

    Raises:
        InputError: shapes, ranges or row sums are wrong, or there is nothing to draw.
    """
    methods = named(probabilities)
    if not methods:
        raise InputError("probabilities: nothing to draw; give [n, C], or {name: [n, C]}")
    chosen, panels = utility_of(utility), {}
    for name, matrix in methods.items():
        number, diagram = diagram_of(chosen, matrix, labels, index, repetitions, seed, bins)
        several = chosen.count(np.shape(matrix)[-1]) > 1 and index is None
        panels[f"{name} (utility {number})".strip() if several else name] = diagram
    if ax is None:
        return diagram_figure(list(panels.items()), title)
    if len(panels) > 1:
        raise InputError(f"ax: one panel for {len(panels)} methods; give one, and call this again")
    ((heading, diagram),) = panels.items()
    draw_binned(ax, diagram, COLOR)
    ax.set(xlabel="Predicted utility", ylabel="Realized utility", title=plain(title or heading))
    return figure_of(ax)


def diagram_figure(
    panels: Sequence[tuple[str, UtilityDiagram]],
    title: str = "",
    colors: Sequence[str] = (),
) -> Figure:
    """Return the figure of `plot_utility` for pairs of a heading and a computed diagram."""
    columns = min(COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(0.6 + 2.3 * columns, 0.4 + 3.3 * rows), layout="constrained")
    grid = figure.subplots(
        2 * rows, columns, squeeze=False, gridspec_kw={"height_ratios": [1.25, 1] * rows}
    )
    for axis in grid.flat:
        axis.set_visible(False)
    for place, (heading, diagram) in enumerate(panels):
        row, column = divmod(place, columns)
        upper, lower = grid[2 * row, column], grid[2 * row + 1, column]
        color = colors[place] if colors else COLOR
        draw_binned(upper, diagram, color)
        draw_running(lower, diagram, color)
        upper.set_title(plain(heading), fontsize=9)
        # Panels have their own scales, because a bad method would make the others' bands lines.
        largest = float(np.nanmax(np.abs([diagram.difference, diagram.low, diagram.high])))
        if largest > 0:
            lower.set_ylim(-1.08 * largest, 1.08 * largest)
        if not column:
            upper.set_ylabel("Realized utility", fontsize=8.5)
            lower.set_ylabel("Running difference", fontsize=8.5)
    if title:
        figure.suptitle(plain(title), fontsize=11.5, fontweight="bold")
    return figure


def draw_binned(axis: Axes, diagram: UtilityDiagram, color: str) -> None:
    """Draw mean realized against mean predicted utility of each bin, over the noise."""
    bins = diagram.bins
    low, high = float(diagram.predicted.min()), float(diagram.predicted.max())
    shade_worst(axis, diagram)
    axis.vlines(bins.predicted, bins.low, bins.high, color=NOISE, lw=5, zorder=1)
    axis.plot([low, high], [low, high], color=DIAGONAL, lw=0.8, zorder=1.5)
    axis.plot(bins.predicted, bins.realized, "o", color=color, ms=3.5, zorder=3)
    _show(axis)


def draw_running(axis: Axes, diagram: UtilityDiagram, color: str) -> None:
    """Draw the running difference of realized and predicted utility, over its noise band."""
    shade_worst(axis, diagram)
    axis.fill_between(diagram.predicted, diagram.low, diagram.high, color=NOISE, lw=0, zorder=1)
    axis.axhline(0, color=DIAGONAL, lw=0.8, zorder=1.5)
    axis.plot(diagram.predicted, diagram.difference, color=color, lw=1.4, zorder=3)
    axis.set_xlabel("Predicted utility", fontsize=8.5)
    _show(axis)


def shade_worst(axis: Axes, diagram: UtilityDiagram) -> None:
    """Shade the worst interval of predicted utility."""
    axis.axvspan(diagram.worst.low, diagram.worst.high, color=SHADE, alpha=0.55, lw=0, zorder=0)


def _show(axis: Axes) -> None:
    axis.set_visible(True)
    axis.tick_params(labelsize=8)
    axis.xaxis.set_major_locator(MaxNLocator(4))
    axis.yaxis.set_major_locator(MaxNLocator(4))
    axis.spines[["top", "right"]].set_visible(False)
