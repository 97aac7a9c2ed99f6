"""The files of a report, and what it prints: tables, verdicts and groups of benchmarks, the page.

The report stage and the program score both use it, so a benchmark and a person's file get the same.
"""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from textwrap import wrap
from types import MappingProxyType

import pandas as pd
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from utility_calibration.metrics.registry import PURPOSES

from ..harness.artifacts import json_text, write_json
from ..harness.progress import OpenConsole, console
from ..scoring.decisions import Decisions
from ..scoring.files import DIGITS, csv_text
from ..scoring.uses import is_own, is_use
from .formats import latex, markdown
from .leaderboard import Leaderboard
from .page import report_html, report_markdown
from .sections import Section
from .table_notes import brief_notes, smaller_is_better
from .tables import Form, ResultTable
from .verdict import Verdict
from .wording import TextTable

SCORES = ("brier", "nll", "accuracy")  # columns next to the verdict's where the terminal is narrow
NOTE_LINES = 7
UNLIMITED = 1000
NO_BREAK = "\u00a0"
COMPARED = ("nll", "brier", *PURPOSES)
"""What people compare between runs: all metrics of all benchmarks would not fit on a screen."""


def section_texts(section: Section, prefix: str = "") -> dict[str, str]:
    """The tables, and `<prefix>verdict.json` and `<prefix>groups.csv`, by the names of their files.

    A table is `<name>.tex`, `.md` and `.csv` (unscaled, decisions.COLUMNS).
    """
    texts: dict[str, str] = {}
    for table in section.tables:
        name, keys = table.spec.name, [column.metric.key for column in table.columns]
        texts |= {f"{name}.tex": latex(table), f"{name}.md": markdown(table)}
        texts[f"{name}.csv"] = csv_text(table.decisions.frame(keys))
    content = asdict(section.verdict)
    if section.groups:
        content["groups"] = {
            "sentences": section.groups,
            "gaps": [asdict(gap) for gap in section.gaps],
            "repairs": [asdict(repair) for repair in section.repairs],
            "verdicts": {name: asdict(part.verdict) for name, part in section.parts.items()},
        }
    texts[f"{prefix}verdict.json"] = json_text(content)
    if section.parts:
        parts = section.parts.items()
        frames = [p.decisions.frame().assign(group=name, points=p.points) for name, p in parts]
        texts[f"{prefix}groups.csv"] = csv_text(pd.concat(frames))
    return texts


def write_metrics(folder: Path, benchmarks: Sequence[Decisions]) -> Path:
    """Write <method>.json for `dvc metrics`: of each metric COMPARED the mean over the benchmarks.

    Files of methods that are not in this report are removed. Return the folder.
    """
    frames = [each.frame([key for key in COMPARED if each.column(key)]) for each in benchmarks]
    means = pd.concat(frames).groupby(["method", "metric"], sort=False)["mean"].mean()
    written = []
    for method, of_method in means.groupby(level="method", sort=False):
        by_metric = of_method.droplevel("method").items()
        numbers = {key: float(f"{value:.{DIGITS}g}") for key, value in by_metric}
        written.append(write_json(folder / f"{method}.json", numbers))
    for other in {*folder.glob("*.json")} - {*written}:
        other.unlink()
    return folder


def page_texts(
    folder: Path,
    stem: str,
    heads: tuple[str, str],
    main: Sequence[Section],
    made: Mapping[str, str],
    leaderboard: Leaderboard | None = None,
    comparison: TextTable | None = None,
    figures: Mapping[str, Mapping[str, Path]] = MappingProxyType({}),
) -> dict[str, str]:
    """`<stem>.html` and `.md`.

    Args:
        heads: title and `about`; the rest is as in page.py.
        folder: where the texts will be; pictures are addressed from there.
    """
    sections = [each for section in main for each in (section, *section.parts.values())]
    page = report_html(*heads, sections, made, comparison, leaderboard, figures)
    pictures = {}
    for name, paths in figures.items():
        if "present" in paths:
            pictures[name] = Path(os.path.relpath(paths["present"], folder)).as_posix()
    text = report_markdown(heads[0], sections, leaderboard, pictures)
    return {f"{stem}.html": page, f"{stem}.md": text}


def print_sections(sections: Sequence[Section]) -> None:
    """Print for each benchmark its answer, what to take, and the grid; pages have all else.

    A benchmark's title stands before its answer if there are several.
    """
    for section in sections:
        title = section.spec.title if len(sections) > 1 else ""
        _print_answer(section.verdict, title)
        _print_grid(section.verdict)
        print_lines(section.main_groups, console)


