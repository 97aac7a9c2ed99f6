"""The figures of the appendix study: how the errors of sampled users fall from patch to patch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, PercentFormatter

from metrics.plots.ecdf import plain, plain_log_axis
from pipeline.harness.artifacts import read_json
from pipeline.reporting.style import (
    FLOOR_EDGE,
    FLOOR_FILL,
    NOTE_COLOR,
    Drawings,
    house_style,
    legend_below,
)

COLORS = {"aligned": "#0072B2", "misaligned": "#D55E00"}
HATCHES = {"aligned": "", "misaligned": "////"}
WIDTH = 1.8
BAND: Any = {"alpha": 0.28, "lw": 0}
OTHER_FAMILY: Any = {"color": "#9A9A9A", "lw": 0.9}
BINS = 24
COLUMNS = 3


class FamilyResult(NamedTuple):
    """What the dynamics stage wrote for one family, and how it is drawn."""

    name: str
    color: str
    hatch: str
    history: pd.DataFrame
    snapshots: pd.DataFrame
    record: Mapping[str, Any]

    @classmethod
    def read(cls, family: str, folder: Path) -> FamilyResult:
        """Read one family's results."""
        history, snapshots = (pd.read_csv(folder / f"{n}.csv") for n in ("history", "snapshots"))
        record = read_json(folder / "dynamics.json")
        look = family.capitalize(), COLORS[family], HATCHES[family]
        return cls(*look, history, snapshots, record)

    @property
    def filling(self) -> dict[str, Any]:
        """How the family's histogram is filled."""
        return {"facecolor": (self.color, 0.35), "edgecolor": self.color, "hatch": self.hatch}


def dynamics_drawings(folders: Mapping[str, Path], title: str, benchmark: str) -> Drawings:
    """History and snapshots of one benchmark, from the folders of its families."""
    results = [FamilyResult.read(family, folder) for family, folder in folders.items()]
    return {
        f"dynamics_history_{benchmark}": partial(history_figure, results, title),
        f"dynamics_snapshots_{benchmark}": partial(snapshot_figure, results, title),
    }


def history_figure(results: Sequence[FamilyResult], title: str) -> Figure:
    """A panel per family: the worst user's UC per iteration, over the spread of all users' errors.

    The other family's worst user is a thin grey line, the noise floor a grey band: where the worst
    user of a calibrated forecast would be.
    """
    with house_style():
        figure = Figure(figsize=(0.4 + 3.8 * len(results), 3.9), layout="constrained")
        axes = figure.subplots(1, len(results), sharex=True, sharey=True, squeeze=False)[0]
        for axis, result in zip(axes, results, strict=True):
            for other in results:
                if other is not result:
                    axis.plot(other.history["iteration"], other.history["worst"], **OTHER_FAMILY)
            _draw_history(axis, result)
            axis.set_title(f"{result.name} users")
            axis.set_xlabel("Iteration (patches so far)")
        axes[0].set_xlim(0, max(result.history["iteration"].max() for result in results))
        axes[0].xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes[0].set_ylabel("Utility calibration error")
        axes[0].set_yscale("log")
        plain_log_axis(axes[0].yaxis, axes[0].get_ylim(), 8)
        figure.suptitle(plain(title), fontsize=11.5, fontweight="bold")
        record = results[0].record
        note = (
            f"{record['config']['utilities']} users sampled anew in every iteration; "
            f"{record['n']:,} calibration points.\n"
            "Aligned users tolerate hardly any error; misaligned ones each care for one part of "
            "the labels."
        )
        legend_below(figure, _history_handles(results), note)
    return figure


def _draw_history(axis: Axes, result: FamilyResult) -> None:
    color, table = result.color, result.history
    if floor := result.record["worst_noise_floor"]:
        axis.axhspan(floor["q05"], floor["q95"], color=FLOOR_FILL, lw=0, zorder=0.5)
        axis.axhline(floor["mean"], color=FLOOR_EDGE, lw=0.8, ls=(0, (4, 2)), zorder=0.6)
    axis.fill_between(table["iteration"], table["q05"], table["q95"], color=color, **BAND)
    axis.plot(table["iteration"], table["worst"], color=color, lw=WIDTH, zorder=3)


def _history_handles(results: Sequence[FamilyResult]) -> list[Line2D | Patch]:
    handles: list[Line2D | Patch] = []
    for result in results:
        color, name = result.color, result.name
        handles.append(Line2D([], [], color=color, lw=WIDTH, label=f"{name}: worst user"))
        handles.append(Patch(facecolor=color, **BAND, label=f"{name}: 5–95% of users"))
    if len(results) > 1:
        handles.append(Line2D([], [], **OTHER_FAMILY, label="Worst user of the other family"))
    if any(result.record["worst_noise_floor"] for result in results):
        label = "Worst user if calibrated, 5–95% and mean"
        handles.append(Patch(facecolor=FLOOR_FILL, edgecolor=FLOOR_EDGE, lw=0.8, label=label))
    return handles


def snapshot_figure(results: Sequence[FamilyResult], title: str) -> Figure:
    """Histograms of all users' errors, both families in a panel per selected iteration.

    Each panel has an error axis of its own: errors fall by a factor of twenty while the users
    differ by a few per cent.
    """
    numbers = sorted({int(k) for result in results for k in result.snapshots["iteration"]})
    columns = min(COLUMNS, len(numbers))
    rows = -(-len(numbers) // columns)
    with house_style():
        figure = Figure(figsize=(0.4 + 2.7 * columns, 0.9 + 1.9 * rows), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False)
        for axis, number in zip(grid.flat, numbers, strict=False):
            _draw_snapshot(axis, results, number)
        for axis in list(grid.flat)[len(numbers) :]:
            axis.set_visible(False)
        for axis in grid[:, 0]:
            axis.set_ylabel("Share of users")
        for axis in grid[-1]:
            axis.set_xlabel("Utility calibration error")
        figure.suptitle(plain(title), fontsize=11.5, fontweight="bold")
        handles: list[Any] = [Patch(**result.filling, label=result.name) for result in results]
        handles.append(Line2D([], [], color=NOTE_COLOR, lw=1.4, label="Median"))
        note = "Each panel has its own error axis, from the least to the most affected user."
        legend_below(figure, handles, note)
    return figure


def _draw_snapshot(axis: Axes, results: Sequence[FamilyResult], number: int) -> None:
    tables = [result.snapshots for result in results]
    errors = [table.loc[table["iteration"] == number, "error"].to_numpy() for table in tables]
    low, high = np.concatenate(errors).min(), np.concatenate(errors).max()
    margin = max(0.03 * (high - low), 1e-3 * high, 1e-9)
    bins = np.linspace(low - margin, high + margin, BINS + 1)
    for result, values in zip(results, errors, strict=True):
        if len(values):
            shares = np.histogram(values, bins)[0] / len(values)
            axis.stairs(shares, bins, fill=True, lw=0.9, zorder=2, **result.filling)
            axis.axvline(float(np.median(values)), color=result.color, lw=1.4, zorder=3)
    axis.set_xlim(bins[0], bins[-1])
    axis.xaxis.set_major_locator(MaxNLocator(4))
    axis.yaxis.set_major_locator(MaxNLocator(4))
    axis.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axis.set_title(f"Iteration {number}" if number else "Before patching")
