"""Tables and verdicts on the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from textwrap import wrap

from rich import box
from rich.console import Console
from rich.table import Table

from pipeline.reporting.formats import plain_cell
from pipeline.reporting.names import NOISE_FLOOR, method_name
from pipeline.reporting.tables import ResultTable
from pipeline.reporting.verdict import Verdict
from pipeline.scoring.choice import is_use

SCORES = ("brier", "nll", "accuracy")
"""Columns that come next to those of the verdict where a table is too wide."""
NOTE_LINES = 5
UNLIMITED = 1000


def rich_table(table: ResultTable, starred: bool) -> Table:
    """The table for rich: best cells bold, the noise floor dimmed below a rule.

    `starred`: best cells get a star, for output that shows no bold.
    """
    shown = Table(title=table.spec.title, box=box.SIMPLE_HEAD, pad_edge=False)
    shown.title_justify, shown.title_style = "left", "bold"
    best = f"[bold green]{'*' if starred else ''}{{}}[/]"
    shown.add_column("Method", no_wrap=True)
    for column in table.columns:
        heading = f"{column.metric.text}\n{column.metric.scale}"
        shown.add_column(heading, justify="right", overflow="fold")
    for method, cells in table.rows:
        shown.add_row(method_name(method), *(plain_cell(cell, best) for cell in cells))
    if table.has_floor:
        shown.add_section()
        shown.add_row(NOISE_FLOOR, *(c.floor or "–" for c in table.columns), style="dim")
    return shown


def print_tables(tables: Iterable[ResultTable], console: Console, wide: bool = False) -> None:
    """Print tables, then their notes in short, equal ones once.

    A table has as many columns as fit, first those that the verdict rests on; the files have all.

    Args:
        wide: print all columns, however long the lines are.
    """
    shown_on = console
    if wide:
        terminal = console.is_terminal
        shown_on = Console(file=console.file, width=UNLIMITED, force_terminal=terminal)
    starred = not console.is_terminal  # stars for bold in a log or a pipe
    notes: dict[str, None] = {}
    for table in tables:
        keys = fitting_columns(table, shown_on.width, starred)
        cut = table.with_columns(keys)
        shown_on.print(rich_table(cut, starred), soft_wrap=False)
        if left := len(table.columns) - len(keys):
            columns = "column is" if left == 1 else "columns are"
            notes[f"{left} more {columns} in the table's files."] = None
        notes.update(dict.fromkeys([*cut.brief("Star" if starred else "Bold"), *cut.spec.remarks]))
    lines = wrap(" ".join(notes), console.width)
    whole = list(notes)
    while len(lines) > NOTE_LINES and whole:  # a note is printed whole or not at all
        whole.pop()
        lines = wrap(" ".join([*whole, "The table's files have all notes."]), console.width)
    print_lines(lines, console, style="dim")


def fitting_columns(table: ResultTable, width: int, starred: bool) -> list[str]:
    """The metrics whose columns fit into `width`, at least one, in the order of the table."""
    order = [column.metric.key for column in table.columns]
    first = [key for key in order if is_use(key)]
    chosen: list[str] = []
    for key in dict.fromkeys([*first, *(key for key in SCORES if key in order), *order]):
        keys = [other for other in order if other in (*chosen, key)]
        shown = rich_table(table.with_columns(keys), starred)
        if chosen and Console(width=UNLIMITED).measure(shown).maximum > width:
            break
        chosen = keys
    return chosen


def print_verdict(verdict: Verdict, title: str, console: Console) -> None:
    """Print the headline, a sign per method and use, and the summary, wrapped at words."""
    text = f"{title}: {verdict.headline}" if title else verdict.headline
    print_lines([text], console, style="bold")
    if verdict.uses:
        grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
        grid.add_column("Method", no_wrap=True)
        for use in verdict.uses:
            longest = max(map(len, use.label.split()))
            grid.add_column(use.label, justify="center", min_width=longest, overflow="fold")
        for method, *signs in verdict.grid:
            grid.add_row(method, *signs)
        console.print(grid, soft_wrap=False)
        print_lines([verdict.legend], console, style="dim")
    print_lines(verdict.summary, console)


def print_lines(texts: Iterable[str], console: Console, style: str = "") -> None:
    """Print paragraphs, wrapped at words."""
    for text in texts:
        for line in wrap(text, console.width):
            console.print(line, style=style, highlight=False, markup=False)
