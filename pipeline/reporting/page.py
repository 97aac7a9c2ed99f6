"""The report as a page and as Markdown: which method for which use, and where each errs most."""

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from omegaconf import OmegaConf

from ..scoring.files import Scores
from .formats import heading, markdown
from .leaderboard import Leaderboard
from .looks import CURVE
from .names import MARK, heading_of, method_name
from .sections import Section
from .signs import MEANINGS, SIGNS
from .table_notes import all_notes, brief_notes
from .wording import TextTable, escape_markdown, markdown_table

STUDY_CAPTIONS = {
    "history": "The study of the paper's appendix: patching for users with a gain matrix each. "
    "Every iteration samples new users. The curves show the worst user's calibration error on the "
    "points that are patched and on held-out points. Aligned users tolerate hardly any error. A "
    "misaligned user cares for a part of the labels.",
    "snapshots": "The distribution of all users' calibration errors after some iterations, on one "
    "axis. Beside each panel are the medians. Below it is said where a median rises: patches that "
    "help the worst user of one iteration can harm those of the next.",
    "risk_gap": "Proposition 3.1: what users who act where the predicted utility is at least a "
    "threshold would save by the best monotone map of it, over their calibration error. The paper "
    "bounds it by twice this error.",
    "priors": "Who the users are: the paper draws their payoffs uniformly, the other columns from "
    "parts of the same sphere. A curve shows the share of users whose error is at most e.",
}
"""The figures of the stages dynamics and users, in their order on the page."""
INTRODUCTION = (
    "This page compares methods that repair probabilities, on {}. No method is tested on cases "
    "that it was fitted on. A calibration error says how far what came true is from what was "
    "predicted: for every range of predictions the differences of the cases in it are added and "
    "divided by the number of all cases, and the error is the largest of these sums."
)
PLACE_CAPTION = (
    "What was predicted, and what came true, with the model's probabilities. A dot is the mean of "
    "a group of cases with similar predictions. On the dashed line all comes true as predicted. If "
    "the probabilities were right, 95 % of the dots would lie in their grey bars. Shaded: the "
    "range of the largest error. Below: how many of the cases have which prediction."
)
NUMBERS = "What was measured"
"""The heading of the table of a page that has one benchmark alone."""
SVG_HEADER = re.compile(r"^.*?(?=<svg)|<metadata>.*?</metadata>|<!--.*?-->", re.DOTALL)
SVG_PLACES = re.compile(r'(?<= d=")[^"]*|(?<=<use )[^>]*')  # where drawings have coordinates
LONG_NUMBER = re.compile(r"(\d\.\d\d)\d+")
SVG_NAME = re.compile(f'<g id="({CURVE})?([^"]*)">')


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
    environment.filters["unbroken"] = unbroken
    return environment


def typeset(sentence: str) -> Markup:
    """A sentence as HTML, in which names of metrics such as U_CWE have a subscript."""
    return Markup(re.sub(r"\bU_(\w+)", r"U<sub>\1</sub>", str(escape(unbroken(sentence)))))


def unbroken(text: str) -> str:
    """The text with signs beside their numbers."""
    for words in ("∞, ", " %", "± ", "p = ", "p < "):
        text = text.replace(words, words.replace(" ", "\u00a0"))
    return text


def report_html(
    title: str,
    about: str,
    sections: Sequence[Section],
    made: Mapping[str, str],
    comparison: TextTable | None = None,
    leaderboard: Leaderboard | None = None,
    figures: Mapping[str, Mapping[str, Path]] = MappingProxyType({}),
) -> str:
    """The whole page, self-contained: a reader fetches nothing, and all texts are escaped.

    `about`: on what methods are compared; `made`: `provenance_of`; `comparison`: the lines
    of its summary, the heading first; `figures`: by section the SVG files that `drawings_of` names.
    """
    introduction = INTRODUCTION.format(about)
    said = {"title": title, "introduction": introduction, "leaderboard": leaderboard, "made": made}
    page = templates().get_template("report.html")
    return page.render(
        **SHOWN_BY, **said, sections=sections, comparison=comparison, figures=figures
    )


