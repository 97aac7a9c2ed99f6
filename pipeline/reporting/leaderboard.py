"""Who wins over all benchmarks: one line per method, counted from tests and floors; a figure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from utility_calibration.metrics.registry import PURPOSES, metric

from ..harness.artifacts import write_text
from ..scoring.choice import PRESENT
from ..scoring.decisions import Decisions
from ..scoring.files import csv_text, rounded
from ..scoring.inference import SIZE
from .names import method_name
from .wording import TextTable, bound, markdown_table

COUNTED = ("u_cwe", "u_topk", "u_dcg")  # the purposes whose noise floor and bound are counted
GAINS = ("nll", "brier")  # scores whose mean gain over the uncalibrated forecast is shown
NOTE = (
    "A method loses a cell, one metric on one benchmark, where a paired test finds it worse than "
    "the best method. Such a test is wrong in {percent:.0f} % of cases, so chance alone may take "
    "about {chance} of {cells} cells from a method that is the best in all of them. The regret is "
    "the geometric mean over the cells of the method's value to the best one (accuracy: the best "
    "one to the method's), where a lost cell counts its ratio and any other counts 1; beside it is "
    "the largest ratio. The bound is "
    "the largest 95 % upper bound on an error of these purposes, on average over the splits. "
    "Savings are against the uncalibrated forecast, on average over the benchmarks."
)


@dataclass(frozen=True)
class Leaderboard:
    """The `table` as people read it; `frame` has the numbers, a row per method."""

    benchmarks: int
    table: TextTable
    frame: pd.DataFrame

    @property
    def headline(self) -> str:
        """Whether one method is never worse than the best; how often the first two are."""
        first, second = self.frame.iloc[0], self.frame.iloc[1]
        name, cells = method_name(first["method"]), first["cells"]
        following = f"the next one, {method_name(second['method'])}, in {second['worse']}"
        compared = f"{cells} comparisons (one metric on one benchmark each)"
        if first["worse"] == 0:
            return (
                f"Yes, one method is good everywhere: no test finds {name} worse than the best "
                f"method in any of {compared}; {following}."
            )
        return (
            f"No method is the best everywhere. {name} comes closest: tests find it worse than the "
            f"best method in {first['worse']} of {compared}, {following}."
        )

    def write(self, folder: Path, stem: str) -> list[Path]:
        """Write the table as <stem>.md and <stem>.csv; return their paths."""
        table = markdown_table(self.table.heading, self.table.rows)
        texts = {"md": f"{table}\n\n{self.table.note}\n", "csv": csv_text(self.frame)}
        return [write_text(folder / f"{stem}.{kind}", text) for kind, text in texts.items()]


def leaderboard_of(benchmarks: Mapping[str, Decisions]) -> Leaderboard | None:
    """Count over benchmarks of the same methods; None for one of either or without tests."""
    methods = next(iter(benchmarks.values())).methods
    is_tested = any(decisions.test for decisions in benchmarks.values())
    if len(benchmarks) < 2 or len(methods) < 2 or not is_tested:
        return None
    tables = {name: decisions.frame() for name, decisions in benchmarks.items()}
    cells = pd.concat(tables, names=["benchmark", None]).reset_index("benchmark")
    measured = set(cells["metric"])
    purposes = [key for key in COUNTED if key in measured]
    saved = [key for key in GAINS if key in measured and PRESENT in methods]
    frame = _counted(cells, methods, purposes, saved)
    table = _shown(frame, len(tables), purposes, saved)
    return Leaderboard(len(tables), table, frame)


def _counted(
    cells: pd.DataFrame, methods: Sequence[str], purposes: Sequence[str], saved: Sequence[str]
) -> pd.DataFrame:
    """A row per method, those with the fewest lost cells first.

    Args:
        cells: the rows of `Decisions.frame` of all benchmarks, with a column `benchmark`.
        methods: the methods in the order of the tables.
        purposes: metrics whose errors within noise are counted.
        saved: scores whose share that is saved is averaged over benchmarks.
    """
    frame = pd.DataFrame({"cells": cells["method"].value_counts()}, index=list(methods))
    lost = cells[cells["not_worse"] == False]  # noqa: E712  (neither None nor NaN)
    frame["worse"] = lost["method"].value_counts()
    within = cells[cells["within_noise"] == True]  # noqa: E712  (neither None nor NaN)
    for key in purposes:
        frame[f"within_{key}"] = within[within["metric"] == key]["method"].value_counts()
    frame = frame.fillna(0).astype(int)
    of_purposes = cells[cells["metric"].isin(purposes)]
    frame["largest_bound"] = of_purposes.groupby("method")["upper"].max()
    ratios = regrets(cells).groupby(cells["method"])
    frame["regret"] = ratios.agg(lambda ratio: float(np.exp(np.log(ratio).mean())))
    frame["largest_regret"] = ratios.max()
    for key in saved:
        of_score = cells[cells["metric"] == key]
        means = of_score.pivot(index="method", columns="benchmark", values="mean")
        frame[f"{key}_saved"] = (1 - means / means.loc[PRESENT]).mean(axis="columns")
    return frame.sort_values("worse", kind="stable").reset_index(names="method")


def _shown(
    frame: pd.DataFrame, benchmarks: int, purposes: Sequence[str], saved: Sequence[str]
) -> TextTable:
    """The counts as people read them, and by what a page sorts them."""
    count = int(frame["cells"].max())
    columns: dict[str, tuple[str, Callable[[Any], str]]] = {
        "method": ("Method", method_name),
        "worse": (f"Worse than the best, of {count}", str),
        "regret": ("Regret", "{:.2f}".format),
        "largest_regret": ("Largest", "{:.2f}".format),
    }
    for key in purposes:
        columns[f"within_{key}"] = (f"Within noise, of {benchmarks}: {PURPOSES[key]}", str)
    columns["largest_bound"] = ("Largest bound", bound)
    for key in saved:
        columns[f"{key}_saved"] = (f"{metric(key).text} saved", _as_percents)
    lines, values = [], []
    for place, row in enumerate(frame.to_dict("records")):
        lines.append([form(row[name]) for name, (_, form) in columns.items()])
        # A name is sorted by its place.
        values.append([place, *(row[name] for name in columns if name != "method")])
    heading = [title for title, _ in columns.values()]
    note = NOTE.format(percent=100 * SIZE, chance=round(SIZE * count), cells=count)
    # The last bits of a mean differ between processors.
    return TextTable("Who wins", heading, lines, note, rounded(values))


def _as_percents(share: float) -> str:
    return f"{100 * share:.1f} %"


def regrets(cells: pd.DataFrame) -> "pd.Series[float]":
    """The regret of each cell, a row of `Decisions.frame`: how far it is from the best method.

    It is the ratio of a method's value to the best one where a test finds the method worse, and 1
    elsewhere. A plain ratio would exceed 1 by chance, also for equal methods (docs/choosing.md).
    """
    best = cells["mean"] - cells["difference"]
    ratio = cells["mean"] / best
    lost = cells["not_worse"] == False  # noqa: E712  (neither None nor NaN)
    return ratio.where(ratio >= 1, 1 / ratio).where(lost, 1.0)
