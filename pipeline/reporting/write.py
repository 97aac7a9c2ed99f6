"""Write and print what a report says: tables, verdicts and groups of its benchmarks, and the page.

The report stage and scripts/score.py both use it, so a benchmark and a person's file get the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pipeline.harness.artifacts import write_json, write_text
from pipeline.harness.progress import console
from pipeline.reporting.formats import latex, markdown
from pipeline.reporting.groups import Groups, groups_of
from pipeline.reporting.leaderboard import Leaderboard
from pipeline.reporting.page import report_html, report_markdown
from pipeline.reporting.sections import Section
from pipeline.reporting.tables import ResultTable
from pipeline.reporting.terminal import print_lines, print_tables, print_verdict
from pipeline.scoring.files import csv_text
from pipeline.scoring.read import Scores


@dataclass(frozen=True)
class Part:
    """One benchmark of a report, and the groups of its points."""

    section: Section
    groups: Groups

    @classmethod
    def of(cls, section: Section, scores: Scores) -> Part:
        """The part of a benchmark's section, with what the scores say of groups."""
        groups = groups_of(scores, section)
        return cls(replace(section, groups=groups.sentences), groups)

    @property
    def sections(self) -> list[Section]:
        """Those of all points and of each group."""
        return [self.section, *self.groups.sections.values()]

    def write(self, folder: Path, prefix: str = "") -> list[Path]:
        """Write the tables, and `<prefix>verdict.json` and `<prefix>groups.csv`; their paths."""
        written = write_tables(self.section.tables, folder)
        content = asdict(self.section.verdict) | self.groups.content
        written.append(write_json(folder / f"{prefix}verdict.json", content))
        if not self.groups.numbers.empty:
            text = csv_text(self.groups.numbers)
            written.append(write_text(folder / f"{prefix}groups.csv", text))
        return written


def write_tables(tables: Iterable[ResultTable], folder: Path) -> list[Path]:
    """Write `<name>.tex`, `.md` and `.csv` of each table; return the paths.

    The `.tex` holds a `table*` to be read with \\input (booktabs needed; bm and graphicx are used
    where loaded). The `.csv` is unscaled, to seven significant digits (decisions.COLUMNS).
    """
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
    """Write `<stem>.html` and `.md` and return their paths.

    Args:
        heads: the title and the introduction.
        made, comparison: as `page.report_html` takes them.
    """
    sections = [section for part in parts for section in part.sections]
    page = report_html(*heads, sections, made, comparison, leaderboard)
    text = report_markdown(heads[0], sections, leaderboard)
    return [write_text(folder / f"{stem}.html", page), write_text(folder / f"{stem}.md", text)]


def print_parts(parts: Sequence[Part], wide: bool = False) -> None:
    """Print the tables, then each verdict, with its benchmark's title if there are several."""
    print_tables((table for part in parts for table in part.section.tables), console, wide)
    for part in parts:
        title = part.section.spec.title if len(parts) > 1 else ""
        print_verdict(part.section.verdict, title, console)
        print_lines(part.section.groups, console)
