"""The numbers behind a table's cells, from which verdict, page and leaderboard are made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

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
