"""How the time of the eCDF grows with points n, classes C and utilities M, against n log n."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pipeline.harness.artifacts import write_text
from pipeline.reporting.style import NOTE_COLOR, LineLook, house_style, save_figure
from scripts.speed.case import OURS, OURS_GPU, PLAIN, Case
from scripts.speed.inputs import Size
from scripts.speed.metric_cases import linear_curve

TITLE = "Time of the eCDF of U_lin"
LOOKS = {
    PLAIN: LineLook("#000000", (0, (1, 1.2))),
    OURS: LineLook("#D55E00", width=2.2),
    OURS_GPU: LineLook("#0072B2", (0, (6, 1.5))),
}

CLOSE = 0.1
"""Share of an axis below which the labels of two ticks touch."""


@dataclass(frozen=True)
class Axis:
    """One panel: what varies, over which values, and the growth to hold it against."""

    symbol: str
    label: str
    values: tuple[int, ...]
    guide: str
    law: Callable[[float], float]


@dataclass(frozen=True)
class Point:
    """One measured point of a panel."""

    axis: str
    value: int
    size: Size
    contender: str
    seconds: float


def _n_log_n(n: float) -> float:
    return n * math.log(n)


def axes(quick: bool) -> tuple[tuple[Axis, ...], Size]:
    """The panels, and the size that they vary one number of."""
    n: tuple[int, ...]
    classes: tuple[int, ...]
    utilities: tuple[int, ...]
    if quick:
        n, classes, utilities = (500, 1000, 2000, 4000), (5, 10, 20, 40), (25, 50, 100, 200)
        base = Size(1000, 10, utilities=50)
    else:
        n = (1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
        classes = (2, 10, 100, 1000, 10_000, 21_843)  # the last: ImageNet-21k
        utilities = (10, 100, 1000, 10_000, 100_000)
        base = Size(4000, 100, utilities=200)
    panels = (
        Axis("n", "points n", n, "∝ n log n", _n_log_n),
        Axis("C", "classes C", classes, "∝ C", float),
        Axis("M", "utilities M", utilities, "∝ M", float),
    )
    return panels, base


def cases(quick: bool) -> Iterator[tuple[Axis, int, Case]]:
    """Every point of every panel as a case of `linear_curve`."""
    panels, base = axes(quick)
    for axis in panels:
        for value in axis.values:
            changed = {"n": base.n, "C": base.classes, "M": base.utilities, axis.symbol: value}
            yield axis, value, linear_curve(Size(changed["n"], changed["C"], changed["M"]))


def write_csv(points: Sequence[Point], machine: str, path: Path) -> None:
    """All points."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("varied", "value", "n", "C", "M", "contender", "median_seconds", "machine"))
    for p in points:
        size = (p.size.n, p.size.classes, p.size.utilities)
        writer.writerow((p.axis, p.value, *size, p.contender, p.seconds, machine))
    write_text(path, text.getvalue())


def draw(points: Sequence[Point], machine: str, quick: bool, folder: Path, stem: str) -> list[Path]:
    """Write the figure: a panel per varied number, log axes, the guide through our last point."""
    panels, base = axes(quick)
    with house_style():
        figure = Figure(figsize=(9.0, 3.4), layout="constrained")
        for ax, axis in zip(figure.subplots(1, 3, sharey=True), panels, strict=True):
            _draw_panel(ax, axis, [p for p in points if p.axis == axis.symbol])
            fixed = {"n": base.n, "C": base.classes, "M": base.utilities}
            del fixed[axis.symbol]
            ax.set_title(", ".join(f"{name} = {value:,}" for name, value in fixed.items()))
        first = figure.axes[0]
        first.set_ylabel("seconds, median")
        figure.suptitle(f"{TITLE} – {machine.partition(';')[0]}", fontsize=9, color=NOTE_COLOR)
        handles, labels = first.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return save_figure(figure, folder, stem)


def _short(value: int) -> str:
    return f"{value // 1_000_000}M" if value >= 1_000_000 else _in_thousands(value)


def _in_thousands(value: int) -> str:
    return f"{value / 1000:.0f}k" if value >= 1000 else str(value)


def _tick_labels(values: Sequence[int]) -> list[str]:
    """Of a log axis: none where the next one would touch it."""
    narrow = CLOSE * math.log(values[-1] / values[0])
    shown = [_short(a) if math.log(b / a) > narrow else "" for a, b in pairwise(values)]
    return [*shown, _short(values[-1])]


def _draw_panel(ax: Axes, axis: Axis, points: Sequence[Point]) -> None:
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel(axis.label)
    ax.set_xticks(axis.values, _tick_labels(axis.values))
    ax.minorticks_off()
    for contender, look in LOOKS.items():
        own = [p for p in points if p.contender == contender]
        if own:
            x, y = [float(p.value) for p in own], [p.seconds for p in own]
            style: dict[str, Any] = {"ls": look.dash, "lw": look.width, "color": look.color}
            ax.plot(x, y, marker="o", ms=3.5, label=contender, **style)
    ours = [p for p in points if p.contender == OURS]
    if ours:
        last = ours[-1]
        x = [float(p.value) for p in ours]
        y = [last.seconds * axis.law(value) / axis.law(last.value) for value in x]
        ax.plot(x, y, color=NOTE_COLOR, lw=0.8, zorder=0)
        ax.annotate(
            axis.guide,
            (x[1], y[1]),
            color=NOTE_COLOR,
            xytext=(5, -11),
            textcoords="offset points",
            fontsize=8,
        )
