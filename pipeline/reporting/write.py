"""Write and print what a report says: tables, verdicts and groups of its benchmarks, and the page.

The report stage and scripts/score.py both use it, so a benchmark and a person's file get the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from textwrap import wrap

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from metrics.registry import metric
from pipeline.harness.artifacts import write_json, write_text
from pipeline.harness.progress import console
from pipeline.reporting.formats import cell_text, latex, markdown
from pipeline.reporting.leaderboard import Leaderboard
from pipeline.reporting.names import NOISE_FLOOR, method_name
from pipeline.reporting.page import report_html, report_markdown
from pipeline.reporting.sections import Section, section_of
from pipeline.reporting.tables import ResultTable
from pipeline.reporting.verdict import Verdict
from pipeline.reporting.wording import p_value, short
from pipeline.scoring.across_splits import SMALLEST_GROUP
from pipeline.scoring.choice import Gap, Repair, Use, gaps_between, is_use, repairs_of
from pipeline.scoring.files import Scores, csv_text
from pipeline.scoring.inference import SIZE

SCORES = ("brier", "nll", "accuracy")
"""Columns that come next to those of the verdict where a table is too wide for the terminal."""
NOTE_LINES = 5
UNLIMITED = 1000


@dataclass(frozen=True)
class Part:
    """One benchmark of a report, with a section for each group of its points that is large enough.

    `gaps`: how far each method and metric differs between two groups; `repairs`: what patches of
    groups changed; `sizes`: the groups' points.
    """

    section: Section
    groups: Mapping[str, Section]
    gaps: Sequence[Gap]
    repairs: Sequence[Repair]
    sizes: Mapping[str, int]

    @classmethod
    def of(cls, main: Section, scores: Scores) -> Part:
        """The part of a benchmark's section, which gets sentences on the groups."""
        groups, sentences = {}, []
        for place, (name, points) in enumerate(scores.groups.items()):
            of_group = scores.of_group(name)
            methods = [method for method in main.decisions.methods if method in of_group.methods]
            if methods:
                title = f"{main.spec.title}, group {name} ({points:,} points)"
                spec = replace(main.spec, title=title, name=f"{main.spec.name}_group_{place}")
                groups[name] = section_of(of_group, methods, [spec])
            else:
                sentences.append(
                    f"Group {name} ({points:,} points) is too small to be scored: some split has "
                    f"fewer than {SMALLEST_GROUP} of them in its test part."
                )
        decided = {name: section.decisions for name, section in groups.items()}
        gaps, repairs = gaps_between(decided), repairs_of(decided)
        of_uses = [_gap_of_use(gaps, use) for use in main.verdict.uses]
        sentences += [_words_of_gap(gap) for gap in of_uses if gap is not None]
        sentences += _words_of_repairs(repairs)
        return cls(replace(main, groups=sentences), groups, gaps, repairs, scores.groups)

    def write(self, folder: Path, prefix: str = "") -> list[Path]:
        """Write the tables, and `<prefix>verdict.json` and `<prefix>groups.csv`; their paths."""
        written, content = write_tables(self.section.tables, folder), asdict(self.section.verdict)
        if self.section.groups:
            content["groups"] = {
                "sentences": self.section.groups,
                "gaps": [asdict(gap) for gap in self.gaps],
                "repairs": [asdict(repair) for repair in self.repairs],
                "verdicts": {name: asdict(own.verdict) for name, own in self.groups.items()},
            }
        written.append(write_json(folder / f"{prefix}verdict.json", content))
        if self.groups:
            frames = [
                own.decisions.frame().assign(group=name, points=self.sizes[name])
                for name, own in self.groups.items()
            ]
            text = csv_text(pd.concat(frames))
            written.append(write_text(folder / f"{prefix}groups.csv", text))
        return written


def _gap_of_use(gaps: Sequence[Gap], use: Use) -> Gap | None:
    """The gap of the method that a use's verdict takes; where it takes none, the surest gap."""
    of_use = [gap for gap in gaps if gap.metric == use.metric and use.take in (gap.method, "")]
    return min(of_use, key=lambda gap: 1.0 if gap.p_value is None else gap.p_value, default=None)


def _words_of_gap(gap: Gap) -> str:
    column = metric(gap.metric)
    values = (max(value, 0.0) if column.has_floor else value for value in gap.beyond)
    larger, smaller = map(short, values)
    sure = "no interval is known, so the difference is not tested"
    if gap.p_value is not None:
        how = "by more than chance" if gap.p_value <= SIZE else "perhaps by chance alone"
        sure = f"they differ {how} ({p_value(gap.p_value)})"
    beyond = ", beyond chance" if column.has_floor else ""
    return (
        f"{column.text}, {method_name(gap.method)}{beyond}: {gap.larger} {larger}, "
        f"{gap.smaller} {smaller}; {sure}."
    )


