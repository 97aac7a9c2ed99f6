"""Our numbers against the paper's printed ones, cell by cell, for every available alternative.

A printed cell is `printed_mean x 10^-power_of_ten` with a spread of two standard errors. Cells
agree when |z| <= 3, z = (ours - printed) / sqrt(se_ours² + se_printed²), se = two_se / 2. Where the
paper leaves a choice open, several of our results can stand for one printed row (another
checkpoint, another isotonic variant, utility metrics on fewer points): all are compared. Two sets
are counted: our defaults, and the one rule for all tables of `preset=paper`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pipeline.reporting.names import family

PRINTED_VALUES = Path(__file__).with_name("paper_tables.csv")
NOTES = Path(__file__).with_name("paper_notes.csv")
TABLE_ONE_SUFFIX = "_table1"
LIMIT = 3.0

CELL_COLUMNS = (
    "table",
    "method",
    "metric",
    "benchmark",
    "configuration",
    "variant",
    "default",
    "preset",
    "printed",
    "printed_two_se",
    "ours",
    "ours_two_se",
    "difference",
    "z",
    "outside",
    "power_of_ten",
)


@dataclass(frozen=True)
class Candidate:
    """Results that can stand for the printed tables of `paper_key`.

    `summary` is the tidy summary of `benchmark` (collect.summarise) with all its methods and
    variants; `configuration` says what is special about it ("" for the default configuration).
    """

    paper_key: str
    benchmark: str
    summary: pd.DataFrame
    configuration: str = ""


@dataclass(frozen=True)
class Rule:
    """One choice for all printed tables: benchmarks, methods or variants, and a configuration."""

    benchmarks: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    configuration: str = ""


def printed_values(path: Path = PRINTED_VALUES) -> pd.DataFrame:
    """The paper's cells, unscaled: table, method, metric, power_of_ten, printed, printed_two_se."""
    cells = pd.read_csv(path).rename(columns={"benchmark": "table"})
    scale = 10.0 ** cells["power_of_ten"]
    # Rounded far below the printed digits: 0.939, not 0.9390000000000001.
    cells["printed"] = (cells["printed_mean"] / scale).round(12)
    cells["printed_two_se"] = (cells["printed_two_se"] / scale).round(12)
    return cells.drop(columns="printed_mean")


def notes(path: Path = NOTES) -> dict[tuple[str, str, str], str]:
    """What is known of printed cells that stay apart: tested reasons, conjectures, oddities.

    By table, method and metric; the method `*` stands for a whole column of a table.
    """
    rows = pd.read_csv(path)[["table", "method", "metric", "note"]]
    return {(table, method, metric): note for table, method, metric, note in rows.to_numpy()}


def z_scores(
    difference: NDArray[np.float64], two_se: NDArray[np.float64], other_two_se: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Difference over the joint standard error; where that is zero or unknown, 0 or ±inf.

    A single split has no spread (NaN) and counts as exact.
    """
    joint = np.hypot(np.nan_to_num(two_se) / 2, np.nan_to_num(other_two_se) / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(difference == 0, 0.0, difference / joint))


def compare(
    candidates: Sequence[Candidate], printed: pd.DataFrame, rule: Rule | None = None
) -> pd.DataFrame:
    """All comparable cells (CELL_COLUMNS), unscaled, in the printed order.

    The first candidate of a paper key is its default; its rows of the unvaried methods have
    `default` set; what `rule` takes has `preset` set. Cells of the paper that a candidate lacks are
    left out.
    """
    parts = []
    seen: set[str] = set()
    for candidate in candidates:
        is_first = candidate.paper_key not in seen
        seen.add(candidate.paper_key)
        tables = printed[printed["table"].map(paper_key_of) == candidate.paper_key]
        cells = _candidate_cells(candidate, tables, is_first)
        parts.append(cells.assign(preset=_taken(cells, rule or Rule()))[list(CELL_COLUMNS)])
    if not parts:
        return pd.DataFrame(columns=list(CELL_COLUMNS))
    order = {name: i for i, name in enumerate(dict.fromkeys(printed["table"]))}
    cells = pd.concat(parts, ignore_index=True)
    return cells.sort_values("table", key=lambda c: c.map(order), kind="stable", ignore_index=True)


def _taken(cells: pd.DataFrame, rule: Rule) -> pd.Series:
    return (
        cells["benchmark"].isin(rule.benchmarks)
        & cells["variant"].isin(rule.variants)
        & (cells["configuration"] == rule.configuration)
    )


def paper_key_of(table: str) -> str:
    """The benchmark of a printed table: `imagenet_vit` of `imagenet_vit_table1`."""
    return table.removesuffix(TABLE_ONE_SUFFIX)


def _candidate_cells(candidate: Candidate, printed: pd.DataFrame, is_first: bool) -> pd.DataFrame:
    ours = candidate.summary[candidate.summary["benchmark"] == candidate.benchmark]
    ours = ours.rename(columns={"method": "variant", "mean": "ours", "two_se": "ours_two_se"})
    ours = ours[["variant", "metric", "ours", "ours_two_se"]].copy()
    ours["method"] = ours["variant"].map(family)
    ours["variant_order"] = ours.groupby(["method", "metric"]).cumcount()
    cells = printed.reset_index(names="place").merge(ours, on=["method", "metric"])
    cells = cells.sort_values(["variant_order", "place"], kind="stable")
    cells["benchmark"] = candidate.benchmark
    cells["configuration"] = candidate.configuration
    cells["default"] = is_first & (cells["variant"] == cells["method"])
    cells["difference"] = cells["ours"] - cells["printed"]
    columns = ("difference", "ours_two_se", "printed_two_se")
    cells["z"] = z_scores(*(cells[c].to_numpy(dtype=np.float64) for c in columns))
    cells["outside"] = cells["z"].abs() > LIMIT
    return cells


def count_line(cells: pd.DataFrame) -> str:
    """`38 of 42 within 3 s.e.`; empty where there is no cell."""
    if cells.empty:
        return ""
    return f"{int((~cells['outside'].astype(bool)).sum())} of {len(cells)} within {LIMIT:g} s.e."
