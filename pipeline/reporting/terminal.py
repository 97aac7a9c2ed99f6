"""A ResultTable on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from rich import box
from rich.console import Console
from rich.table import Table

from pipeline.reporting.table_formats import plain_cell, plain_floor_cell
from pipeline.reporting.table_model import Cell, ResultTable, Row


def rich_table(table: ResultTable, starred: bool = False) -> Table:
    """The table for rich: best cells bold, the noise floor dimmed below a rule.

    `starred`: best cells get a star, for output that shows no bold.
    """
    shown = Table(title=table.title, box=box.SIMPLE_HEAD, pad_edge=False, title_justify="left")
    shown.title_style = "bold"
    shown.add_column("Method", no_wrap=True)
    for column in table.metrics:
        shown.add_column(f"{column.text}\n{column.scale}", justify="right")
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

    No cell is folded: a terminal that is too narrow shows some columns below the others. Where the
    output is no terminal (a log, a pipe) a table is as wide as it needs, and stars stand for bold.
    """
    console = console or Console()
    starred = not console.is_terminal
    best = "Star" if starred else "Bold"
    notes: dict[str, None] = {}
    for table in tables:
        for part in [table] if starred else _parts_within(console.width, table):
            shown = rich_table(part, starred)
            width = max(console.width, _natural_width(shown)) if starred else None
            (Console(file=console.file, width=width) if starred else console).print(shown)
        notes.update(dict.fromkeys(table.notes_with(best)))
    for note in notes:
        console.print(note, style="dim", highlight=False, markup=False)


def _natural_width(shown: Table) -> int:
    return Console(width=1000).measure(shown).maximum


def _parts_within(width: int, table: ResultTable) -> Iterator[ResultTable]:
    """Tables of consecutive columns, as few as fit; only the first has the title."""
    start = 0
    while start < len(table.metrics):
        stop = start + 1
        part = _columns(table, start, stop)
        while stop < len(table.metrics):
            wider = _columns(table, start, stop + 1)
            if _natural_width(rich_table(wider)) > width:
                break
            part, stop = wider, stop + 1
        yield part
        start = stop


def _columns(table: ResultTable, start: int, stop: int) -> ResultTable:
    def cut(row: Row) -> Row:
        return replace(row, cells=row.cells[start:stop])

    return replace(
        table,
        title="" if start else table.title,
        metrics=table.metrics[start:stop],
        rows=tuple(map(cut, table.rows)),
        floor=None if table.floor is None else cut(table.floor),
    )
