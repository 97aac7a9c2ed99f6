"""The figures: eCDFs (section 4), worst utilities, who wins over benchmarks, the decision curve.

Only what draws imports this module, because matplotlib takes half a second to import.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, PercentFormatter

from utility_calibration.metrics.plots.drawing import (
    BAND,
    diagram_figure,
    diagram_handles,
    draw_binned,
    draw_curve,
    draw_floor,
    error_axes,
    floor_handle,
    mark_worst,
    plain,
)
from utility_calibration.metrics.registry import PURPOSES, metric
from utility_calibration.metrics.shown import Curve, UtilityDiagram, WorstInterval, dkw_band

from ..scoring.choice import PRESENT
from ..scoring.inference import CONFIDENCE
from ..scoring.uses import is_own
from .leaderboard import COUNTED, GAINS, Leaderboard
from .looks import CURVE, look
from .names import method_name
from .sections import Curves, Section
from .style import (
    NOTE_COLOR,
    Drawings,
    house_style,
    legend_below,
    titled_figure,
)
from .wording import interval
from .worst import LOSSES, PLAIN, Worst

PANEL_TITLES = {
    "linear": r"Random users paid by class  $\mathcal{U}_{\mathrm{lin}}$",
    "rank": r"Random users paid by rank  $\mathcal{U}_{\mathrm{rank}}$",
}
MARKS = (("o", "#0072B2"), ("s", "#B8860B"), ("^", "#009E73"))
"""Markers and colours of the figure's kinds of numbers (Okabe-Ito)."""
USUAL_PRIOR = "uniform"  # the paper's users, of whom a figure says nothing more
WIDEST = 34  # characters of a line above a panel, beyond which it runs into its neighbour's


def drawings_of(
    section: Section, end: str = "", curve: Mapping[str, Any] | None = None
) -> Drawings:
    """The images of a section by the stems of their files.

    They are the worst place of the present forecast (`present<end>`), the eCDFs (`ecdf<end>`) and
    the worst utilities (`worst<end>_<metric>`).

    Args:
        curve: of scoring/costs.py, drawn as `decision_curve<end>`.
    """
    title = section.spec.title
    key = section.verdict.answer.metric
    present = {}
    if key:
        one = section.worst[key][PRESENT]
        present[f"present{end}"] = partial(place_figure, one, title, key in PLAIN)
    curves = {f"ecdf{end}": partial(ecdf_figure, section.curves, title)} if section.curves else {}
    worst = {
        f"worst{end}_{key}": partial(
            worst_figure,
            group,
            f"{title}: worst of {metric(key).text}",
            "cost" if key == LOSSES else "utility",
        )
        for key, group in section.worst.items()
        if key in PLAIN or is_own(key)
    }
    acting = {f"decision_curve{end}": partial(decision_curve_figure, curve)} if curve else {}
    return {**present, **curves, **worst, **acting}


def svg_files(drawings: Drawings, written: Sequence[Path], end: str = "") -> dict[str, Path]:
    """The SVG of each of `drawings_of` among the files, by its name without `end`."""
    images = [path for path in written if path.suffix == ".svg" and path.stem in drawings]
    return {path.stem.replace(end, "", 1): path for path in images}


