"""Who wins over all benchmarks of a suite: one line per method, counted from tests and floors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from metrics.registry import metric
from pipeline.harness.artifacts import write_text
from pipeline.reporting.markdown import markdown_table
from pipeline.reporting.names import method_name
from pipeline.reporting.wording import bound
from pipeline.scoring.files import csv_text

PURPOSES = {"u_cwe": "classes", "u_topk": "shortlists", "u_dcg": "graded gains"}
"""The metrics whose noise floor and bound are counted, and what they are for."""
GAINS = ("nll", "brier")
"""Scores whose mean gain over the uncalibrated forecast is shown, in percent."""
BASE = "uncalibrated"


@dataclass(frozen=True)
class Leaderboard:
    """`heading` and `lines` as people read them; `frame` has the numbers, a row per method."""

    heading: Sequence[str]
    lines: Sequence[Sequence[str]]
    frame: pd.DataFrame
    note: str = (
        "A method loses a cell, one metric on one benchmark, where a paired test over the splits "
        "finds it worse than the best method. The bound is the largest 95 % upper bound on an "
        "error of these three purposes, on average over the splits. Savings are against the "
        "uncalibrated forecast, on average over the benchmarks."
    )

    def markdown(self) -> str:
        """The table in Markdown."""
        return markdown_table(self.heading, self.lines)

    def write(self, folder: Path, stem: str) -> list[Path]:
        """Write the table as <stem>.md and <stem>.csv; return their paths."""
        return [
            write_text(folder / f"{stem}.md", f"{self.markdown()}\n\n{self.note}\n"),
            write_text(folder / f"{stem}.csv", csv_text(self.frame)),
        ]


def leaderboard_of(tables: Mapping[str, pd.DataFrame], methods: Sequence[str]) -> Leaderboard:
    """Count over benchmarks; the methods with the fewest losses come first.

    Args:
        tables: by benchmark the numbers of its table (tables.long_form).
    """
    cells = pd.concat(tables, names=["benchmark", None]).reset_index("benchmark")
    by_metric = dict(list(cells.groupby("metric")))
    purposes = [key for key in PURPOSES if key in by_metric]
    gains = [key for key in GAINS if key in by_metric]
    frame = pd.DataFrame(index=pd.Index(methods, name="method"))
    frame["cells"] = cells["method"].value_counts()
    frame["worse"] = _answered_no(cells, "not_worse")
    for key in purposes:
        frame[f"within_{key}"] = _answered_no(by_metric[key], "beyond_floor")
    uppers = cells[cells["metric"].isin(purposes)].groupby("method")["upper"]
    frame["largest_bound"] = uppers.max()
    for key in gains:
        means = by_metric[key].pivot(index="method", columns="benchmark", values="mean")
        if BASE in means.index:
            frame[f"{key}_saved"] = (1 - means / means.loc[BASE]).mean(axis="columns")
    frame = frame.sort_values("worse", kind="stable").reset_index()
    saved = [key for key in gains if f"{key}_saved" in frame]
    heading = [
        "Method",
        f"Worse than the best, of {frame['cells'].max()}",
        *(f"Within noise, of {len(tables)}: {PURPOSES[key]}" for key in purposes),
        "Largest bound",
        *(f"{metric(key).text} saved" for key in saved),
    ]
    lines = [
        [
            method_name(row["method"]),
            str(row["worse"]),
            *(str(row[f"within_{key}"]) for key in purposes),
            bound(row["largest_bound"]),
            *(f"{100 * row[f'{key}_saved']:.1f} %" for key in saved),
        ]
        for row in frame.to_dict("records")
    ]
    return Leaderboard(heading, lines, frame)


def _answered_no(cells: pd.DataFrame, test: str) -> pd.Series:
    """Per method in how many cells a test was made and its answer is no."""
    return (cells[test] == False).groupby(cells["method"]).sum()  # noqa: E712  (not NaN, not None)
