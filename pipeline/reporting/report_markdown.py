"""The report as Markdown, readable without a browser: verdict, worst intervals, tables."""

from __future__ import annotations

from collections.abc import Sequence

from metrics.registry import metric
from pipeline.reporting.leaderboard import Leaderboard
from pipeline.reporting.markdown import escape_markdown, markdown_table
from pipeline.reporting.names import method_name
from pipeline.reporting.report_page import Section
from pipeline.reporting.table_formats import markdown
from pipeline.reporting.verdict import Verdict


def report_markdown(
    title: str, sections: Sequence[Section], leaderboard: Leaderboard | None = None
) -> str:
    """The whole report; its figures lie beside it."""
    parts = [f"# {escape_markdown(title)}"]
    if leaderboard is not None:
        parts += ["## Who wins", leaderboard.markdown(), leaderboard.note]
    parts += [_section(section) for section in sections]
    return "\n\n".join(parts).rstrip() + "\n"


def _section(section: Section) -> str:
    parts = [f"## {escape_markdown(section.spec.title)}", "### Verdict"]
    parts += _verdict(section.verdict)
    if section.decisions is not None:
        parts.append(section.decisions.markdown())
    if section.groups:
        parts += ["### Groups", _bullets(section.groups)]
    if section.worst:
        parts += ["### Where it fails", *filter(None, [section.pooled])]
    for key, group in section.worst.items():
        lines = [f"{method_name(method)}: {worst.words}" for method, worst in group.items()]
        parts += [escape_markdown(metric(key).text), _bullets(lines)]
    parts += [markdown(table).rstrip() for table in section.tables]
    return "\n\n".join(parts)


def _verdict(verdict: Verdict) -> list[str]:
    """Headline, grid of signs and summary."""
    parts = [f"**{escape_markdown(verdict.headline)}**"] if verdict.headline else []
    if verdict.uses:
        heading = ["Method", *(escape_markdown(use.label) for use in verdict.uses)]
        rows = [[escape_markdown(name), *signs] for name, *signs in verdict.grid]
        parts += [markdown_table(heading, rows, text=len(heading)), verdict.legend]
    return [*parts, _bullets(verdict.summary)] if verdict.summary else parts


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {escape_markdown(line)}" for line in lines)
