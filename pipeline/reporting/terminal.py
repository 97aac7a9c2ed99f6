"""A ResultTable on the terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.table import Table

from pipeline.reporting.table_formats import plain_cell, plain_floor_cell
from pipeline.reporting.table_model import Cell, ResultTable


def rich_table(table: ResultTable, starred: bool = False) -> Table:
    """The table for rich: best cells bold, the noise floor dimmed below a rule.

    `starred`: best cells get a star, for output that shows no bold.
    """
    shown = Table(title=table.title, box=box.SIMPLE_HEAD, pad_edge=False, title_justify="left")
    shown.title_style = "bold"
    shown.add_column("Method", no_wrap=True)
    for column in table.metrics:
        shown.add_column(f"{column.text}\n{column.scale}", justify="right", overflow="fold")
    for row in table.rows:
        shown.add_row(row.name, *(_cell(cell, starred) for cell in row.cells))
    if table.floor is not None:
        shown.add_section()
        cells = map(plain_floor_cell, table.floor.cells)
        shown.add_row(table.floor.name, *cells, style="dim")
    return shown


def _cell(cell: Cell, starred: bool) -> str:
    if not cell.best:
        return plain_cell(cell)
    return f"[bold green]{'*' if starred else ''}{plain_cell(cell)}[/]"


def print_tables(tables: Iterable[ResultTable], console: Console | None = None) -> None:
    """Print tables, then their notes, equal ones once.

    A narrow terminal folds cells. Where the output is no terminal (a log, a pipe) a table is as
    wide as it needs, and stars stand for bold.
    """
    console = console or Console()
    starred = not console.is_terminal
    notes: dict[str, None] = {}
    for table in tables:
        shown = rich_table(table, starred)
        natural = Console(width=1000).measure(shown).maximum
        wide = Console(file=console.file, width=max(console.width, natural))
        (wide if starred else console).print(shown)
        notes.update(dict.fromkeys(table.notes_with("Star" if starred else "Bold")))
    for note in notes:
        console.print(note, style="dim", highlight=False, markup=False)