def ecdf_figure(panels: Sequence[Curves], title: str) -> Figure:
    """One panel per utility family, one curve per method, the noise floor as a grey band.

    The faint band around a curve is the Dvoretzky-Kiefer-Wolfowitz band of M sampled utilities.
    """
    first = panels[0]
    band, looks = dkw_band(first.count, CONFIDENCE), {m: look(m) for m in first.errors}
    with titled_figure(8.0, 4.2, title) as figure:
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axis, curves in zip(axes, panels, strict=True):
            floor, levels = curves.floor or (), curves.levels
            if curves.floor is not None:
                draw_floor(axis, *curves.floor, levels)
            for method, errors in curves.errors.items():
                style = looks[method]
                gid = CURVE + method_name(method)
                draw_curve(axis, errors, levels, band, marker=style.marker, gid=gid, **style.line)
            axis.set_title(PANEL_TITLES[curves.family])
            error_axes(axis, [*curves.errors.values(), *floor])
        axes[0].set_ylabel("Share of users with error ≤ $e$")
        handles: list[Line2D | Patch] = [
            Line2D([], [], marker=style.marker, ms=4, label=plain(method_name(m)), **style.line)
            for m, style in looks.items()
        ]
        if first.floor is not None:
            floor_name = f"By chance alone, for {plain(method_name(first.floor_of))} (5–95%)"
            handles.append(floor_handle(floor_name))
        label = f"95% band of a curve (±{100 * band:.1f} percentage points)"
        color = list(looks.values())[-1].color
        handles.append(Patch(facecolor=color, alpha=2 * BAND, linewidth=0, label=label))
        splits = f"mean over {first.splits} splits" if first.splits > 1 else "one split"
        batches = f" and over batches of {first.batch:,} cases" if first.batch else ""
        drawn = "" if first.prior == USUAL_PRIOR else f" with {first.prior} payoffs"
        users = f"{first.count} random users{drawn} per panel"
        note = f"{users}, {splits}{batches}; curves further left are better."
        legend_below(figure, handles, note)
    return figure


def place_figure(worst: Worst, title: str, is_probability: bool) -> Figure:
    """The worst place of the present forecast: predicted against realized, and the density below.

    The grey bars are where a calibrated forecast would have the dots. The worst interval is shaded
    between two lines.
    """
    diagram = _diagram(worst)
    density = np.array(worst.diagram["density"], dtype=np.float64)
    edges = np.append(density[:, 0], density[-1, 1])
    color = look(PRESENT).color
    with titled_figure(5.6, 4.6, title) as figure:
        upper, lower = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": [3, 1]})
        draw_binned(upper, (edges[0], edges[-1]), diagram.bins, color=color, ms=4.5)
        upper.set_ylabel("Came true" if is_probability else "Real value")
        lower.stairs(density[:, 2], edges, fill=True, color=NOTE_COLOR)
        lower.set_ylabel("Cases")
        for axis in (upper, lower):
            mark_worst(axis, diagram.worst.low, diagram.worst.high)
        percent = PercentFormatter(1.0, decimals=0)
        lower.yaxis.set_major_formatter(percent)
        if is_probability:
            upper.yaxis.set_major_formatter(percent)
            lower.xaxis.set_major_formatter(percent)
        lower.set_xlabel(plain(_predicted(worst, is_probability)))
        upper.xaxis.set_major_locator(MaxNLocator(6))
        lower.yaxis.set_major_locator(MaxNLocator(3))
        legend_below(figure, diagram_handles(color), "")
    return figure


def _predicted(worst: Worst, is_probability: bool) -> str:
    """What the horizontal axis has."""
    if not is_probability:
        return f"Predicted: {worst.name}"
    name = worst.name
    if name.startswith("class "):
        name = f"“{name.removeprefix('class ')}”"
    return f"Predicted probability of {name}"


def worst_figure(utilities: Mapping[str, Worst], title: str, unit: str = "utility") -> Figure:
    """A panel per method, in the method's colour; `unit`: what is predicted."""
    panels = []
    for method, worst in utilities.items():
        ends = interval(worst.low, worst.high)
        line = f"{worst.name}, {ends}"
        where = line if len(line) <= WIDEST else f"{fill(worst.name, WIDEST)}\n{ends}"
        panels.append((f"{method_name(method)}\n{where}", _diagram(worst)))
    with house_style():
        colors = [look(method).color for method in utilities]
        figure = diagram_figure(panels, title, colors, unit)
        handles = diagram_handles(NOTE_COLOR)
        handles.append(Line2D([], [], color=NOTE_COLOR, lw=1.4, label="running difference"))
        legend_below(figure, handles, "")
    return figure


