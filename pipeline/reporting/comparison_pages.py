"""The comparison with the paper as Markdown and CSV."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from metrics.registry import metric
from pipeline.harness.artifacts import write_text
from pipeline.reporting.comparison import CELL_COLUMNS, LIMIT, NOTES
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
SUMMARY_HEADING = ("Printed table", "Our default", "preset=paper")
RULE = (
    "The default is what we would use; preset=paper is one rule for all tables that follows the "
    "paper. comparison.csv has every alternative that was scored."
)
COLUMNS = ("Method", "Metric", "Printed", "Ours", "Difference", "z", "")
LEFT = "Printed cells that preset=paper leaves more than 3 s.e. apart, and what is known of them:"
LEFT_COLUMNS = ("Table", *COLUMNS[:-1], "Reason")
UNEXPLAINED = "unexplained"

Line = Sequence[str]


def write_comparison(cells: pd.DataFrame, folder: Path) -> list[Path]:
    """Write `comparison.{md,csv}` of the cells of comparison.compare.

    The CSV holds all alternatives, unscaled (comparison.CELL_COLUMNS).
    """
    texts = {"md": comparison_markdown(cells), "csv": csv_text(cells[list(CELL_COLUMNS)])}
    return [write_text(folder / f"comparison.{kind}", text) for kind, text in texts.items()]


def comparison_markdown(cells: pd.DataFrame) -> str:
    """The whole comparison as Markdown."""
    parts = [f"# {TITLE}", INTRO, markdown_table(SUMMARY_HEADING, summary_lines(cells)), RULE]
    if left := left_lines(cells):
        parts += [LEFT, markdown_table(LEFT_COLUMNS, left)]
    for title, rows in cells.groupby("title", sort=False):
        default = rows[rows["default"]]
        parts += [f"## {title}", f"{count_line(default)} (our default)."]
        parts.append(markdown_table(COLUMNS, cell_lines(default)))
    return "\n\n".join(parts) + "\n"


def count_line(cells: pd.DataFrame) -> str:
    """`38 of 42 within 3 s.e.`; empty where there is no cell."""
    if cells.empty:
        return ""
    return f"{(~cells['outside']).sum()} of {len(cells)} within {LIMIT:g} s.e."


def summary_lines(cells: pd.DataFrame) -> list[Line]:
    """Per printed table: its title and the counts of the default and of preset=paper; the sums."""
    sets = [cells[cells["default"]], cells[cells["preset"]]]
    titles = cells["title"].unique()
    lines: list[Line] = [
        (title, *(count_line(rows[rows["title"] == title]) for rows in sets)) for title in titles
    ]
    covered = sets[1]["title"].unique()
    if len(titles) > 1 and len(covered):
        # Of the tables that the rule covers, so that the columns can be compared.
        sums = (count_line(rows[rows["title"].isin(covered)]) for rows in sets)
        lines.append(("All with preset=paper", *sums))
    return lines


def left_lines(cells: pd.DataFrame) -> list[Line]:
    """The LEFT_COLUMNS of the cells that preset=paper leaves outside.

    The reasons are tested ones, conjectures and oddities (NOTES); the method `*` is for all methods
    of a table's column.
    """
    notes = pd.read_csv(NOTES).set_index(["table", "method", "metric"])["note"].to_dict()
    lines: list[Line] = []
    for title, rows in cells[cells["preset"]].groupby("title", sort=False):
        for line, row in zip(cell_lines(rows), rows.to_dict("records"), strict=True):
            if row["outside"]:
                of_column = notes.get((row["table"], "*", row["metric"]), UNEXPLAINED)
                reason = notes.get((row["table"], row["method"], row["metric"]), of_column)
                lines.append((str(title), *line[:-1], reason))
    return lines


def cell_lines(cells: pd.DataFrame) -> list[Line]:
    """The COLUMNS of each cell of one printed table, scaled and rounded."""
    digits = {str(key): _digits(rows, str(key)) for key, rows in cells.groupby("metric")}
    return [_cell_line(row, digits[row["metric"]]) for row in cells.to_dict("records")]


def _digits(cells: pd.DataFrame, key: str) -> int:
    """Decimal places of a column: as many as our spreads need, at least those that are printed."""
    scale = 10.0 ** metric(key).power
    digits = decimals(*(list(cells[name] * scale) for name in ("ours", "ours_two_se")))
    # The paper's trailing zeros aside.
    printed = [f"{value:.4f}".rstrip("0").partition(".")[2] for value in cells["printed"] * scale]
    return max(digits, *map(len, printed))


def _cell_line(row: Mapping[Hashable, Any], digits: int) -> Line:
    column, z = metric(row["metric"]), row["z"]
    scale = 10.0**column.power
    printed, ours = (
        f"{number(row[name] * scale, digits)} ± {number(row[f'{name}_two_se'] * scale, digits)}"
        for name in ("printed", "ours")
    )
    return (
        method_name(row["variant"]),
        f"{column.text} {column.scale}",
        printed,
        ours,
        _signed(row["difference"] * scale, digits),
        _signed(z, 1),
        "" if abs(z) <= LIMIT else "▲" if z > 0 else "▼",
    )


def _signed(value: float, digits: int) -> str:
    return f"{'+' if value > 0 else ''}{number(value, digits)}"
