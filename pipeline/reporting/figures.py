"""The eCDF figure of one benchmark: linear and rank-based utilities side by side (section 4)."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from metrics.ecdf import dkw_band, levels, thin
from metrics.plots.axes import plain
from metrics.plots.ecdf import BAND, DRAWN_POINTS, draw_curve, error_axes
from pipeline.reporting.curves import Band, Curves
from pipeline.reporting.names import method_name
from pipeline.reporting.style import (
    FLOOR_EDGE,
    FLOOR_FILL,
    house_style,
    legend_below,
    look,
)

PANEL_TITLES = {
    "linear": r"Linear utilities  $\mathcal{U}_{\mathrm{lin}}$",
    "rank": r"Rank-based utilities  $\mathcal{U}_{\mathrm{rank}}$",
}
CONFIDENCE = 0.95


def ecdf_figure(panels: Sequence[Curves], title: str) -> Figure:
    """One panel per utility family, one curve per method, the noise floor as a grey band.

    Curves are those of curves.all_curves; the faint band around each is the
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
    batches = f" and over batches of {curves.batch:,} points" if curves.batch else ""
    users = f"{curves.count} sampled utilities per panel"
    return f"{users}, {splits}{batches}; curves further left are better."


def _draw_panel(axis: Axes, curves: Curves) -> None:
    if curves.floor is not None:
        _draw_floor(axis, curves.floor)
    for method, errors in curves.errors.items():
        style = look(method)
        draw_curve(axis, errors, CONFIDENCE, marker=style.marker, **style.line)
    axis.set_title(PANEL_TITLES[curves.family])
    floor = [] if curves.floor is None else [curves.floor.low, curves.floor.high]
    error_axes(axis, [*curves.errors.values(), *floor])


def _draw_floor(axis: Axes, floor: Band) -> None:
    index = thin(len(floor.low), DRAWN_POINTS)
    height = levels(len(floor.low))[index]
    low, high = floor.low[index], floor.high[index]
    axis.fill_betweenx(height, low, high, color=FLOOR_FILL, linewidth=0, zorder=1)
    for edge in (low, high):
        axis.plot(edge, height, color=FLOOR_EDGE, linewidth=0.5, zorder=1.1)


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
