"""The eCDF figure of one benchmark: linear and rank-based utilities side by side (section 4)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import PercentFormatter

from metrics.ecdf import dkw_band
from pipeline.reporting.axes import plain_log_axis
from pipeline.reporting.curves import Array, Band, Curves, levels, thin
from pipeline.reporting.names import method_name
from pipeline.reporting.style import (
    FLOOR_EDGE,
    FLOOR_FILL,
    LineLook,
    house_style,
    legend_below,
    look,
    plain,
    save_figure,
)

PANEL_TITLES = {
    "linear": r"Linear utilities  $\mathcal{U}_{\mathrm{lin}}$",
    "rank": r"Rank-based utilities  $\mathcal{U}_{\mathrm{rank}}$",
}
DRAWN_POINTS = 201
CONFIDENCE = 0.95
BAND = 0.14  # opacity
MARKED_POINTS = 8
MOST_TICKS = 6


def write_ecdf_figure(panels: Sequence[Curves], title: str, folder: Path, stem: str) -> list[Path]:
    """Write `<stem>.{pdf,svg,png}` into `folder`; returns the paths."""
    return save_figure(ecdf_figure(panels, title), folder, stem)


def ecdf_figure(panels: Sequence[Curves], title: str) -> Figure:
    """One panel per utility family, one curve per method, the noise floor as a grey band.

    Curves are those of curves.pooled_curves; the faint band around each is the
    Dvoretzky-Kiefer-Wolfowitz band of M sampled utilities at 95 % confidence.
    """
    with house_style():
        figure = Figure(figsize=(8.0, 4.2), layout="constrained")
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axis, curves in zip(axes, panels, strict=True):
            _draw_panel(axis, curves)
        axes[0].set_ylabel("Share of utilities with error ≤ $e$")
        figure.suptitle(plain(title), fontsize=11.5, fontweight="bold")
        legend_below(figure, _legend_handles(panels[0]), _note(panels[0]))
    return figure


def _note(curves: Curves) -> str:
    splits = f"mean over {curves.splits} splits" if curves.splits > 1 else "one split"
    return f"{curves.count} sampled utilities per panel, {splits}; curves further left are better."


def _draw_panel(axis: Axes, curves: Curves) -> None:
    if curves.floor is not None:
        _draw_floor(axis, curves.floor)
    for method, errors in curves.errors.items():
        _draw_curve(axis, errors, look(method))
    axis.set_title(PANEL_TITLES[curves.family])
    axis.set_xlabel("Utility calibration error $e$ (units of utility)")
    axis.set_ylim(0, 1.01)
    axis.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    _log_error_axis(axis, curves)


def _draw_floor(axis: Axes, floor: Band) -> None:
    index = thin(len(floor.mean), DRAWN_POINTS)
    height = levels(len(floor.mean))[index]
    low, high = floor.low[index], floor.high[index]
    axis.fill_betweenx(height, low, high, color=FLOOR_FILL, linewidth=0, zorder=1)
    for edge in (low, high):
        axis.plot(edge, height, color=FLOOR_EDGE, linewidth=0.5, zorder=1.1)


def _draw_curve(axis: Axes, errors: Array, style: LineLook) -> None:
    index = thin(len(errors), DRAWN_POINTS)
    x, height = errors[index], levels(len(errors))[index]
    half_width = dkw_band(len(errors), CONFIDENCE)
    # Only where both sides of the band lie within 0..1: the one-sided ends would be long boxes.
    inner = (height >= half_width) & (height <= 1 - half_width)
    below, above = height[inner] - half_width, height[inner] + half_width
    axis.fill_between(x[inner], below, above, color=style.color, alpha=BAND, lw=0, zorder=2)
    every = max(1, len(index) // MARKED_POINTS)
    axis.plot(x, height, zorder=3, marker=style.marker, ms=4, markevery=every, **style.line)


def _log_error_axis(axis: Axes, curves: Curves) -> None:
    """A logarithmic error axis from the foot of the best curve to the head of the worst.

    Errors of good and bad methods differ by a factor of ten and more; on a linear axis the good
    ones, and the noise floor, would share a few millimetres. The foot is the 1 % quantile: a
    sampled utility that is nearly constant has almost no error, and would take decades of axis.
    """
    drawn = list(curves.errors.values())
    if curves.floor is not None:
        drawn += [curves.floor.low, curves.floor.high]
    feet = [float(np.quantile(values[values > 0], 0.01)) for values in drawn if values.any()]
    if not feet:
        return
    axis.set_xscale("log")
    axis.set_xlim(min(feet) / 1.15, max(float(values.max()) for values in drawn) * 1.08)
    plain_log_axis(axis.xaxis, axis.get_xlim(), MOST_TICKS)


def _legend_handles(curves: Curves) -> list[Line2D | Patch]:
    handles: list[Line2D | Patch] = []
    for method in curves.errors:
        style = look(method)
        line = Line2D([], [], marker=style.marker, ms=4, **style.line)
        line.set_label(plain(method_name(method)))
        handles.append(line)
    if curves.floor is not None:
        label = f"Noise floor of {plain(method_name(curves.floor.method))}, 5–95%"
        handles.append(Patch(facecolor=FLOOR_FILL, edgecolor=FLOOR_EDGE, lw=0.5, label=label))
    half_width = 100 * dkw_band(curves.count, CONFIDENCE)
    label = f"95% DKW band (±{half_width:.1f} points)"
    last = look(list(curves.errors)[-1])
    handles.append(Patch(facecolor=last.color, alpha=2 * BAND, linewidth=0, label=label))
    return handles