def print_tables(tables: Iterable[ResultTable], console: Console, wide: bool = False) -> None:
    """Print the columns that fit, or all if `wide`, then the notes in short, equal ones once."""
    is_terminal, shown_on = console.is_terminal, console
    if wide:
        shown_on = OpenConsole(file=console.file, width=UNLIMITED, force_terminal=is_terminal)
    directions, others, numbers_left = list[str](), list[str](), set[int]()
    for table in tables:
        cut = _cut_to(table, shown_on.width, is_terminal)
        shown_on.print(_rich_table(cut, is_terminal), soft_wrap=False)
        directions.append(smaller_is_better(cut))
        numbers_left.add(len(table.columns) - len(cut.columns))
        others += brief_notes(cut, "Bold" if is_terminal else "Star")
        others += cut.spec.remarks
    notes = dict.fromkeys([*directions, *_on_numbers_left(numbers_left), *others])
    print_lines(_lines_of_notes(list(notes), console.width), console, style="dim")


def _on_numbers_left(numbers: Collection[int]) -> list[str]:
    """The note on how many columns tables leave out, each one of these `numbers`."""
    most = max(numbers, default=0)
    if not most:
        return []
    columns = "column is" if most == 1 else "columns are"
    number = f"{most}" if len(numbers) == 1 else f"Up to {most}"
    return [f"{number} more {columns} in the table's files."]


def _cut_to(table: ResultTable, width: int, is_terminal: bool) -> ResultTable:
    """The table with the columns that fit, at least one; those of the verdict go first.

    Of these a person's own utilities go before all others.
    """
    order = [column.metric.key for column in table.columns]
    first = [key for key in order if is_own(key)]
    first += [key for key in order if is_use(key)]
    first += [key for key in SCORES if key in order]
    kept: list[str] = []
    for key in dict.fromkeys([*first, *order]):
        wider = _rich_table(table.with_columns([*kept, key]), is_terminal)
        if kept and Console(width=UNLIMITED).measure(wider).maximum > width:
            break
        kept.append(key)
    return table.with_columns(kept)


def _lines_of_notes(notes: list[str], width: int) -> list[str]:
    """As many notes as NOTE_LINES hold; a note is printed whole or not at all."""
    lines = wrap(" ".join(notes), width)
    for count in range(len(notes) - 1, -1, -1):
        if len(lines) <= NOTE_LINES:
            break
        lines = wrap(" ".join([*notes[:count], "The table's files have all notes."]), width)
    return lines


def _rich_table(table: ResultTable, is_terminal: bool) -> Table:
    """The table for rich: best cells bold, with a star where no bold is shown (a log, a pipe)."""
    title = Text(table.spec.title)  # a person's text is no markup
    shown = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False)
    shown.title_justify, shown.title_style = "left", "bold"
    form = Form(
        lambda m: escape(f"{m.text}\n{m.scale}".strip()),
        best=f"[bold green]{'' if is_terminal else '*'}{{}}[/]",
        note="\n({})",
    )
    (first, *headings), rows = table.lines(form)
    shown.add_column(first, no_wrap=True)
    for heading in headings:
        shown.add_column(heading, justify="right", overflow="fold")
    for row in rows:
        shown.add_row(*row)
    return shown


def _print_answer(verdict: Verdict, title: str) -> None:
    """Print whether the present probabilities hold, where they fail, what to take, and how."""
    answer = verdict.answer
    console.print()
    text = f"{title}: {answer.sentence}" if title else answer.sentence
    print_lines([text], console, style="bold")
    print_lines(filter(None, [answer.reason, answer.place, *verdict.cautions]), console)
    console.print()
    advice = [" ".join(filter(None, [verdict.headline, verdict.by_use]))]
    print_lines(filter(None, advice), console)
    for line in verdict.commands:  # as they are typed, so never wrapped
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _print_grid(verdict: Verdict) -> None:
    """Print a sign per method and use, and below it what the signs mean."""
    if not verdict.uses:
        return
    grid = _grid_of(verdict, is_narrow=False)
    if Console(width=UNLIMITED).measure(grid).maximum > console.width:
        grid = _grid_of(verdict, is_narrow=True)
    console.print(grid, soft_wrap=False)
    print_lines(verdict.legend, console, style="dim")
    console.print()


def _grid_of(verdict: Verdict, is_narrow: bool) -> Table:
    """The grid for rich. If it `is_narrow`, headings have a word a line, and names may wrap."""
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    grid.add_column("Method", no_wrap=not is_narrow)
    for use in verdict.uses:
        heading = escape(use.label.replace(" ", "\n") if is_narrow else use.label)
        grid.add_column(heading, justify="center", no_wrap=True)
    for method, *signs in verdict.grid:
        grid.add_row(method, *signs)
    return grid


def print_lines(texts: Iterable[str], console: Console, style: str = "") -> None:
    """Print paragraphs, wrapped at words."""
    for text in texts:
        # In the legend a sign and two spaces come first: further lines begin below the meaning.
        indent = " " * 3 if text[1:3] == "  " else ""
        together = text.replace(" %", f"{NO_BREAK}%")
        for line in wrap(together, console.width, subsequent_indent=indent):
            shown = line.replace(NO_BREAK, " ")
            console.print(shown, style=style, highlight=False, markup=False)
