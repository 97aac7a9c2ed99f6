"""The numbers behind a table's cells: what the verdict, the page and the ranks are made from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import pandas as pd

from metrics.registry import metric
from pipeline.reporting.names import method_name
from pipeline.reporting.table_model import ResultTable
from pipeline.reporting.verdict import Evidence, Table

Statistics = Mapping[tuple[str, str], Mapping[str, Any]]
"""The rows of the tidy summary (collect.summarise) by method and metric."""


def statistics_of(summary: pd.DataFrame) -> Statistics:
    """The rows of one benchmark's summary."""
    rows = summary.to_dict("records")
    return {(row["method"], row["metric"]): {str(k): v for k, v in row.items()} for row in rows}


def number_of(row: Mapping[str, Any], key: str) -> float:
    """A column of a row, NaN where the summary does not have it."""
    value = row.get(key)
    return math.nan if value is None else float(value)


def evidence_of(table: ResultTable) -> Table:
    """The table's cells as the verdict takes them."""
    found: dict[str, dict[str, Evidence]] = {}
    for place, column in enumerate(table.metrics):
        for row in table.rows:
            cell = row.cells[place]
            found.setdefault(column.key, {})[row.key] = Evidence(
                mean=float(cell.row["mean"]),
                best=cell.best,
                beyond=cell.beyond,
                floor=number_of(cell.row, "floor_q95"),
                p_value=number_of(cell.row, "p_value"),
                upper=number_of(cell.row, "upper"),
                infinite=number_of(cell.row, "zero_likelihood") > 0,
            )
    return found


@dataclass(frozen=True)
class Ranks:
    """Methods by rank on several benchmarks, for one metric."""

    key: str
    label: str
    benchmarks: tuple[str, ...]
    rows: Sequence[Mapping[str, Any]]
    """`name` of a method, `mean` of its ranks, `cells`: each rank (`value`) with the ranks that its
    interval allows (`text`)."""


OVERVIEW = ("u_cwe", "u_topk", "u_dcg", "brier", "nll", "accuracy")
"""Metrics by which the overview ranks the methods."""


def overview_of(benchmarks: Mapping[str, Statistics], methods: Sequence[str]) -> list[Ranks]:
    """Ranks by each metric of OVERVIEW that all benchmarks {title: statistics} have."""
    everywhere = [
        key
        for key in OVERVIEW
        if all((method, key) in rows for rows in benchmarks.values() for method in methods)
    ]
    return [ranks_of(key, benchmarks, methods) for key in everywhere]


def ranks_of(key: str, benchmarks: Mapping[str, Statistics], methods: Sequence[str]) -> Ranks:
    """Ranks of `methods` by metric `key` on benchmarks {title: statistics}.

    A rank's interval counts the methods whose own interval lies wholly below or above.
    """
    columns = [_ranks(key, statistics, methods) for statistics in benchmarks.values()]
    rows = []
    for method, *cells in zip(methods, *columns, strict=True):
        mean = round(fmean(cell["value"] for cell in cells), 1)
        rows.append({"name": method_name(method), "cells": cells, "mean": mean})
    return Ranks(key, metric(key).text, tuple(benchmarks), rows)


def _ranks(key: str, statistics: Statistics, methods: Sequence[str]) -> list[dict[str, Any]]:
    sign = -1.0 if metric(key).larger_is_better else 1.0
    rows = [statistics[method, key] for method in methods]
    means = [sign * float(row["mean"]) for row in rows]
    halves = [_half_width(row) for row in rows]
    low = [m - h for m, h in zip(means, halves, strict=True)]
    high = [m + h for m, h in zip(means, halves, strict=True)]
    cells = []
    for own, bottom, top in zip(means, low, high, strict=True):
        rank = 1 + sum(other < own for other in means)
        first = 1 + sum(other < bottom for other in high)
        last = len(methods) - sum(other > top for other in low)
        text = f"{rank}" if first == last else f"{rank} ({first}–{last})"
        cells.append({"value": rank, "text": text})
    return cells


def _half_width(row: Mapping[str, Any]) -> float:
    """Of the 95 % interval; without one, of ± two standard errors; 0 for a single split."""
    for key in ("half_width", "two_se"):
        value = number_of(row, key)
        if math.isfinite(value):
            return value
    return 0.0
