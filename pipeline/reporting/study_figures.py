"""The figures of the appendix's study of aligned and misaligned users."""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from utility_calibration.metrics.plots.drawing import FLOOR_EDGE, FLOOR_FILL, plain_log_axis

from ..harness.artifacts import read_json
from .style import NOTE_COLOR, Drawings, legend_below, titled_figure
from .wording import short

Array = NDArray[np.float64]

STUDY_COLORS = {"aligned": "#0072B2", "misaligned": "#D55E00"}
STUDY_WIDTH = 1.8
STUDY_BAND: Any = {"alpha": 0.28, "lw": 0}
FLOORS: dict[str, Any] = {
    "": {"facecolor": FLOOR_FILL, "lw": 0, "zorder": 0.5},
    "///": {"facecolor": "none", "edgecolor": FLOOR_EDGE, "hatch": "///", "lw": 0.6, "zorder": 0.6},
}
"""Of calibration points, and of held-out ones, by their hatch."""
STUDY_BINS = 120  # of an axis from the smallest to the largest error of all iterations


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
                floor = study.record[key]
                if floor:
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
    text = f"{count} users sampled anew in every iteration"
    for study in studies:
        different = study.record["different_users"]
        if different < count:
            text += f"; of the {study.family} ones {different} differ"
    return f"{text}."


def medians_of(study: Study) -> dict[int, float]:
    """The median error over the users by iteration."""
    by_iteration = study.snapshots.groupby("iteration")["error"].median()
    return dict(zip(by_iteration.index.tolist(), by_iteration.tolist(), strict=True))


def rises_of(studies: Sequence[Study]) -> list[str]:
    """A sentence for every step from a snapshot to the next one in which a median error rises."""
    sentences = []
    for study in studies:
        steps = pairwise(medians_of(study).items())
        for (before, low), (after, high) in steps:
            if high > low:
                sentences.append(
                    f"The median of the {study.family} users rises from {short(low, 3)} at "
                    f"iteration {before} to {short(high, 3)} at {after}."
                )
    return sentences


def snapshot_figure(studies: Sequence[Study], title: str) -> Figure:
    """Histograms of all users' errors in selected iterations, one above the other.

    All panels share one logarithmic axis, so that the shift from one to the next is seen. The
    medians are printed, because the users of an iteration differ by a few per cent only.
    """
    numbers = sorted({number for study in studies for number in medians_of(study)})
    every = np.concatenate([study.snapshots["error"].to_numpy() for study in studies])
    smallest = every[every > 0].min(initial=every.max())
    bins = np.geomspace(0.95 * smallest, 1.05 * every.max(), STUDY_BINS + 1)
    with titled_figure(6.4, 1.4 + 0.95 * len(numbers), title) as figure:
        column = figure.subplots(len(numbers), 1, sharex=True, squeeze=False)[:, 0]
        for axis, number in zip(column, numbers, strict=True):
            _draw_snapshot(axis, studies, number, bins)
        last = column[-1]
        last.set_xscale("log")
        last.set_xlim(bins[0], bins[-1])
        plain_log_axis(last.xaxis, last.get_xlim(), 8)
        last.set_xlabel("Utility calibration error")
        figure.supylabel("Share of users", fontsize=9)
        handles: list[Any] = [
            Patch(label=f"{study.family.capitalize()}, with the median", **filling_of(study))
            for study in studies
        ]
        split = studies[0].record["split"]
        lines = [f"{users_of(studies)} Split {split} alone.", *rises_of(studies)]
        legend_below(figure, handles, "\n".join(lines))
    return figure


def _draw_snapshot(axis: Axes, studies: Sequence[Study], number: int, bins: Array) -> None:
    """The histogram of one iteration, with each family's median as a line and as a number."""
    texts = []
    for study in studies:
        table = study.snapshots
        errors = table.loc[table["iteration"] == number, "error"].to_numpy()
        if not len(errors):
            continue
        shares = np.histogram(errors, bins)[0] / len(errors)
        axis.stairs(shares, bins, fill=True, lw=0.9, zorder=2, **filling_of(study))
        median = medians_of(study)[number]
        axis.axvline(median, color=study.color, lw=1.4, zorder=3)
        texts.append((f"{study.family} {short(median, 3)}", study.color))
    for place, (text, color) in enumerate(texts):
        at: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
        axis.annotate(text, (1, 1), (4, -10 - 12 * place), color=color, fontsize=8.5, **at)
    axis.yaxis.set_major_locator(MaxNLocator(2))
    axis.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    name = f"Iteration {number}" if number else "Before patching"
    axis.set_title(name, loc="left", fontsize=9, pad=3)


def filling_of(study: Study) -> dict[str, Any]:
    """How the histogram of a family is filled; hatched, so that both are told apart in print."""
    hatch = "////" if study.family == "misaligned" else ""
    return {"facecolor": (study.color, 0.35), "edgecolor": study.color, "hatch": hatch}
