"""The figures of a section: its eCDFs (section 4), and the diagrams of its worst utilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from metrics.diagram import Bins, UtilityDiagram
from metrics.ecdf import dkw_band
from metrics.plots.ecdf import BAND, draw_curve, error_axes, plain
from metrics.plots.utility import diagram_figure
from metrics.registry import metric
from metrics.utility_calibration import WorstInterval
from pipeline.reporting.names import method_name
from pipeline.reporting.sections import Curves, Section, Worst
from pipeline.reporting.style import (
    FLOOR_EDGE,
    FLOOR_FILL,
    Drawings,
    house_style,
    legend_below,
    look,
)
from pipeline.reporting.wording import interval
from pipeline.scoring.choice import is_own

PANEL_TITLES = {
    "linear": r"Linear utilities  $\mathcal{U}_{\mathrm{lin}}$",
    "rank": r"Rank-based utilities  $\mathcal{U}_{\mathrm{rank}}$",
}
CONFIDENCE = 0.95
STANDARD = ("u_cwe", "u_topk")
"""The classes of utilities whose worst one has a figure; own utilities have one, too."""
WIDEST = 34
"""Characters of a line above a panel, beyond which it runs into its neighbour's."""


def drawings_of(section: Section, end: str = "") -> Drawings:
    """The eCDFs (`ecdf<end>`) and the worst utilities (`worst<end>_<metric>`) as images."""
    title = section.spec.title
    curves = {f"ecdf{end}": partial(ecdf_figure, section.curves, title)} if section.curves else {}
    worst = {
        f"worst{end}_{key}": partial(worst_figure, group, f"{title}: worst of {metric(key).text}")
        for key, group in section.worst.items()
        if key in STANDARD or is_own(key)
    }
    return {**curves, **worst}


def ecdf_figure(panels: Sequence[Curves], title: str) -> Figure:
    """One panel per utility family, one curve per method, the noise floor as a grey band.

    Curves are those of sections.all_curves; the faint band around each is the
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
    floor, levels = curves.floor or (), curves.levels
    if curves.floor is not None:
        axis.fill_betweenx(levels, *curves.floor, color=FLOOR_FILL, linewidth=0, zorder=1)
    for edge in floor:
        axis.plot(edge, levels, color=FLOOR_EDGE, linewidth=0.5, zorder=1.1)
    band = dkw_band(curves.count, CONFIDENCE)
    for method, errors in curves.errors.items():
        style = look(method)
        draw_curve(axis, errors, levels, band, marker=style.marker, **style.line)
    axis.set_title(PANEL_TITLES[curves.family])
    error_axes(axis, [*curves.errors.values(), *floor])


def _legend_handles(curves: Curves) -> list[Line2D | Patch]:
    handles: list[Line2D | Patch] = []
    for method in curves.errors:
        style = look(method)
        line = Line2D([], [], marker=style.marker, ms=4, **style.line)
        line.set_label(plain(method_name(method)))
        handles.append(line)
    if curves.floor is not None:
        label = f"Noise floor of {plain(method_name(curves.floor_of))}, 5–95%"
        handles.append(Patch(facecolor=FLOOR_FILL, edgecolor=FLOOR_EDGE, lw=0.5, label=label))
    half_width = 100 * dkw_band(curves.count, CONFIDENCE)
    label = f"95% DKW band (±{half_width:.1f} points)"
    last = look(list(curves.errors)[-1])
    handles.append(Patch(facecolor=last.color, alpha=2 * BAND, linewidth=0, label=label))
    return handles


def worst_figure(utilities: Mapping[str, Worst], title: str) -> Figure:
    """A panel per method, in the method's colour."""
    panels = [(_heading(method, worst), _diagram(worst)) for method, worst in utilities.items()]
    with house_style():
        return diagram_figure(panels, title, [look(method).color for method in utilities])


def _heading(method: str, worst: Worst) -> str:
    ends = interval(worst.low, worst.high)
    line = f"{worst.name}, {ends}"
    where = line if len(line) <= WIDEST else f"{fill(worst.name, WIDEST)}\n{ends}"
    return f"{method_name(method)}\n{where}"


def _diagram(worst: Worst) -> UtilityDiagram:
    """The rounded numbers of a record as the diagram they were."""
    bins = [_array(column) for column in zip(*worst.diagram["bins"], strict=True)]
    sign = int(np.sign(worst.gap))
    return UtilityDiagram(
        predicted=_array(worst.diagram["at"]),
        difference=_array(worst.diagram["curve"]),
        low=_array(worst.diagram["low"]),
        high=_array(worst.diagram["high"]),
        bins=Bins(*bins),
        worst=WorstInterval(worst.error, worst.low, worst.high, sign),
        share=worst.share,
        gap=worst.gap,
        floor=worst.floor,
        n=0,
    )


def _array(values: Any) -> Any:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
