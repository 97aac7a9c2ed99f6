"""The table of one benchmark: its cells, their digits, the best ones; and its files.

Laid out as in the paper (Table 1 and appendix "Extended Results"): one row per method, one scaled
column per metric, mean ± half of a 95 % interval, every method that may be the best in bold, every
number beyond its noise floor marked. A last row shows a noise floor: what a calibrated classifier
would score on a sample of this size. The paper's own look: ± 2 standard errors, the best mean bold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from metrics.registry import Metric, metric
from pipeline.harness.artifacts import write_text
from pipeline.reporting.collect import Statistics, statistics_of
from pipeline.reporting.intervals import not_worse_than_best
from pipeline.reporting.names import FLOOR_METHOD, method_name
from pipeline.reporting.table_formats import latex, markdown, number
from pipeline.reporting.table_model import Cell, Column, ResultTable, TableSpec
from pipeline.scoring.files import csv_text
from pipeline.scoring.tidy import CERTIFICATE


class IncompleteResults(ValueError):
    """Methods of one table were evaluated with different metrics. One line."""


def build_table(summary: pd.DataFrame, spec: TableSpec) -> ResultTable:
    """The formatted table of `spec` from the tidy summary (collect.summarise).

    A metric that no method has (U_w2v without word vectors) gets no column.

    Raises:
        IncompleteResults: some methods have a metric that another lacks, or none has any.
    """
    numbers = statistics_of(summary)
    keys = [key for key in spec.metrics if any((m, key) in numbers for m in spec.methods)]
    absent = [(m, k) for m in spec.methods for k in keys if (m, k) not in numbers]
    if absent or not keys:
        method, key = absent[0] if absent else (spec.methods[0], spec.metrics[0])
        raise IncompleteResults(
            f"{spec.benchmark}: {method} has no value of {key}; evaluate it again with "
            f"python -m pipeline.evaluate benchmark={spec.benchmark} calibrator={method}"
        )
    floor_source = _floor_source(numbers, spec.methods)
    rows = [numbers[method, keys[0]] for method in spec.methods]
    uppers = {row["method"]: row["upper_all"] for row in rows}
    return ResultTable(
        spec,
        columns=tuple(_column(numbers, metric(key), spec, floor_source) for key in keys),
        floor_source=method_name(floor_source),
        splits=rows[0]["splits"],
        interval=rows[0]["interval"],
        test_points=rows[0]["test_points"],
        certificates=uppers if np.isfinite(list(uppers.values())).any() else {},
    )


def _column(numbers: Statistics, column: Metric, spec: TableSpec, floor_source: str) -> Column:
    """One metric's cells and its noise floor, all with the same number of digits."""
    scale = 10.0**column.power
    rows = {method: numbers[method, column.key] for method in spec.methods}
    spread_of = "two_se" if spec.look == "paper" else "half_width"
    spreads = {method: row[spread_of] * scale for method, row in rows.items()}
    digits = decimals([row["mean"] * scale for row in rows.values()], list(spreads.values()))
    best = _best(rows, column, spec, digits)
    cells = {
        method: Cell(
            number(row["mean"] * scale, digits),
            "" if np.isnan(spreads[method]) else number(spreads[method], digits),
            best=method in best,
            beyond=None if pd.isna(row["beyond_floor"]) else bool(row["beyond_floor"]),
            # Only the NLL has zero_likelihood: it is finite by its floor alone.
            note=f"∞, {row['zero_likelihood']:.3g}" if row["zero_likelihood"] > 0 else "",
            row=row,
        )
        for method, row in rows.items()
    }
    floor = numbers[floor_source, column.key]
    has_floor = not np.isnan(floor["floor_mean"])
    return Column(column, cells, number(floor["floor_q95"] * scale, digits) if has_floor else "")


def _best(
    rows: Mapping[str, Mapping[str, Any]], column: Metric, spec: TableSpec, digits: int
) -> set[str]:
    """The methods in bold: those that may be the best; in the paper's look the best mean."""
    if spec.look == "default":
        share = next(iter(rows.values()))["test_share"]
        values = {method: row["values"] for method, row in rows.items()}
        return not_worse_than_best(values, share, column.larger_is_better)
    printed = {m: round(row["mean"] * 10.0**column.power, digits) for m, row in rows.items()}
    finite = [value for value in printed.values() if np.isfinite(value)]
    top = (max(finite) if column.larger_is_better else min(finite)) if finite else None
    return {method for method, value in printed.items() if value == top}


