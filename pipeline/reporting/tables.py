"""The table of one benchmark: which cells, to how many digits, which are best; and its files.

Laid out as in the paper (Table 1 and appendix "Extended Results"): one row per method, one scaled
column per metric, mean ± half of a 95 % interval, every method that may be the best in bold, every
number beyond its noise floor marked. A last row shows a noise floor: what a calibrated classifier
would score on a sample of this size. The paper's own look: ± 2 standard errors, the best mean bold.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from metrics.registry import Metric, metric
from pipeline.harness.artifacts import write_text
from pipeline.reporting import table_formats
from pipeline.reporting.collect import CERTIFICATE_COLUMNS
from pipeline.reporting.intervals import not_worse_than_best
from pipeline.reporting.names import FLOOR_METHOD, NOISE_FLOOR, method_name
from pipeline.reporting.table_model import Cell, ResultTable, Row
from pipeline.scoring.files import csv_text

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
    look: Literal["default", "paper"] = "default"

    @property
    def name(self) -> str:
        """The stem of the table's files and of its LaTeX label."""
        return self.stem or self.benchmark


def build_table(
    summary: pd.DataFrame, spec: TableSpec, uppers: Mapping[str, float] | None = None
) -> ResultTable:
    """The formatted table of `spec` from the tidy summary (collect.summarise).

    `uppers`: the certificates of all classes together (collect.upper_bounds), for the notes.

    A metric that no method has (U_w2v without word vectors) gets no column.

    Raises:
        IncompleteResults: some methods have a metric that another lacks, or none has any.
    """
    rows = summary[summary["benchmark"] == spec.benchmark].to_dict("records")
    numbers: Numbers = {(row["method"], row["metric"]): row for row in rows}
    keys = [key for key in spec.metrics if any((m, key) in numbers for m in spec.methods)]
    absent = [(m, k) for m in spec.methods for k in keys if (m, k) not in numbers]
    if absent or not keys:
        method, key = absent[0] if absent else (spec.methods[0], spec.metrics[0])
        raise IncompleteResults(
            f"{spec.benchmark}: {method} has no value of {key}; evaluate it again with "
            f"python -m pipeline.evaluate benchmark={spec.benchmark} calibrator={method}"
        )
    columns, floors = zip(*(_column(numbers, metric(key), spec) for key in keys))
    floor = Row(NOISE_FLOOR, floors)
    return ResultTable(
        name=spec.name,
        title=spec.title,
        metrics=tuple(metric(key) for key in keys),
        rows=tuple(
            Row(method_name(method), cells, method)
            for method, cells in zip(spec.methods, zip(*columns), strict=True)
        ),
        floor=floor if any(cell.mean for cell in floor.cells) else None,
        floor_source=method_name(_floor_method(numbers, spec.methods)),
        splits=min(int(row["splits"]) for row in rows),
        remarks=spec.remarks,
        certificates={m: uppers[m] for m in spec.methods if m in uppers} if uppers else {},
        look=spec.look,
        interval=rows[0]["interval"],
        test_points=int(rows[0]["test_points"]),
    )


def _column(numbers: Numbers, column: Metric, spec: TableSpec) -> tuple[list[Cell], Cell]:
    """One metric's cells, one per method, and its noise floor, to the same number of digits."""
    scale = 10.0**column.power
    rows = {method: numbers[method, column.key] for method in spec.methods}
    spread_of = "two_se" if spec.look == "paper" else "half_width"
    spreads = [row[spread_of] * scale for row in rows.values()]
    digits = decimals([row["mean"] * scale for row in rows.values()], spreads)
    best = _best(rows, column, spec, digits)
    cells = [
        Cell(
            table_formats.number(round(row["mean"] * scale, digits), digits),
            "" if np.isnan(spread) else table_formats.number(spread, digits),
            best=method in best,
            beyond=None if pd.isna(row["beyond_floor"]) else bool(row["beyond_floor"]),
            note=_note(row),
            row={str(name): value for name, value in row.items()},
        )
        for (method, row), spread in zip(rows.items(), spreads, strict=True)
    ]
    row = numbers[_floor_method(numbers, spec.methods), column.key]
    if np.isnan(row["floor_mean"]):
        return cells, Cell("", "", best=False)
    return cells, Cell(table_formats.number(row["floor_q95"] * scale, digits), "", best=False)


