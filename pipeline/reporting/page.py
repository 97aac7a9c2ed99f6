"""The report as a page and as Markdown: which method for which use, and where each errs most.

What the templates need is put together here as plain values; tables, texts and curves come from
the same objects as the other formats.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from metrics.registry import metric
from pipeline.reporting.formats import heading, markdown
from pipeline.reporting.leaderboard import Leaderboard
from pipeline.reporting.names import NOISE_FLOOR, method_name
from pipeline.reporting.sections import Curves, Section
from pipeline.reporting.style import look
from pipeline.reporting.tables import MARK, Cell
from pipeline.reporting.verdict import MEANINGS, SIGNS
from pipeline.reporting.wording import escape_markdown, markdown_table, number, p_value
from pipeline.scoring.files import rounded

STUDY_CAPTIONS = {
    "history": "The study of the paper's appendix: patching for users with a gain matrix each. "
    "Every iteration samples new users. The curves show the worst user's calibration error and "
    "the spread over all users. Aligned users tolerate hardly any error. A misaligned user cares "
    "for a part of the labels.",
    "snapshots": "The distribution of all users' calibration errors after some iterations.",
}
"""The figures of the dynamics stage, in their order on the page."""
FAMILY_TITLES = {"linear": "Users paid by class", "rank": "Users paid by rank"}
BLACK = "#000000"
DIGITS = 4
"""Significant digits of the numbers in the page's script."""


@cache
def templates() -> Environment:
    """The templates of the page, in the folder beside this file."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["typeset"] = typeset
    return environment


def typeset(sentence: str) -> Markup:
    """A sentence as HTML, in which names of metrics such as U_CWE have a subscript."""
    return Markup(re.sub(r"\bU_(\w+)", r"U<sub>\1</sub>", str(escape(sentence))))


def report_html(
    title: str,
    introduction: str,
    sections: Sequence[Section],
    made: Mapping[str, str],
    comparison: Sequence[Sequence[str]] = (),
    leaderboard: Leaderboard | None = None,
) -> str:
    """The whole page, self-contained: a reader fetches nothing, and all texts are escaped.

    `made`: sections.provenance_of; `comparison`: the lines of its summary, the heading first.
    """
    said = {"title": title, "introduction": introduction, "leaderboard": leaderboard}
    data = {section.spec.name: _data(section) for section in sections}
    page = templates().get_template("report.html")
    return page.render(
        **SHOWN_BY, **said, sections=sections, made=made, comparison=comparison, data=data
    )


def _image_data(path: Path) -> str:
    """An image for the page itself, which a reader can then pass on as one file."""
    return base64.b64encode(path.read_bytes()).decode("ascii")


def _unrounded(cell: Cell) -> dict[str, Any]:
    """What a reader sees of a cell's numbers by a switch or on hover, and the value to sort by."""
    row, column = cell.row, metric(cell.row.metric)
    digits, scale = len(cell.mean.partition(".")[2]), 10.0**column.power
    mean, half, floor = (value * scale for value in (row.mean, row.half_width, row.floor_q95))
    no_floor = " –" if column.has_floor else ""
    interval = f" [{number(mean - half, digits)}, {number(mean + half, digits)}]"
    return {
        "value": rounded(row.mean, DIGITS),
        "interval": interval if math.isfinite(half) else " [–]",
        "p": f" {p_value(row.p_value)}" if math.isfinite(row.p_value) else no_floor,
        "floor": f"own noise floor: {number(floor, digits)}" if math.isfinite(floor) else "",
    }


def _data(section: Section) -> dict[str, Any]:
    """What the page's script draws."""
    return {
        "looks": [_look(method) for method in section.decisions.methods],
        "families": [_family(curves) for curves in section.curves],
        "worst": {
            key: {method: worst.drawn() for method, worst in group.items()}
            for key, group in section.worst.items()
        },
    }


def _family(curves: Curves) -> dict[str, Any]:
    content = {
        "levels": curves.levels.tolist(),
        "curves": {method: errors.tolist() for method, errors in curves.errors.items()},
        "floor": curves.floor
        and {"low": curves.floor[0].tolist(), "high": curves.floor[1].tolist()},
    }
    title = f"{FAMILY_TITLES[curves.family]} ({curves.count} sampled)"
    return {"title": title, **rounded(content, DIGITS)}


def _look(method: str) -> dict[str, Any]:
    """A method's line as SVG draws it; style.css mixes its colour with that of the text."""
    style = look(method)
    dash = "" if style.dash == "solid" else " ".join(f"{d * style.width:g}" for d in style.dash[1])
    return {
        "key": method,
        "name": method_name(method),
        "color": "var(--ink)" if style.color == BLACK else style.color,
        "dash": dash,
        "width": style.width,
    }


SHOWN_BY: dict[str, Any] = {
    "captions": STUDY_CAPTIONS,
    "html_heading": partial(heading, form="html"),
    "look_of": _look,
    "mark": MARK,
    "noise_floor": NOISE_FLOOR,
    "method_name": method_name,
    "metric": metric,
    "image_data": _image_data,
    "unrounded": _unrounded,
    "words_of_sign": {SIGNS[name]: meaning for name, meaning in MEANINGS.items()},
}
"""What the templates call."""


def report_markdown(
    title: str, sections: Sequence[Section], leaderboard: Leaderboard | None = None
) -> str:
    """The whole report; its figures lie beside it."""
    parts = [f"# {escape_markdown(title)}"]
    if leaderboard is not None:
        parts += ["## Who wins", leaderboard.markdown(), leaderboard.note]
    parts += [_section_markdown(section) for section in sections]
    return "\n\n".join(parts).rstrip() + "\n"


def _section_markdown(section: Section) -> str:
    verdict = section.verdict
    parts = [f"## {escape_markdown(section.spec.title)}", "### Verdict"]
    if verdict.headline:
        parts.append(f"**{escape_markdown(verdict.headline)}**")
    if verdict.uses:
        headings = ["Method", *(escape_markdown(use.label) for use in verdict.uses)]
        rows = [[escape_markdown(name), *signs] for name, *signs in verdict.grid]
        parts += [markdown_table(headings, rows, text=len(headings)), verdict.legend]
    if verdict.summary:
        parts.append(_bullets(verdict.summary))
    if section.priced is not None:
        parts.append(section.priced.markdown())
    if section.groups:
        parts += ["### Groups", _bullets(section.groups)]
    if section.worst:
        parts += ["### Where it fails", *filter(None, [section.pooled])]
    for key, group in section.worst.items():
        lines = [f"{method_name(method)}: {worst.words}" for method, worst in group.items()]
        parts += [escape_markdown(metric(key).text), _bullets(lines)]
    parts += [markdown(table).rstrip() for table in section.tables]
    return "\n\n".join(parts)


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {escape_markdown(line)}" for line in lines)