def provenance_of(what: str, scores: Sequence[Scores], methods: Sequence[str]) -> dict[str, str]:
    """`what` made the numbers, in words, and the `configuration` of the benchmarks' scores."""
    first = scores[0].facts
    configuration = {
        "benchmarks": [of_benchmark.benchmark for of_benchmark in scores],
        "splits": first["splits"],
        "evaluation": first["evaluation"],
        "calibrators": {method: first["calibrators"][method]["config"] for method in methods},
    }
    return {"what": what, "configuration": OmegaConf.to_yaml(OmegaConf.create(configuration))}


def inlined(path: Path) -> Markup:
    """An SVG as a part of the page, in which a pointer on a curve shows the curve's name.

    Other names of its parts leave, because names on a page must differ.
    """
    drawing = SVG_HEADER.sub("", path.read_text(encoding="utf-8"))
    drawing = SVG_PLACES.sub(lambda part: _shortened(part[0]), drawing)
    drawing = "\n".join(line.strip() for line in drawing.splitlines())
    return Markup(SVG_NAME.sub(lambda g: f"<g><title>{g[2]}</title>" if g[1] else "<g>", drawing))


def _shortened(places: str) -> str:
    """Coordinates with two decimals, in one line: a hundredth of a point is not seen."""
    return " ".join(LONG_NUMBER.sub(r"\1", places).split())


SHOWN_BY: dict[str, Any] = {
    "captions": STUDY_CAPTIONS,
    "place_caption": PLACE_CAPTION,
    "html_heading": partial(heading, form="html"),
    "mark": MARK,
    "brief_notes": brief_notes,
    "all_notes": all_notes,
    "method_name": method_name,
    "heading_of": heading_of,
    "image_data": lambda path: base64.b64encode(path.read_bytes()).decode("ascii"),
    "inlined": inlined,
    "words_of_sign": {SIGNS[name]: text.format("some class") for name, text in MEANINGS.items()},
}
"""What the templates call."""


def report_markdown(
    title: str,
    sections: Sequence[Section],
    leaderboard: Leaderboard | None = None,
    pictures: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The whole report as Markdown.

    Args:
        pictures: by section the address of the picture of its worst place.
    """

    def bullets(lines: Iterable[str]) -> str:
        return "\n".join(f"- {escape_markdown(line)}" for line in lines)

    parts = [f"# {escape_markdown(title)}"]
    if leaderboard is not None:
        parts += [f"**{escape_markdown(leaderboard.headline)}**", leaderboard.table.markdown()]
    for section in sections:
        verdict, answer = section.verdict, section.verdict.answer
        if section.spec.title != title:
            parts.append(f"## {escape_markdown(section.spec.title)}")
        parts.append("### Verdict")
        parts.append(f"**{escape_markdown(answer.sentence)}** {escape_markdown(answer.reason)}")
        if answer.place:
            parts.append(escape_markdown(answer.place))
        if section.spec.name in pictures:
            parts.append(f"![{escape_markdown(PLACE_CAPTION)}]({pictures[section.spec.name]})")
        parts += map(escape_markdown, verdict.cautions)
        advice = [verdict.headline, verdict.by_use]
        parts.append(" ".join(escape_markdown(text) for text in advice if text))
        if verdict.commands:
            parts.append("\n".join(["```bash", *verdict.commands, "```"]))
        if verdict.uses:
            headings = ["Method", *(escape_markdown(use.label) for use in verdict.uses)]
            rows = [[escape_markdown(name), *signs] for name, *signs in verdict.grid]
            parts += [markdown_table(headings, rows, text=len(headings)), bullets(verdict.legend)]
        for heading_of_part, lines in verdict.details.items():
            parts += [f"### {heading_of_part}", bullets(lines)]
        if section.costs is not None:
            parts.append(section.costs.markdown())
        if section.groups:
            parts += ["### Groups", bullets(section.groups)]
        if section.worst:
            parts += ["### Where does a method fail?", *filter(None, [section.pooled])]
        for key, group in section.main_places.items():
            places = (
                f"{method_name(method)}: {worst.words(key)}" for method, worst in group.items()
            )
            parts += [f"{escape_markdown(heading_of(key))}:", bullets(places)]
        first, *others = section.tables
        is_alone = section.spec.title == title
        named = replace(first, spec=replace(first.spec, title=NUMBERS)) if is_alone else first
        parts += [markdown(table, is_file=False).rstrip() for table in (named, *others)]
        parts += [table.markdown() for table in section.study_tables]
    return "\n\n".join(filter(None, parts)).rstrip() + "\n"
