"""Who wins over all benchmarks: one line per method, counted from tests and floors; a figure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from utility_calibration.metrics.registry import PURPOSES, metric

from ..harness.artifacts import write_text
from ..scoring.decisions import Decisions
from ..scoring.files import csv_text, rounded
from ..scoring.inference import SIZE
from .names import PRESENT, method_name
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
    frame = pd.DataFrame({"cells": cells["method"].value_counts()}, index=methods)
    frame["worse"] = cells[cells["not_worse"] == False]["method"].value_counts()  # noqa: E712
    within = cells[cells["within_noise"] == True]  # noqa: E712  (neither None nor NaN)
    for key in purposes:
        frame[f"within_{key}"] = within[within["metric"] == key]["method"].value_counts()
    uppers = cells[cells["metric"].isin(purposes)].groupby("method")["upper"].max()
    frame = frame.fillna(0).astype(int).assign(largest_bound=uppers)
    ratios = regrets(cells).groupby(cells["method"])
    frame["regret"] = ratios.agg(lambda ratio: float(np.exp(np.log(ratio).mean())))
    frame["largest_regret"] = ratios.max()
    for key in saved:
        of_score = cells[cells["metric"] == key]
        means = of_score.pivot(index="method", columns="benchmark", values="mean")
        frame[f"{key}_saved"] = (1 - means / means.loc[PRESENT]).mean(axis="columns")
    frame = frame.sort_values("worse", kind="stable").reset_index(names="method")
    count, noise = int(frame["cells"].max()), f"Within noise, of {len(tables)}"
    columns: dict[str, tuple[str, Callable[[Any], str]]] = {
        "method": ("Method", method_name),
        "worse": (f"Worse than the best, of {count}", str),
        "regret": ("Regret", "{:.2f}".format),
        "largest_regret": ("Largest", "{:.2f}".format),
        **{f"within_{key}": (f"{noise}: {PURPOSES[key]}", str) for key in purposes},
        "largest_bound": ("Largest bound", bound),
        **{
            f"{key}_saved": (f"{metric(key).text} saved", lambda share: f"{100 * share:.1f} %")
            for key in saved
        },
    }
    rows = frame.to_dict("records")
    lines = [[form(row[name]) for name, (_, form) in columns.items()] for row in rows]
    values = [[place, *(row[name] for name in [*columns][1:])] for place, row in enumerate(rows)]
    values = rounded(values)  # the last bits of a mean differ between processors
    note = NOTE.format(percent=100 * SIZE, chance=round(SIZE * count), cells=count)
    heading = [title for title, _ in columns.values()]
    return Leaderboard(len(tables), TextTable("Who wins", heading, lines, note, values), frame)


def regrets(cells: pd.DataFrame) -> "pd.Series[float]":
    """The regret of each cell, a row of `Decisions.frame`: how far it is from the best method.

    It is the ratio of a method's value to the best one where a test finds the method worse, and 1
    elsewhere. A plain ratio would exceed 1 by chance, also for equal methods (docs/choosing.md).
    """
    best = cells["mean"] - cells["difference"]
    ratio = cells["mean"] / best
    lost = cells["not_worse"] == False  # noqa: E712  (neither None nor NaN)
    return ratio.where(ratio >= 1, 1 / ratio).where(lost, 1.0)
