"""Who wins over all benchmarks of a suite: one line per method, counted from tests and floors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd

from metrics.registry import metric
from pipeline.harness.artifacts import write_text
from pipeline.reporting.collect import Statistics
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


def leaderboard_of(benchmarks: Mapping[str, Statistics], methods: Sequence[str]) -> Leaderboard:
    """Count over `benchmarks` {name: statistics}; the methods with the fewest losses come first.

    A method loses a cell, a metric on a benchmark, where the paired test finds it worse than the
    best method. Its bound is the largest 95 % upper bound over the purposes, mean over splits.
    """
    rows = [_row(method, benchmarks) for method in methods]
    frame = pd.DataFrame(rows).sort_values("worse", kind="stable", ignore_index=True)
    purposes = [key for key in PURPOSES if f"within_{key}" in frame]
    cells = max(frame["cells"])
    heading = [
        "Method",
        f"Worse than the best, of {cells}",
        *(f"Within noise, of {len(benchmarks)}: {PURPOSES[key]}" for key in purposes),
        "Largest bound",
        *(f"{metric(key).text} saved" for key in GAINS if f"{key}_saved" in frame),
    ]
    return Leaderboard(heading, [_cells_of(row, purposes) for _, row in frame.iterrows()], frame)


def _row(method: str, benchmarks: Mapping[str, Statistics]) -> dict[str, object]:
    rows = [
        (key, row)
        for statistics in benchmarks.values()
        for (name, key), row in statistics.items()
        if name == method
    ]
    row: dict[str, object] = {
        "method": method,
        "cells": len(rows),
        "worse": sum(_is_false(values, "not_worse") for _, values in rows),
    }
    for key in PURPOSES:
        scored = [values for name, values in rows if name == key]
        if scored:
            row[f"within_{key}"] = sum(_is_false(values, "beyond_floor") for values in scored)
    uppers = [values["upper"] for key, values in rows if key in PURPOSES]
    row["largest_bound"] = max(uppers, default=math.nan)
    for key in GAINS:
        saved = [
            1 - statistics[method, key]["mean"] / statistics[BASE, key]["mean"]
            for statistics in benchmarks.values()
            if (BASE, key) in statistics and (method, key) in statistics
        ]
        if saved:
            row[f"{key}_saved"] = fmean(saved)
    return row


def _is_false(values: Mapping[str, Any], key: str) -> bool:
    """Whether a test was made and its answer is no."""
    answer = values.get(key)
    return answer is not None and not pd.isna(answer) and not answer


def _cells_of(row: pd.Series, purposes: Sequence[str]) -> list[str]:
    saved = [f"{100 * row[f'{key}_saved']:.1f} %" for key in GAINS if f"{key}_saved" in row]
    within = [str(row[f"within_{key}"]) for key in purposes]
    name, worse = method_name(str(row["method"])), str(row["worse"])
    return [name, worse, *within, bound(row["largest_bound"]), *saved]
