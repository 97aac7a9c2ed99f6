"""The comparison with the paper as Markdown and CSV."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from metrics.registry import metric
from pipeline.harness.artifacts import write_text
from pipeline.reporting.comparison import LIMIT, count_line, notes
from pipeline.reporting.markdown import markdown_table
from pipeline.reporting.names import method_name
from pipeline.reporting.table_formats import number
from pipeline.reporting.tables import decimals
from pipeline.scoring.files import csv_text

TITLE = "Comparison with the printed numbers"
INTRO = (
    "Printed value, ours, their difference and z = difference / sqrt(se² + se²), where a standard "
    "error is half the ± number beside a mean (both are taken over random splits of the same "
    f"test points). Cells with |z| > {LIMIT:g} are marked ▲ (ours is larger) or ▼ (smaller). "
    "Values are scaled as in the paper's tables."
)
COLUMNS = ("Method", "Metric", "Printed", "Ours", "Difference", "z", "")
RULE = (
    "The default is what we would use; preset=paper is one rule for all tables that follows the "
    "paper. comparison.csv has every alternative that was scored."
)
LEFT = "Printed cells that preset=paper leaves more than 3 s.e. apart, and what is known of them:"
LEFT_COLUMNS = ("Table", *COLUMNS[:-1], "Reason")

UNEXPLAINED = "unexplained"

Line = Sequence[str]


def write_comparison(cells: pd.DataFrame, titles: Mapping[str, str], folder: Path) -> list[Path]:
    """Write `comparison.{md,csv}`; `titles` names the printed tables for people.

    The CSV holds all alternatives, unscaled (comparison.CELL_COLUMNS).
    """
    texts = {"md": comparison_markdown(cells, titles), "csv": csv_text(cells)}
    return [write_text(folder / f"comparison.{kind}", text) for kind, text in texts.items()]


def summary_lines(cells: pd.DataFrame, titles: Mapping[str, str]) -> list[Line]:
    """Per printed table: its title and the counts of the default and of preset=paper; the sums."""
    sets = [cells[cells["default"].astype(bool)], cells[cells["preset"].astype(bool)]]
    tables = list(dict.fromkeys(cells["table"]))
    lines: list[Line] = [
        (titles.get(table, table), *(count_line(rows[rows["table"] == table]) for rows in sets))
        for table in tables
    ]
    covered = set(sets[1]["table"])
    if len(tables) > 1 and covered:
        # Of the tables that the rule covers, so that the columns can be compared.
        sums = (count_line(rows[rows["table"].isin(covered)]) for rows in sets)
        lines.append(("All with preset=paper", *sums))
    return lines


def left_lines(cells: pd.DataFrame, titles: Mapping[str, str]) -> list[Line]:
    """The LEFT_COLUMNS of the cells that preset=paper leaves outside."""
    lines: list[Line] = []
    known = notes()
    for table, rows in cells[cells["preset"]].groupby("table", sort=False):
        for line, row in zip(cell_lines(rows), rows.to_dict("records"), strict=True):
            if row["outside"]:
                of_column = known.get((row["table"], "*", row["metric"]), UNEXPLAINED)
                reason = known.get((row["table"], row["method"], row["metric"]), of_column)
                lines.append((titles.get(str(table), str(table)), *line[:-1], reason))
    return lines


def mark(z: float) -> str:
    """▲ or ▼ where |z| > 3, else nothing."""
    return "" if abs(z) <= LIMIT else "▲" if z > 0 else "▼"


def cell_lines(cells: pd.DataFrame) -> list[Line]:
    """The COLUMNS of each cell of one printed table, scaled and rounded."""
    rows = cells.to_dict("records")
    lines: list[Line] = []
    for row in rows:
        column = metric(row["metric"])
        scale = 10.0**column.power
        peers = [other for other in rows if other["metric"] == column.key]
        spreads = [other["ours_two_se"] * scale for other in peers]
        digits = decimals([other["ours"] * scale for other in peers], spreads)
        digits = max(digits, *(_printed_digits(other["printed"] * scale) for other in peers))
        printed, ours = (_measured(row, key, scale, digits) for key in ("printed", "ours"))
        lines.append(
            (
                method_name(row["variant"]),
                f"{column.text} {column.scale}",
                printed,
                ours,
                signed(row["difference"] * scale, digits),
                signed(row["z"], 1),
                mark(row["z"]),
            )
        )
    return lines


def _printed_digits(value: float) -> int:
    """Decimal places that the paper prints (its trailing zeros aside), so that none is lost."""
    return len(f"{value:.4f}".rstrip("0").partition(".")[2])


def _measured(row: Mapping[Hashable, Any], key: str, scale: float, digits: int) -> str:
    mean, spread = row[key] * scale, row[f"{key}_two_se"] * scale
    return f"{number(mean, digits)} ± {number(spread, digits)}"


def signed(value: float, digits: int) -> str:
    """A rounded number with its sign."""
    return f"{'+' if value > 0 else ''}{number(value, digits)}"


SUMMARY_HEADING = ("Printed table", "Our default", "preset=paper")


def comparison_markdown(cells: pd.DataFrame, titles: Mapping[str, str]) -> str:
    """The whole comparison as Markdown."""
    summary = markdown_table(SUMMARY_HEADING, summary_lines(cells, titles))
    parts = [f"# {TITLE}", INTRO, summary, RULE]
    left = left_lines(cells, titles)
    if left:
        parts += [LEFT, markdown_table(LEFT_COLUMNS, left)]
    for table, rows in cells.groupby("table", sort=False):
        default = rows[rows["default"].astype(bool)]
        parts.append(f"## {titles.get(str(table), str(table))}")
        parts.append(f"{count_line(default)} (our default).")
        parts.append(markdown_table(COLUMNS, cell_lines(default)))
    return "\n\n".join(parts) + "\n"
