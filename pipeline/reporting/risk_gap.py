"""The utility-risk gap of Proposition 3.1 as people read it: a table and a figure per benchmark."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from utility_calibration.metrics.plots.drawing import GREY, plain, plain_log_axis

from ..harness.artifacts import read_json
from ..scoring.choice import PRESENT
from ..scoring.risk_gap import ALL_METHODS, NOISE, over_splits
from .looks import look
from .names import method_name
from .style import NOTE_COLOR, legend_below, titled_figure
from .wording import TextTable, decimals, number

COLUMNS = {
    "worst_uc": ("Largest UC ×10³", 1e3),
    "largest_gap": ("Largest gap ×10³", 1e3),
    "largest_ratio": ("Largest gap / UC", 1.0),
    "spearman": ("Spearman", 1.0),
    "pearson": ("Pearson", 1.0),
}
"""The heading of each number, and its factor."""
PANELS = 4  # in a row of the figure
BEFORE: Any = {"s": 7, "color": GREY, "lw": 0, "zorder": 2}
SMALLEST = 1e-3  # of the largest UC: smaller errors would need decades of the axes
BOUNDS = ((2, "-", "Bound of the paper, 2 UC"), (1, ":", "UC"))


class RiskGaps(NamedTuple):
    """The study of one benchmark.

    utilities: UTILITY_COLUMNS of scoring/risk_gap.py, means over splits; summary: `over_splits`, a
    row per calibrator; facts: users.json.
    """

    utilities: pd.DataFrame
    summary: pd.DataFrame
    facts: Mapping[str, Any]

    @classmethod
    def read(cls, folder: Path) -> Self:
        """From results/users/<benchmark>."""
        facts = read_json(folder / "users.json")
        share = facts["n_test"] / facts["n"]
        summary = over_splits(pd.read_csv(folder / "risk_gap_splits.csv"), share)
        return cls(pd.read_csv(folder / "risk_gap.csv"), summary, facts)

    @property
    def methods(self) -> list[str]:
        """The calibrators, without the rows of noise and of all methods together."""
        return [name for name in self.summary["calibrator"] if name not in (NOISE, ALL_METHODS)]

    def users(self, calibrator: str) -> pd.DataFrame:
        """UC and gap of each user."""
        return self.utilities[self.utilities["calibrator"] == calibrator]


def risk_gap_table(gaps: RiskGaps, title: str) -> TextTable:
    """A row per calibrator, then all of them together, then the noise floor."""
    summary = gaps.summary
    places = {}
    for name, (_, factor) in COLUMNS.items():
        means, spreads = summary[name] * factor, summary[f"{name}_half_width"] * factor
        places[name] = decimals(list(means), list(spreads))
    lines = []
    for row in summary.to_dict("records"):
        cells = []
        for name, (_, factor) in COLUMNS.items():
            cell = number(row[name] * factor, places[name])
            half_width = row[f"{name}_half_width"] * factor
            if np.isfinite(half_width):
                cell += f" ± {number(half_width, places[name])}"
            cells.append(cell)
        lines.append([_name(row["calibrator"]), *cells])
    heading = ["Method", *(text for text, _ in COLUMNS.values())]
    return TextTable(f"{title}: utility-risk gap", heading, lines, _note(gaps))


def _name(calibrator: str) -> str:
    others = {NOISE: "Noise floor", ALL_METHODS: ALL_METHODS.capitalize()}
    return others.get(calibrator) or method_name(calibrator)


def _note(gaps: RiskGaps) -> str:
    users = gaps.users(gaps.methods[0])
    counts = users["kind"].value_counts(sort=False)
    kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    splits = int(gaps.summary["splits"].iloc[0])
    return (
        "The gap is the risk that the best monotone map of the predicted utility would save "
        "(Proposition 3.1), at the threshold where it saves most. The paper bounds it by 2 UC; "
        f"increasing maps cannot save more than UC. Users: {kinds}. Correlations are between UC "
        f"and gap over these users. Means over {splits} splits ± half of the 95 % interval. The "
        f"noise floor is of labels drawn from {method_name(gaps.facts['floor_of'])}'s forecast."
    )


def risk_gap_figure(gaps: RiskGaps, title: str) -> Figure:
    """A panel per calibrator: the risk gap of every user over UC, before and after calibration.

    The last panel has what both are by chance, if the forecast were calibrated.
    """
    shown = [name for name in gaps.methods if name != PRESENT] or gaps.methods
    with_noise = not gaps.users(NOISE).empty
    panels = [*shown, *([NOISE] if with_noise else [])]
    rows = -(-len(panels) // PANELS)
    columns = min(PANELS, len(panels))
    correlation = gaps.summary.set_index("calibrator")["spearman"]
    clear = gaps.utilities[gaps.utilities["uc"] > SMALLEST * gaps.utilities["uc"].max()]
    ends = clear["uc"].min() / 1.2, clear["uc"].max() * 1.2
    with titled_figure(0.6 + 2.3 * columns, 1.0 + 2.2 * rows, title) as figure:
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for axis, calibrator in zip(grid.flat, panels, strict=False):
            before, after = gaps.users(PRESENT), gaps.users(calibrator)
            if calibrator != PRESENT:
                axis.scatter(before["uc"], before["gap"], **BEFORE)
            color = NOTE_COLOR if calibrator == NOISE else look(calibrator).color
            marker = "x" if calibrator == NOISE else "o"
            width = 0.9 if calibrator == NOISE else 0
            axis.scatter(
                after["uc"], after["gap"], s=10, color=color, lw=width, marker=marker, zorder=3
            )
            _draw_bounds(axis, ends)
            name = plain(_name(calibrator))
            axis.set_title(f"{name}, ρ = {number(correlation[calibrator], 2)}", fontsize=9)
        for axis in list(grid.flat)[len(panels) :]:
            axis.set_visible(False)
        _log_axes(grid.flat[0], ends, clear)
        for axis in grid[-1]:
            axis.set_xlabel("UC")
        for axis in grid[:, 0]:
            axis.set_ylabel("Utility-risk gap")
        dot: dict[str, Any] = {"ls": "", "marker": "o", "ms": 4}
        handles = [
            Line2D([], [], color=BEFORE["color"], label="Before calibration", **dot),
            Line2D([], [], color=NOTE_COLOR, label="After it", **dot),
            *(Line2D([], [], color=NOTE_COLOR, lw=1, ls=ls, label=text) for _, ls, text in BOUNDS),
        ]
        splits = int(gaps.summary["splits"].iloc[0])
        note = f"A point is a user, mean over {splits} splits. ρ: Spearman's correlation."
        legend_below(figure, handles, note)
    return figure


def _draw_bounds(axis: Axes, ends: tuple[float, float]) -> None:
    at = np.array(ends)
    for factor, line, _ in BOUNDS:
        axis.plot(at, factor * at, color=NOTE_COLOR, lw=0.9, ls=line, zorder=1)


def _log_axes(axis: Axes, ends: tuple[float, float], clear: pd.DataFrame) -> None:
    """Logarithmic axes for all panels, which share them."""
    positive = clear["gap"][clear["gap"] > 0]
    lowest = max(float(positive.quantile(0.01)), SMALLEST * float(positive.max()))
    highest = 2 * float(positive.max())
    axis.set(xscale="log", yscale="log", xlim=ends, ylim=(lowest / 1.3, highest))
    plain_log_axis(axis.xaxis, axis.get_xlim(), 4)
    plain_log_axis(axis.yaxis, axis.get_ylim(), 6)
