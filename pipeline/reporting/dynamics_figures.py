"""The figures of the appendix study: how the errors of sampled users fall from patch to patch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, PercentFormatter

from metrics.plots.axes import plain, plain_log_axis
from pipeline.harness.artifacts import read_json
from pipeline.reporting.drawings import Drawing
from pipeline.reporting.style import (
    FLOOR_EDGE,
    FLOOR_FILL,
    NOTE_COLOR,
    LineLook,
    house_style,
    legend_below,
)

FAMILY_LOOKS = {
    "aligned": LineLook("#0072B2", "solid", 1.8),
    "misaligned": LineLook("#D55E00", (0, (5, 1.5)), 1.8),
}
HATCHES = {"aligned": "", "misaligned": "////"}
BINS = 24
COLUMNS = 3
OTHER_FAMILY = "#9A9A9A"


@dataclass(frozen=True)
class FamilyResult:
    """What the dynamics stage wrote for one family."""

    family: str
    history: pd.DataFrame
    snapshots: pd.DataFrame
    record: Mapping[str, Any]


def read_family(family: str, folder: Path) -> FamilyResult:
    """Read one family's results."""
    history, snapshots = (pd.read_csv(folder / f"{n}.csv") for n in ("history", "snapshots"))
    return FamilyResult(family, history, snapshots, read_json(folder / "dynamics.json"))


def dynamics_drawings(
    folders: Mapping[str, Path], title: str, target: Path, benchmark: str
) -> list[Drawing]:
    """History and snapshots of one benchmark, from the folders of its families."""
    results = [read_family(family, folder) for family, folder in folders.items()]
    return [
        Drawing(partial(make, results, title), target, f"dynamics_{kind}_{benchmark}")
        for kind, make in (("history", history_figure), ("snapshots", snapshot_figure))
    ]


def history_figure(results: Sequence[FamilyResult], title: str) -> Figure:
    """A panel per family: the worst user's UC per iteration, over the spread of all users' errors.

    The other family's worst user is a thin grey line, the noise floor a grey band: where the worst
    user of a calibrated forecast would be.
    """
    with house_style():
        figure = Figure(figsize=(0.4 + 3.8 * len(results), 3.9), layout="constrained")
        axes = figure.subplots(1, len(results), sharex=True, sharey=True, squeeze=False)[0]
        for axis, result in zip(axes, results, strict=True):
            _draw_floor(axis, result)
            for other in results:
                if other is not result:
                    table = other.history
                    axis.plot(table["iteration"], table["worst"], color=OTHER_FAMILY, lw=0.9)
            _draw_history(axis, result)
            axis.set_title(f"{result.family.capitalize()} users")
            axis.set_xlabel("Iteration (patches so far)")
        _history_axes(axes, results)
        figure.suptitle(plain(title), fontsize=11.5, fontweight="bold")
        legend_below(figure, _history_handles(results), _note(results[0].record))
    return figure


def _note(record: Mapping[str, Any]) -> str:
    count = record["config"]["utilities"]
    return (
        f"{count} users sampled anew in every iteration; {record['n']:,} calibration points.\n"
        "Aligned users tolerate hardly any error; misaligned ones each care for one part of the "
        "labels."
    )


def _draw_history(axis: Axes, result: FamilyResult) -> None:
    style, table = FAMILY_LOOKS[result.family], result.history
    number = table["iteration"]
    axis.fill_between(number, table["q05"], table["q95"], color=style.color, alpha=0.28, lw=0)
    axis.plot(number, table["worst"], color=style.color, lw=style.width, zorder=3)


def _draw_floor(axis: Axes, result: FamilyResult) -> None:
    floor = result.record["worst_noise_floor"]
    if floor:
        axis.axhspan(floor["q05"], floor["q95"], color=FLOOR_FILL, lw=0, zorder=0.5)
        axis.axhline(floor["mean"], color=FLOOR_EDGE, lw=0.8, ls=(0, (4, 2)), zorder=0.6)


def _history_axes(axes: Sequence[Axes], results: Sequence[FamilyResult]) -> None:
    last = max(int(result.history["iteration"].max()) for result in results)
    axes[0].set_xlim(0, max(last, 1))
    axes[0].xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes[0].set_ylabel("Utility calibration error")
    if any((result.history["worst"] > 0).any() for result in results):
        axes[0].set_yscale("log")
        plain_log_axis(axes[0].yaxis, axes[0].get_ylim(), 8)


def _history_handles(results: Sequence[FamilyResult]) -> list[Line2D | Patch]:
    looks = [FAMILY_LOOKS[result.family] for result in results]
    handles: list[Line2D | Patch] = []
    for result, style in zip(results, looks, strict=True):
        name = result.family.capitalize()
        line = Line2D([], [], color=style.color, lw=style.width, label=f"{name}: worst user")
        band = Patch(facecolor=style.color, alpha=0.28, lw=0, label=f"{name}: 5–95% of users")
        handles += [line, band]
    if len(results) > 1:
        label = "Worst user of the other family"
        handles.append(Line2D([], [], color=OTHER_FAMILY, lw=0.9, label=label))
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
        handles = [_filled(result.family, f"{result.family.capitalize()}") for result in results]
        handles.append(Line2D([], [], color=NOTE_COLOR, lw=1.4, label="Median"))
        note = "Each panel has its own error axis, from the least to the most affected user."
        legend_below(figure, handles, note)
    return figure


def _filled(family: str, label: str) -> Any:
    color = FAMILY_LOOKS[family].color
    return Patch(facecolor=(color, 0.35), edgecolor=color, hatch=HATCHES[family], label=label)


def _draw_snapshot(axis: Axes, results: Sequence[FamilyResult], number: int) -> None:
    errors = {result.family: _errors_at(result, number) for result in results}
    everyone = np.concatenate(list(errors.values()))
    low, high = float(everyone.min()), float(everyone.max())
    margin = max(0.03 * (high - low), 1e-3 * high, 1e-9)
    bins = np.linspace(low - margin, high + margin, BINS + 1)
    for family, values in errors.items():
        color = FAMILY_LOOKS[family].color
        shares = np.histogram(values, bins)[0] / max(len(values), 1)
        look: Any = {"facecolor": (color, 0.35), "edgecolor": color, "hatch": HATCHES[family]}
        axis.stairs(shares, bins, fill=True, lw=0.9, zorder=2, **look)
        if len(values):
            axis.axvline(float(np.median(values)), color=color, lw=1.4, zorder=3)
    axis.set_xlim(bins[0], bins[-1])
    axis.xaxis.set_major_locator(MaxNLocator(4))
    axis.yaxis.set_major_locator(MaxNLocator(4))
    axis.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axis.set_title(f"Iteration {number}" if number else "Before patching")


def _errors_at(result: FamilyResult, number: int) -> Any:
    table = result.snapshots
    return table.loc[table["iteration"] == number, "error"].to_numpy()
