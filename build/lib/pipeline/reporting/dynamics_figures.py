"""The figures of the appendix study: how the errors of sampled users fall from patch to patch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, PercentFormatter

from pipeline.harness.artifacts import read_json
from pipeline.reporting.style import (
    FLOOR_EDGE,
    NOTE_COLOR,
    LineLook,
    house_style,
    save_figure,
)

FAMILY_LOOKS = {
    "aligned": LineLook("#0072B2", "solid", 1.8),
    "misaligned": LineLook("#D55E00", (0, (5, 1.5)), 1.8),
}
BINS_PER_DECADE = 50


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


def write_dynamics_figures(
    folders: Mapping[str, Path], title: str, target: Path, benchmark: str
) -> list[Path]:
    """Draw history and snapshots of one benchmark; returns the paths of all files written."""
    results = [read_family(family, folder) for family, folder in folders.items()]
    written = save_figure(history_figure(results, title), target, f"dynamics_history_{benchmark}")
    figure = snapshot_figure(results, title)
    return written + save_figure(figure, target, f"dynamics_snapshots_{benchmark}")


def history_figure(results: Sequence[FamilyResult], title: str) -> Figure:
    """Worst sampled UC per iteration, one line per family, over the spread of all users' errors."""
    with house_style():
        figure = Figure(figsize=(6.4, 4.2), layout="constrained")
        axis = figure.subplots()
        last = max(int(result.history["iteration"].max()) for result in results)
        for place, result in enumerate(results, 1):
            _draw_history(axis, result)
            _draw_floor(axis, result, last + 0.025 * place * max(last, 1))
        if any((result.history["worst"] > 0).any() for result in results):
            axis.set_yscale("log")
            _plain_log_axis(axis.yaxis, subs=(1.0, 2.0, 5.0))
        axis.set_xlim(0, 1.07 * max(last, 1))
        axis.set_xlabel("Iteration (patches so far)")
        axis.set_ylabel("Utility calibration error")
        axis.set_title(title, fontsize=11.5, fontweight="bold")
        legend = figure.legend(
            handles=_history_handles(results),
            loc="outside lower center",
            ncols=2,
            title=_note(results[0].record),
            title_fontsize=8.5,
        )
        legend.get_title().set_color(NOTE_COLOR)
    return figure


def _note(record: Mapping[str, Any]) -> str:
    count = record["config"]["utilities"]
    return f"{count} users sampled anew in every iteration; {record['n']:,} calibration points."


def _draw_history(axis: Axes, result: FamilyResult) -> None:
    style, table = FAMILY_LOOKS[result.family], result.history
    number = table["iteration"]
    axis.fill_between(number, table["q05"], table["q95"], color=style.color, alpha=0.16, lw=0)
    axis.plot(number, table["median"], color=style.color, lw=0.8, alpha=0.6, zorder=2.5)
    axis.plot(
        number, table["worst"], color=style.color, linestyle=style.dash, lw=style.width, zorder=3
    )


def _draw_floor(axis: Axes, result: FamilyResult, place: float) -> None:
    """A bar at the right: where the worst user of a calibrated forecast would be."""
    floor = result.record["worst_noise_floor"]
    if floor:
        color = FAMILY_LOOKS[result.family].color
        axis.vlines(place, floor["q05"], floor["q95"], color=color, lw=4.5, alpha=0.45)
        axis.plot(place, floor["mean"], "_", color=color, markersize=7, markeredgewidth=1.5)


def _history_handles(results: Sequence[FamilyResult]) -> list[Line2D | Patch]:
    handles: list[Line2D | Patch] = []
    for result in results:
        style = FAMILY_LOOKS[result.family]
        line = Line2D([], [], color=style.color, linestyle=style.dash, linewidth=style.width)
        line.set_label(f"{result.family.capitalize()}: worst user")
        handles.append(line)
    for result in results:
        color = FAMILY_LOOKS[result.family].color
        label = f"{result.family.capitalize()}: 5–95% of users, median"
        handles.append(Patch(facecolor=color, alpha=0.25, lw=0, label=label))
    if any(result.record["worst_noise_floor"] for result in results):
        label = "At the right: worst user if calibrated, 5–95%"
        bar = Line2D([], [], color=FLOOR_EDGE, lw=0, marker="|", markersize=11, markeredgewidth=4)
        bar.set_label(label)
        handles.append(bar)
    return handles


def snapshot_figure(results: Sequence[FamilyResult], title: str) -> Figure:
    """Histograms of all users' errors: a row per family, a column per selected iteration."""
    numbers = sorted({int(k) for result in results for k in result.snapshots["iteration"]})
    bins = _log_bins(np.concatenate([result.snapshots["error"] for result in results]))
    with house_style():
        size = (1.2 + 1.55 * len(numbers), 0.9 + 1.5 * len(results))
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(len(results), len(numbers), sharex=True, sharey="row", squeeze=False)
        for row, result in zip(grid, results, strict=True):
            for axis, number in zip(row, numbers, strict=True):
                _draw_snapshot(axis, result, number, bins)
            row[0].set_ylim(0, 1.35 * row[0].get_ylim()[1])  # room for the numbers
            row[0].set_ylabel(f"{result.family.capitalize()}\nshare of users")
        for axis, number in zip(grid[0], numbers, strict=True):
            axis.set_title(f"Iteration {number}" if number else "Before patching")
        figure.supxlabel("Utility calibration error", fontsize=9.0)
        figure.suptitle(title, fontsize=11.5, fontweight="bold")
    return figure


def _log_bins(errors: Any) -> Any:
    """Edges over all positive errors, equally wide on a logarithmic axis."""
    positive = errors[errors > 0]
    if not len(positive):
        return np.array([0.5, 2.0]) * 1e-6
    low, high = np.log10(positive.min()), np.log10(positive.max())
    count = max(1, int(np.ceil((high - low) * BINS_PER_DECADE)))
    return np.logspace(low - 1e-9, high + 1e-9, count + 1)


def _draw_snapshot(axis: Axes, result: FamilyResult, number: int, bins: Any) -> None:
    color, table = FAMILY_LOOKS[result.family].color, result.snapshots
    errors = table.loc[table["iteration"] == number, "error"].to_numpy()
    shares, _ = np.histogram(errors, bins)
    axis.stairs(shares / len(errors), bins, fill=True, color=color, zorder=2)
    axis.set_xscale("log")
    narrow = bins[-1] / bins[0] < 100
    _plain_log_axis(axis.xaxis, subs=(1.0, 3.0) if narrow else (1.0,))
    axis.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axis.set_xlim(bins[0] / 1.3, bins[-1] * 1.3)
    at_left = np.median(errors) ** 2 < bins[0] * bins[-1]
    axis.text(
        0.97 if at_left else 0.03,
        0.95,
        f"median {np.median(errors):.3g}\nworst {errors.max():.3g}",
        ha="right" if at_left else "left",
        va="top",
        transform=axis.transAxes,
        color=NOTE_COLOR,
        fontsize=8.0,
    )


def _plain_log_axis(axis: Any, subs: tuple[float, ...]) -> None:
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.6f}".rstrip("0")))
    axis.set_minor_formatter(NullFormatter())