def _diagram(worst: Worst) -> UtilityDiagram:
    """The rounded numbers of a record as the diagram they were; None becomes NaN."""
    drawn = {key: np.array(values, dtype=np.float64) for key, values in worst.diagram.items()}
    running = Curve(drawn["at"], drawn["curve"], drawn["low"], drawn["high"])
    ends = WorstInterval(worst.error, worst.low, worst.high, int(np.sign(worst.gap)))
    return UtilityDiagram(running, Curve(*drawn["bins"].T), ends, worst.share, worst.gap)


def leaderboard_figure(leaderboard: Leaderboard) -> Figure:
    """Methods from best to worst: lost cells, purposes within noise, savings."""
    frame, benchmarks = leaderboard.frame.iloc[::-1], leaderboard.benchmarks
    within = {PURPOSES[k]: frame[f"within_{k}"] for k in COUNTED if f"within_{k}" in frame}
    saved = {metric(k).text: 100 * frame[f"{k}_saved"] for k in GAINS if f"{k}_saved" in frame}
    with titled_figure(8.0, 1.3 + 0.26 * len(frame)) as figure:
        worse, noise, gains = figure.subplots(1, 3, sharey=True)
        place, names = np.arange(len(frame)), map(method_name, frame["method"])
        worse.barh(place, frame["worse"], height=0.6, color=NOTE_COLOR)
        worse.set(title=f"Worse than the best,\nof {frame['cells'].max()} cells", xlim=(0, None))
        worse.set_yticks(place, list(map(plain, names)))
        worse.grid(visible=False, axis="y")
        for axes, columns in ((noise, within), (gains, saved)):
            # A kind of marker per column, side by side on each method's line.
            for number, (text, values) in enumerate(columns.items()):
                marker, color = MARKS[number]
                beside = place + 0.22 * ((len(columns) - 1) / 2 - number)
                shape: dict[str, Any] = {"s": 22, "marker": marker, "color": color, "zorder": 3}
                axes.scatter(values, beside, label=plain(text), **shape)
            if columns:
                axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=1)
        noise.set(title=f"Within noise,\nof {benchmarks} benchmarks", xticks=range(benchmarks + 1))
        noise.set_xlim(-0.3, benchmarks + 0.3)
        gains.axvline(0, color=NOTE_COLOR, linewidth=0.8)
        gains.set_title("Saved against uncalibrated,\n% on average")
    return figure


def decision_curve_figure(curve: Mapping[str, Any]) -> Figure:
    """Net benefit by threshold (Vickers & Elkin 2006); a line marks that of the user's losses."""
    thresholds, handles = curve["thresholds"], []
    with titled_figure(5.2, 3.8) as figure:
        axes = figure.subplots()
        axes.plot(thresholds, curve["always"], color=NOTE_COLOR, linewidth=1)
        axes.axhline(0, color=NOTE_COLOR, linewidth=1, linestyle=(0, (4, 2)))
        for method, values in curve["methods"].items():
            style = look(method)
            axes.plot(thresholds, values, **style.line)
            handles.append(Line2D([], [], label=plain(method_name(method)), **style.line))
        handles.append(Line2D([], [], color=NOTE_COLOR, lw=1, label="act always"))
        handles.append(Line2D([], [], color=NOTE_COLOR, lw=1, ls=(0, (4, 2)), label="never act"))
        if curve["own_threshold"] is not None:
            axes.axvline(curve["own_threshold"], color=NOTE_COLOR, linewidth=0.8, linestyle=":")
            axes.annotate(
                "these losses", (curve["own_threshold"], 0.98), xycoords=("data", "axes fraction"),
                xytext=(3, 0), textcoords="offset points", va="top", color=NOTE_COLOR,
            )  # fmt: skip
        best = max(max(values) for values in [curve["always"], *curve["methods"].values()])
        axes.set(xlim=(0, 1), ylim=(-0.25 * max(best, 0.01), 1.08 * max(best, 0.01)))
        axes.set_xlabel(f"Threshold: act on {plain(curve['event'])} where its probability exceeds")
        axes.set_ylabel("Net benefit, share of cases")
        legend_below(figure, handles, "Higher is better.")
    return figure