def _floor_source(numbers: Statistics, methods: Sequence[str]) -> str:
    """Temperature scaling, also where the table does not show it; else the first with a floor."""
    with_floor = {m for (m, _), row in numbers.items() if not np.isnan(row["floor_mean"])}
    return next((m for m in (FLOOR_METHOD, *methods) if m in with_floor), methods[0])


PAPER_RUNS = {"dirichlet": 80, "patching": 20}
"""The paper's tuning runs (app. C.1)."""


def remarks_of(facts: Mapping[str, Any], methods: Sequence[str]) -> tuple[str, ...]:
    """For the tables' notes: weights, splits without a patch, settings that are not the paper's."""
    remarks = [remark for method in methods if (remark := _without_patches(facts, method))]
    if weights := facts["logits"].get("weights"):
        remarks.insert(0, "Points have weights, from {:.3g} to {:.3g}.".format(*weights))
    runs = {
        method: facts["calibrators"][method]["config"].get("tuning_runs", paper_runs)
        for method, paper_runs in PAPER_RUNS.items()
        if method in methods
    }
    if any(runs[method] != PAPER_RUNS[method] for method in runs):
        words = [f"{runs[m]} for {method_name(m)} (the paper: {PAPER_RUNS[m]})" for m in runs]
        remarks.append(
            f"Tuning runs: {', '.join(words)}; the tuning “paper” has as many as the paper."
        )
    points = facts["evaluation"]["utility_batch"]
    if points is not None:
        remarks.append(
            f"Utility metrics: means over disjoint batches of {points} test points or a few more."
        )
    return tuple(remarks)


def _without_patches(facts: Mapping[str, Any], method: str) -> str:
    """In how many splits a patching made no patch; empty where it always made one."""
    record = facts["calibrators"].get(method, {})
    counts = record.get("patches", [])
    if 0 not in counts:
        return ""
    start = {"temperature": "temperature scaling", "softmax": "no calibration"}
    config = record["config"].get("start", "softmax")
    return (
        f"{method_name(method)}: 0 patches in {counts.count(0)} of {len(counts)} splits, where it "
        f"equals {start.get(config, 'its start')}."
    )


def decimals(means: Sequence[float], spreads: Sequence[float]) -> int:
    """Decimal places of a column: two significant digits of the median spread, at most three.

    Without a spread (one split, or all equal) the median mean gets three significant digits.
    """
    usable = [spread for spread in spreads if np.isfinite(spread) and spread > 0]
    sizes = usable or [abs(mean) for mean in means if np.isfinite(mean) and mean != 0] or [1.0]
    significant = 2 if usable else 3
    return int(np.clip(significant - 1 - np.floor(np.log10(np.median(sizes))), 0, 3))


CSV_COLUMNS = (
    *("method", "metric", "mean", "two_se", "splits"),
    *("floor_mean", "floor_q95", "p_value", "beyond_floor"),
    *("half_width", "interval", "half_width_corrected", "half_width_bootstrap"),
    *("not_worse", "zero_likelihood"),
    *CERTIFICATE,
)
"""Those of collect.summarise; floor_*: the method's own; not_worse: of the methods that may
be the best; the last ones are bounds on the true UC."""


def long_form(table: ResultTable) -> pd.DataFrame:
    """The table's numbers unscaled, one row per method and metric (CSV_COLUMNS)."""
    cells = [{**cell.row, "not_worse": cell.best} for _, cells in table.rows for cell in cells]
    return pd.DataFrame(cells)[list(CSV_COLUMNS)]


def write_tables(tables: Iterable[ResultTable], folder: Path) -> list[Path]:
    """Write `<stem>.tex`, `.md` and `.csv` of each table; returns the paths written.

    The `.tex` holds a `table*` to be read with \\input (booktabs needed; bm and graphicx are used
    where loaded). The `.csv` is unscaled, to seven significant digits (CSV_COLUMNS).
    """
    written = []
    for table in tables:
        texts = {"tex": latex(table), "md": markdown(table), "csv": csv_text(long_form(table))}
        stem = table.spec.name
        written += [write_text(folder / f"{stem}.{end}", text) for end, text in texts.items()]
    return written