def _best(
    rows: Mapping[str, Mapping[Hashable, Any]], column: Metric, spec: TableSpec, digits: int
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


def _note(row: Mapping[Hashable, Any]) -> str:
    """Of an NLL that is finite only by its floor."""
    if not row["zero_likelihood"] > 0:  # NaN for all other metrics
        return ""
    return f"∞, {row['zero_likelihood']:.3g}"


def _floor_method(numbers: Numbers, methods: Sequence[str]) -> str:
    """Temperature scaling, also where the table does not show it; else the first with a floor."""
    known = [method for method, _ in numbers]
    with_floor = [m for m, key in numbers if not np.isnan(numbers[m, key]["floor_mean"])]
    choices = [m for m in (FLOOR_METHOD, *methods) if m in with_floor]
    return choices[0] if choices else FLOOR_METHOD if FLOOR_METHOD in known else methods[0]


PAPER_RUNS = {"dirichlet": 80, "patching": 20}
"""The paper's tuning runs (app. C.1)."""
TUNED = {"dirichlet": " runs for Dirichlet", "patching": " for patching"}


def remarks_of(facts: Mapping[str, Any], methods: Sequence[str]) -> tuple[str, ...]:
    """For the tables' notes: splits without a patch, and settings that are not the paper's."""
    remarks = [remark for method in methods if (remark := _without_patches(facts, method))]
    tuned = [method for method in PAPER_RUNS if method in methods]
    configs = {method: facts["calibrators"][method]["config"] for method in tuned}
    runs = {m: int(configs[m].get("tuning_runs", PAPER_RUNS[m])) for m in tuned}
    if any(runs[method] != PAPER_RUNS[method] for method in tuned):
        done = " and ".join(f"{runs[method]}{TUNED[method]}" for method in tuned)
        paper = " and ".join(str(PAPER_RUNS[method]) for method in tuned)
        remarks.append(f"Tuned with {done}; the paper: {paper} (tuning=paper).")
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
    usable = [s for s in spreads if np.isfinite(s) and s > 0]
    significant, scale = (2, np.median(usable)) if usable else (3, _typical_size(means))
    return int(np.clip(significant - 1 - np.floor(np.log10(scale)), 0, 3))


def _typical_size(means: Sequence[float]) -> float:
    sizes = [abs(m) for m in means if np.isfinite(m) and m != 0]
    return float(np.median(sizes)) if sizes else 1.0


CSV_COLUMNS = (
    "method",
    "metric",
    "mean",
    "two_se",
    "splits",
    "floor_mean",
    "floor_q95",
    "p_value",
    "beyond_floor",
    "half_width",
    "interval",
    "half_width_corrected",
    "half_width_bootstrap",
    "not_worse",
    "zero_likelihood",
    *CERTIFICATE_COLUMNS,
)
"""Those of collect.summarise; floor_*: the method's own; not_worse: of the methods that may
be the best; the last ones are bounds on the true UC."""


def long_form(table: ResultTable) -> pd.DataFrame:
    """The table's numbers unscaled, one row per method and metric (CSV_COLUMNS)."""
    cells = [{**cell.row, "not_worse": cell.best} for row in table.rows for cell in row.cells]
    return pd.DataFrame(cells)[list(CSV_COLUMNS)]


def write_tables(tables: Iterable[ResultTable], folder: Path) -> list[Path]:
    """Write `<stem>.tex`, `.md` and `.csv` of each table; returns the paths written.

    The `.tex` holds a `table*` to be read with \\input (booktabs needed; bm and graphicx are used
    where loaded). The `.csv` is unscaled, to seven significant digits (CSV_COLUMNS).
    """
    written = []
    for table in tables:
        texts = {
            "tex": table_formats.latex(table),
            "md": table_formats.markdown(table),
            "csv": csv_text(long_form(table)),
        }
        written += [write_text(folder / f"{table.name}.{end}", text) for end, text in texts.items()]
    return written
