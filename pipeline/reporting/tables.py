"""The table of one benchmark: which cells, to how many digits, which are best; and its files.

Laid out as in the paper (Table 1 and appendix "Extended Results"): one row per method, one scaled
column per metric, mean ± 2 standard errors over the splits, the best mean per column in bold. A
last row shows the noise floor: what a calibrated classifier would score on a sample of this size.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from metrics.registry import Metric, metric
from pipeline.harness.artifacts import write_text
from pipeline.reporting import table_formats
from pipeline.reporting.names import FLOOR_METHOD, NOISE_FLOOR, method_name
from pipeline.reporting.table_model import Cell, ResultTable, Row

Numbers = Mapping[tuple[str, str], Mapping[Hashable, Any]]
"""The rows of a tidy summary by (method, metric)."""


class IncompleteResults(ValueError):
    """Methods of one table were evaluated with different metrics. One line."""


@dataclass(frozen=True)
class TableSpec:
    """What a table shows: `metrics` and `methods` are keys in order.

    `stem` names its files (else the benchmark does), `remarks` are sentences below the table.
    """

    benchmark: str
    title: str
    metrics: Sequence[str]
    methods: Sequence[str]
    stem: str = ""
    remarks: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The stem of the table's files and of its LaTeX label."""
        return self.stem or self.benchmark


def build_table(summary: pd.DataFrame, spec: TableSpec) -> ResultTable:
    """The formatted table of `spec` from the tidy summary (collect.summarise).

    A metric that no method has (U_w2v without word vectors) gets no column.

    Raises:
        IncompleteResults: some methods have a metric that another lacks, or none has any.
    """
    rows = summary[summary["benchmark"] == spec.benchmark].to_dict("records")
    numbers: Numbers = {(row["method"], row["metric"]): row for row in rows}
    keys = present_metrics(summary, spec)
    absent = [(m, k) for m in spec.methods for k in keys if (m, k) not in numbers]
    if absent or not keys:
        method, key = absent[0] if absent else (spec.methods[0], spec.metrics[0])
        raise IncompleteResults(
            f"{spec.benchmark}: {method} has no value of {key}; evaluate it again with "
            f"python -m pipeline.evaluate benchmark={spec.benchmark} calibrator={method}"
        )
    columns = [_column(numbers, metric(key), spec.methods) for key in keys]
    floor = Row(NOISE_FLOOR, tuple(column.floor for column in columns))
    return ResultTable(
        name=spec.name,
        title=spec.title,
        metrics=tuple(metric(key) for key in keys),
        rows=tuple(
            Row(method_name(method), tuple(column.cells[i] for column in columns))
            for i, method in enumerate(spec.methods)
        ),
        floor=floor if any(cell.mean for cell in floor.cells) else None,
        floor_source=method_name(_floor_method(numbers, spec.methods)),
        splits=min(int(row["splits"]) for row in rows),
        remarks=spec.remarks,
        within_floor=tuple(m.text for m in map(metric, keys) if _within_floor(numbers, m, spec)),
    )


def present_metrics(summary: pd.DataFrame, spec: TableSpec) -> list[str]:
    """The metrics of `spec` that at least one of its methods has."""
    rows = summary[(summary["benchmark"] == spec.benchmark) & summary["method"].isin(spec.methods)]
    found = set(rows["metric"])
    return [key for key in spec.metrics if key in found]


@dataclass(frozen=True)
class _Column:
    cells: list[Cell]
    floor: Cell


def _column(numbers: Numbers, column: Metric, methods: Sequence[str]) -> _Column:
    """One metric's cells, one per method, and its noise floor, to the same number of digits."""
    scale = 10.0**column.power
    means = [numbers[method, column.key]["mean"] * scale for method in methods]
    spreads = [numbers[method, column.key]["two_se"] * scale for method in methods]
    digits = decimals(means, spreads)
    rounded = [round(mean, digits) for mean in means]
    finite = [value for value in rounded if np.isfinite(value)]
    best = (max(finite) if column.larger_is_better else min(finite)) if finite else None
    cells = [
        Cell(
            table_formats.number(value, digits),
            "" if np.isnan(spread) else table_formats.number(spread, digits),
            best=value == best,
        )
        for value, spread in zip(rounded, spreads, strict=True)
    ]
    row = numbers[_floor_method(numbers, methods), column.key]
    if np.isnan(row["floor_mean"]):
        return _Column(cells, Cell("", "", best=False))
    mean, q95 = (table_formats.number(row[k] * scale, digits) for k in ("floor_mean", "floor_q95"))
    return _Column(cells, Cell(mean, q95, best=False))


def _within_floor(numbers: Numbers, column: Metric, spec: TableSpec) -> bool:
    """Whether a metric of calibration finds no method beyond the 95 % quantile of the noise."""
    limit = numbers[_floor_method(numbers, spec.methods), column.key]["floor_q95"]
    means = [numbers[method, column.key]["mean"] for method in spec.methods]
    return column.has_floor and all(mean <= limit for mean in means)


def _floor_method(numbers: Numbers, methods: Sequence[str]) -> str:
    """Temperature scaling, also where the table does not show it; else the first method."""
    known = {method for method, _ in numbers}
    return FLOOR_METHOD if FLOOR_METHOD in known else methods[0]


def decimals(means: Sequence[float], spreads: Sequence[float]) -> int:
    """Decimal places of a column: two significant digits of the median spread, at most three.

    Without a spread (one split, or all equal) the median mean gets three significant digits.
    """
    usable = [s for s in spreads if np.isfinite(s) and s > 0]
    significant, scale = (2, np.median(usable)) if usable else (3, _typical_size(means))
    return int(np.clip(significant - 1 - np.floor(np.log10(scale)), 0, 3))


def _typical_size(means: Sequence[float]) -> float:
    sizes = [abs(m) for m in means if np.isfinite(m) and m != 0]
    return float(np.median(sizes)) if sizes else 1.0


def long_form(summary: pd.DataFrame, spec: TableSpec) -> pd.DataFrame:
    """The table's numbers unrounded and unscaled, one row per method and metric."""
    rows = summary[
        (summary["benchmark"] == spec.benchmark)
        & summary["method"].isin(list(spec.methods))
        & summary["metric"].isin(list(spec.metrics))
    ].copy()
    for column, order in (("method", spec.methods), ("metric", spec.metrics)):
        rows[column] = pd.Categorical(rows[column], categories=list(order), ordered=True)
    return rows.sort_values(["method", "metric"]).drop(columns="benchmark")


def write_tables(summary: pd.DataFrame, specs: Iterable[TableSpec], folder: Path) -> list[Path]:
    """Write `<stem>.tex`, `.md` and `.csv` of each table; returns the paths written.

    The `.tex` holds a `table*` to be read with \\input (booktabs needed; bm and graphicx are used
    where loaded). The `.csv` is unscaled with full precision: method, metric, mean, two_se,
    splits, floor_mean, floor_q95.
    """
    written = []
    for spec in specs:
        table = build_table(summary, spec)
        texts = {
            "tex": table_formats.latex(table),
            "md": table_formats.markdown(table),
            "csv": long_form(summary, spec).to_csv(index=False, lineterminator="\n"),
        }
        for suffix, text in texts.items():
            path = folder / f"{spec.name}.{suffix}"
            write_text(path, text)
            written.append(path)
    return written
