"""results/report.html: tables, figures, counts against the paper and what made them."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from pipeline.reporting import table_formats
from pipeline.reporting.page import page, scrolling
from pipeline.reporting.table_model import ResultTable

FIGURE_CAPTION = (
    "Share of sampled utilities whose calibration error is at most e: one curve per method, the "
    "mean over the splits of the sorted errors. The grey band is the noise floor: 5 % to 95 % of "
    "the curves that a perfectly calibrated classifier would show on as many test points."
)
STUDY_CAPTIONS = {
    "history": "Patching against users with gain matrices of their own (appendix), sampled anew "
    "in every iteration: the worst user's calibration error, and the spread over all users.",
    "snapshots": "The distribution of all users' calibration errors at selected iterations.",
}
"""The figures of the dynamics stage, in their order on the page."""


@dataclass(frozen=True)
class Section:
    """One benchmark on the page. `facts` are lines of text on where its logits come from.

    `study_svgs` are the figures of STUDY_CAPTIONS, where there are any.
    """

    key: str
    title: str
    tables: Sequence[ResultTable]
    figure_svg: Path | None
    facts: Sequence[str] = ()
    study_svgs: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class Provenance:
    """What made the numbers: configuration as plain values, versions of the libraries."""

    suite: str
    configuration: Mapping[str, Any]
    versions: Mapping[str, str]


def report_html(sections: Sequence[Section], comparison: str, provenance: Provenance) -> str:
    """The whole page. `comparison` is its summary as HTML, or empty where nothing is printed."""
    links = [f'<a href="#{escape(s.key)}">{escape(s.title)}</a>' for s in sections]
    parts = [_introduction(provenance.suite)]
    if comparison:
        links.append('<a href="#comparison">Against the paper</a>')
    parts.append(f'<nav>{"".join(links)}<a href="#made">How it was made</a></nav>')
    parts += [_section(section) for section in sections]
    if comparison:
        parts.append(
            '<h2 id="comparison">Against the paper</h2>\n<p>Printed cells that ours match within '
            "three joint standard errors; cell by cell in <code>tables/comparison.html</code>.</p>"
            f"\n{comparison}"
        )
    parts.append(_provenance(provenance))
    return page("Utility calibration of multiclass classifiers", "\n".join(parts))


def _introduction(suite: str) -> str:
    return (
        f"<p>Results of the suite <b>{escape(suite)}</b>: post-hoc calibration methods on cached "
        "logits, scored on held-out points. Errors are shares or units of utility, scaled as the "
        "column says; smaller is better except for accuracy.</p>"
    )


def _section(section: Section) -> str:
    parts = [f'<h2 id="{escape(section.key)}">{escape(section.title)}</h2>']
    parts += [f'<p class="note">{escape(fact)}</p>' for fact in section.facts]
    for number, table in enumerate(section.tables):
        if number:
            parts.append(f"<h3>{escape(table.title)}</h3>")
        parts.append(scrolling(table_formats.html(table)))
        if not number:
            parts.append(f'<p class="note">{escape(" ".join(table.notes))}</p>')
    if section.figure_svg is not None:
        alternative = f"eCDF of utility calibration errors, {section.title}"
        parts.append(_figure(section.figure_svg, alternative, FIGURE_CAPTION))
    for kind, svg in section.study_svgs.items():
        alternative = f"Patching against sampled users, {kind}, {section.title}"
        parts.append(_figure(svg, alternative, STUDY_CAPTIONS[kind]))
    return "\n".join(parts)


def _figure(svg: Path, alternative: str, caption: str) -> str:
    # As an image of its own, so that the ids inside several figures cannot collide.
    data = base64.b64encode(svg.read_bytes()).decode("ascii")
    return (
        f'<figure>\n<img alt="{escape(alternative)}" '
        f'src="data:image/svg+xml;base64,{data}">\n<figcaption>{caption}</figcaption>\n'
        "</figure>"
    )


def _provenance(provenance: Provenance) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in provenance.versions.items())
    configuration = OmegaConf.to_yaml(OmegaConf.create(dict(provenance.configuration)))
    return (
        '<h2 id="made">How it was made</h2>\n'
        f"<p>Suite <code>{escape(provenance.suite)}</code>. Versions: {escape(versions)}.</p>\n"
        "<details open><summary>Configuration</summary>\n"
        f"<pre><code>{escape(configuration)}</code></pre>\n</details>"
    )
