"""The figures of the appendix's study of aligned and misaligned users."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, PercentFormatter

from utility_calibration.metrics.plots.drawing import plain_log_axis

from ..harness.artifacts import read_json
from .style import FLOOR_EDGE, FLOOR_FILL, NOTE_COLOR, Drawings, legend_below, titled_figure

STUDY_COLORS = {"aligned": "#0072B2", "misaligned": "#D55E00"}
STUDY_WIDTH = 1.8
STUDY_BAND: Any = {"alpha": 0.28, "lw": 0}
FLOORS: dict[str, Any] = {
    "": {"facecolor": FLOOR_FILL, "lw": 0, "zorder": 0.5},
    "///": {"facecolor": "none", "edgecolor": FLOOR_EDGE, "hatch": "///", "lw": 0.6, "zorder": 0.6},
}
"""Of calibration points, and of held-out ones, by their hatch."""
STUDY_BINS, STUDY_COLUMNS = 24, 3


class Study(NamedTuple):
    """What the dynamics stage wrote for one family of users."""

    family: str
    history: pd.DataFrame
    snapshots: pd.DataFrame
    record: Mapping[str, Any]

    @property
    def color(self) -> str:
        """Of its curves."""
        return STUDY_COLORS[self.family]


def study_drawings(folder: Path, title: str) -> Drawings:
    """The figures of the study of one benchmark; none where the dynamics stage did not run it."""
    studies = []
    for path in sorted(folder.glob("*/dynamics.json")):
        names = ("history", "snapshots")
        history, snapshots = (pd.read_csv(path.with_name(f"{name}.csv")) for name in names)
        studies.append(Study(path.parent.name, history, snapshots, read_json(path)))
    figures = {"history": history_figure, "snapshots": snapshot_figure} if studies else {}
    drawn = {kind: partial(figure, studies, title) for kind, figure in figures.items()}
    return {f"dynamics_{kind}_{folder.name}": draw for kind, draw in drawn.items()}


def history_figure(studies: Sequence[Study], title: str) -> Figure:
    """A panel per family: the worst user's UC on calibration and held-out points per iteration.

    Lines are means over splits, bands around them the range. Grey bands are the worst user's place
    if the forecast were calibrated, for as many points each.
    """
    record, splits = studies[0].record, studies[0].history["split"].nunique()
    curves = {
        "worst": ("worst_noise_floor", f"{record['n']:,} calibration points", "-", ""),
        "held_out": (
            "worst_noise_floor_held_out",
            f"{record['n_held_out']:,} held-out points",
            "--",
            "///",
        ),
    }
    handles: list[Line2D | Patch] = []
    with titled_figure(0.4 + 3.8 * len(studies), 3.9, title) as figure:
        axes = figure.subplots(1, len(studies), sharex=True, sharey=True, squeeze=False)[0]
        for axis, study in zip(axes, studies, strict=True):
            for column, (key, _, line, hatch) in curves.items():
                errors = study.history.groupby("iteration")[column].agg(["mean", "min", "max"])
                at, (mean, low, high) = errors.index, (errors[name] for name in errors)
                axis.plot(at, mean, color=study.color, lw=STUDY_WIDTH, ls=line, zorder=3)
                if splits > 1:
                    axis.fill_between(at, low, high, color=study.color, **STUDY_BAND)
                if floor := study.record[key]:
                    axis.axhspan(floor["q05"], floor["q95"], **FLOORS[hatch])
            axis.set_title(f"{study.family.capitalize()} users")
            axis.set_xlabel("Iteration (patches so far)")
        axes[0].set_xlim(0, max(study.history["iteration"].max() for study in studies))
        axes[0].xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes[0].set_ylabel("Utility calibration error\nof the worst user")
        axes[0].set_yscale("log")
        plain_log_axis(axes[0].yaxis, axes[0].get_ylim(), 8)
        for key, points, line, hatch in curves.values():
            handles.append(Line2D([], [], color=NOTE_COLOR, lw=STUDY_WIDTH, ls=line, label=points))
            if any(study.record[key] for study in studies):
                handles.append(Patch(**FLOORS[hatch], label="If calibrated"))
        over = f"Mean and range over {splits} splits" if splits > 1 else "One split"
        legend_below(figure, handles, f"{users_of(studies)}\n{over}; grey bands are 5–95%.")
    return figure


def users_of(studies: Sequence[Study]) -> str:
    """How many users are sampled, and how many of them differ."""
    count = studies[0].record["config"]["utilities"]
    few = [s for s in studies if s.record["different_users"] < count]
    told = "".join(f"; of the {s.family} ones {s.record['different_users']} differ" for s in few)
    return f"{count} users sampled anew in every iteration{told}."


def snapshot_figure(studies: Sequence[Study], title: str) -> Figure:
    """Histograms of all users' errors in selected iterations, on an axis of their own each.

    Errors fall by a factor of twenty while the users differ by a few per cent.
    """
    numbers = sorted({int(k) for study in studies for k in study.snapshots["iteration"]})
    columns = min(STUDY_COLUMNS, len(numbers))
    rows = -(-len(numbers) // columns)
    fillings: list[dict[str, Any]] = [
        {
            "facecolor": (study.color, 0.35),
            "edgecolor": study.color,
            "hatch": "////" if study.family == "misaligned" else "",
        }
        for study in studies
    ]
    with titled_figure(0.4 + 2.7 * columns, 0.9 + 1.9 * rows, title) as figure:
        grid = figure.subplots(rows, columns, squeeze=False)
        for axis, number in zip(grid.flat, numbers, strict=False):
            tables = [study.snapshots for study in studies]
            errors = [t.loc[t["iteration"] == number, "error"].to_numpy() for t in tables]
            low, high = np.concatenate(errors).min(), np.concatenate(errors).max()
            margin = max(0.03 * (high - low), 1e-3 * high, 1e-9)
            bins = np.linspace(low - margin, high + margin, STUDY_BINS + 1)
            for study, values, filling in zip(studies, errors, fillings, strict=True):
                if len(values):
                    shares = np.histogram(values, bins)[0] / len(values)
                    axis.stairs(shares, bins, fill=True, lw=0.9, zorder=2, **filling)
                    axis.axvline(float(np.median(values)), color=study.color, lw=1.4, zorder=3)
            axis.set_xlim(bins[0], bins[-1])
            axis.xaxis.set_major_locator(MaxNLocator(4))
            axis.yaxis.set_major_locator(MaxNLocator(4))
            axis.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
            axis.set_title(f"Iteration {number}" if number else "Before patching")
        for axis in list(grid.flat)[len(numbers) :]:
            axis.set_visible(False)
        for axis in grid[:, 0]:
            axis.set_ylabel("Share of users")
        for axis in grid[-1]:
            axis.set_xlabel("Utility calibration error")
        named = zip(studies, fillings, strict=True)
        handles: list[Any] = [Patch(**how, label=s.family.capitalize()) for s, how in named]
        handles.append(Line2D([], [], color=NOTE_COLOR, lw=1.4, label="Median"))
        note = (
            f"{users_of(studies)}\nEach panel has its own error axis, from the least to the most "
            "affected user."
        )
        legend_below(figure, handles, note)
    return figure