def _words_of_repairs(repairs: Sequence[Repair]) -> list[str]:
    """A sentence for each group: whether its errors came down to the noise floor."""
    sentences: dict[str, list[str]] = {}
    for one in repairs:
        before, after = map(short, one.errors)
        start = f"Group {one.group}, {method_name(one.plain)} → {method_name(one.method)}: "
        error = f"{metric(one.metric).text} {before} → {after} (noise: {short(one.floor)})"
        sentences.setdefault(start, []).append(f"{error}, {one.outcome}")
    return [f"{start}{'; '.join(parts)}." for start, parts in sentences.items()]


def write_tables(tables: Iterable[ResultTable], folder: Path) -> list[Path]:
    """Write `<name>.tex`, `.md` and `.csv` (unscaled, decisions.COLUMNS) of each table."""
    written = []
    for table in tables:
        numbers = table.decisions.frame([column.metric.key for column in table.columns])
        texts = {"tex": latex(table), "md": markdown(table), "csv": csv_text(numbers)}
        name = table.spec.name
        written += [write_text(folder / f"{name}.{end}", text) for end, text in texts.items()]
    return written


def write_page(
    folder: Path,
    stem: str,
    heads: tuple[str, str],
    parts: Sequence[Part],
    made: Mapping[str, str],
    leaderboard: Leaderboard | None = None,
    comparison: Sequence[Sequence[str]] = (),
) -> list[Path]:
    """Write `<stem>.html` and `.md`; `heads`: title and introduction, the rest as in page.py."""
    sections = [section for part in parts for section in (part.section, *part.groups.values())]
    page = report_html(*heads, sections, made, comparison, leaderboard)
    text = report_markdown(heads[0], sections, leaderboard)
    return [write_text(folder / f"{stem}.html", page), write_text(folder / f"{stem}.md", text)]


def print_parts(parts: Sequence[Part], wide: bool = False) -> None:
    """Print the tables, then each verdict, with its benchmark's title if there are several."""
    print_tables([table for part in parts for table in part.section.tables], console, wide)
    for part in parts:
        title = part.section.spec.title if len(parts) > 1 else ""
        print_verdict(part.section.verdict, title, console)
        print_lines(part.section.groups, console)


def print_tables(tables: Iterable[ResultTable], console: Console, wide: bool = False) -> None:
    """Print tables, then their notes in short, equal ones once.

    A table has as many columns as fit, first those that the verdict rests on, or all if `wide`.
    """
    is_terminal, shown_on = console.is_terminal, console
    if wide:
        shown_on = Console(file=console.file, width=UNLIMITED, force_terminal=is_terminal)
    notes: dict[str, None] = {}
    for table in tables:
        cut = _fitting(table, shown_on)
        shown_on.print(_rich_table(cut, is_terminal), soft_wrap=False)
        if left := len(table.columns) - len(cut.columns):
            columns = "column is" if left == 1 else "columns are"
            notes[f"{left} more {columns} in the table's files."] = None
        brief = cut.brief("Bold" if is_terminal else "Star")
        notes.update(dict.fromkeys([*brief, *cut.spec.remarks]))
    lines = wrap(" ".join(notes), console.width)
    whole = list(notes)
    while len(lines) > NOTE_LINES and whole:  # a note is printed whole or not at all
        whole.pop()
        lines = wrap(" ".join([*whole, "The table's files have all notes."]), console.width)
    print_lines(lines, console, style="dim")


def _rich_table(table: ResultTable, is_terminal: bool) -> Table:
    """The table for rich: best cells bold, with a star where no bold is shown (a log, a pipe)."""
    shown = Table(title=table.spec.title, box=box.SIMPLE_HEAD, pad_edge=False)
    shown.title_justify, shown.title_style = "left", "bold"
    best = f"[bold green]{'' if is_terminal else '*'}{{}}[/]"
    shown.add_column("Method", no_wrap=True)
    for column in table.columns:
        heading = f"{column.metric.text}\n{column.metric.scale}"
        shown.add_column(heading, justify="right", overflow="fold")
    for method, cells in table.rows:
        shown.add_row(method_name(method), *(cell_text(cell, best=best) for cell in cells))
    if table.has_floor:
        shown.add_section()
        shown.add_row(NOISE_FLOOR, *(c.floor or "–" for c in table.columns), style="dim")
    return shown


def _fitting(table: ResultTable, console: Console) -> ResultTable:
    """The table with the columns that fit into the console, at least one, in their order."""
    order = [column.metric.key for column in table.columns]
    first = [*filter(is_use, order), *(key for key in SCORES if key in order)]
    chosen: list[str] = []
    for key in dict.fromkeys([*first, *order]):
        wider = _rich_table(table.with_columns([*chosen, key]), console.is_terminal)
        if chosen and Console(width=UNLIMITED).measure(wider).maximum > console.width:
            break
        chosen.append(key)
    return table.with_columns(chosen)


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
