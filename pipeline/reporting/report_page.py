"""The page that answers: which method for which use, where each errs most, by how much.

What the templates need is put together here as plain values; tables, texts and curves come from
the same objects as the other formats.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from matplotlib.colors import to_rgb

from metrics.ecdf import levels, thin
from metrics.registry import Metric, metric
from pipeline.reporting.collect import Statistics
from pipeline.reporting.curves import Curves
from pipeline.reporting.leaderboard import Leaderboard
from pipeline.reporting.markdown import TextTable
from pipeline.reporting.names import NOISE_FLOOR, method_name
from pipeline.reporting.style import look, mixed
from pipeline.reporting.table_formats import html_heading, number
from pipeline.reporting.table_model import MARK, Cell, ResultTable, TableSpec
from pipeline.reporting.verdict import MEANINGS, SIGNS, Verdict
from pipeline.reporting.wording import short
from pipeline.reporting.worst import Worst

STUDY_CAPTIONS = {
    "history": "Patching against users with gain matrices of their own (appendix), sampled anew "
    "in every iteration: the worst user's calibration error, and the spread over all users. "
    "Aligned users tolerate hardly any error; misaligned ones each care for a part of the labels.",
    "snapshots": "The distribution of all users' calibration errors at selected iterations.",
}
"""The figures of the dynamics stage, in their order on the page."""
FAMILY_TITLES = {"linear": "Users paid by class", "rank": "Users paid by rank"}
CURVE_POINTS = 121
PAPER, NIGHT = "#ffffff", "#14171a"
LEAST_CONTRAST = 3.0
"""Of lines against the page (WCAG 1.4.11)."""


@dataclass(frozen=True)
class Section:
    """One benchmark on the page. `facts` are lines of text on where its logits come from.

    `worst` utilities by metric and method, `pooled`: what they are over; `groups`: sentences on
    groups of points, which have sections of their own; `decisions`: what acting on each method's
    probabilities costs, where losses were given; `studies`: images of STUDY_CAPTIONS, if any.
    """

    tables: Sequence[ResultTable]
    statistics: Statistics
    verdict: Verdict
    decisions: TextTable | None = None
    curves: Sequence[Curves] = ()
    worst: Mapping[str, Mapping[str, Worst]] = field(default_factory=dict)
    pooled: str = ""
    groups: Sequence[str] = ()
    facts: Sequence[str] = ()
    studies: Mapping[str, Path] = field(default_factory=dict)

    @property
    def spec(self) -> TableSpec:
        """What the main table shows, the first of `tables`."""
        return self.tables[0].spec


@cache
def templates() -> Environment:
    """The templates of the page, in the folder beside this file."""
    environment = Environment(
        loader=PackageLoader("pipeline.reporting"),
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
    """The whole page, self-contained: a reader fetches nothing.

    `made`: `what` made the numbers, in words, and its `configuration` (sections.provenance_of).
    `comparison`: the lines of its summary, the heading first; empty where nothing is printed.
    Whatever is in a title, a file name or a class name is escaped by the templates.
    """
    return (
        templates()
        .get_template("report.html")
        .render(
            **SHOWN_BY,
            title=title,
            introduction=introduction,
            sections=sections,
            leaderboard=leaderboard,
            comparison=comparison,
            made=made,
            data={section.spec.name: _data(section) for section in sections},
        )
    )


def _image_data(path: Path) -> str:
    """An image for the page itself, which a reader can then pass on as one file."""
    return base64.b64encode(path.read_bytes()).decode("ascii")


def _unrounded(cell: Cell, column: Metric) -> dict[str, Any]:
    """What a reader sees of a cell's numbers by a switch or on hover, and the value to sort by."""
    digits, scale = len(cell.mean.partition(".")[2]), 10.0**column.power
    mean, half, floor = (cell.row[key] * scale for key in ("mean", "half_width", "floor_q95"))
    p = cell.row["p_value"]
    no_floor = " –" if column.has_floor else ""
    interval = f" [{number(mean - half, digits)}, {number(mean + half, digits)}]"
    return {
        "value": _rounded(cell.row["mean"]),
        "interval": interval if math.isfinite(half) else " [–]",
        "p": f" p = {short(p)}" if math.isfinite(p) else no_floor,
        "floor": f"own noise floor: {number(floor, digits)}" if math.isfinite(floor) else "",
    }


def _data(section: Section) -> dict[str, Any]:
    """What the page's script draws."""
    return {
        "looks": [_look(method) for method in section.spec.methods],
        "families": [_family(curves) for curves in section.curves],
        "worst": {
            key: {method: worst.drawn() for method, worst in group.items()}
            for key, group in section.worst.items()
        },
    }


def _family(curves: Curves) -> dict[str, Any]:
    index = thin(curves.count, CURVE_POINTS)
    floor = curves.floor and {"low": curves.floor.low[index], "high": curves.floor.high[index]}
    return {
        "title": f"{FAMILY_TITLES[curves.family]} ({curves.count} sampled)",
        "levels": _rounded(levels(curves.count)[index]),
        "curves": {method: _rounded(errors[index]) for method, errors in curves.errors.items()},
        "floor": floor and {key: _rounded(values) for key, values in floor.items()},
    }


def _rounded(values: Any) -> Any:
    """Plain numbers of four significant digits; None where there is none."""
    if np.ndim(values):
        return [_rounded(value) for value in np.asarray(values)]
    return float(f"{values:.4g}") if math.isfinite(values) else None


def _look(method: str) -> dict[str, Any]:
    """A method's line as SVG draws it, readable by day and by night."""
    style = look(method)
    dash = "" if style.dash == "solid" else " ".join(f"{d * style.width:g}" for d in style.dash[1])
    return {
        "key": method,
        "name": method_name(method),
        "light": readable(style.color, PAPER),
        "dark": readable(by_night(style.color), NIGHT),
        "dash": dash,
        "width": style.width,
    }


SHOWN_BY: dict[str, Any] = {
    "captions": STUDY_CAPTIONS,
    "html_heading": html_heading,
    "look_of": _look,
    "mark": MARK,
    "noise_floor": NOISE_FLOOR,
    "method_name": method_name,
    "metric": metric,
    "image_data": _image_data,
    "unrounded": _unrounded,
    "words_of_sign": {SIGNS[name]: meaning for name, meaning in MEANINGS.items()},
    "zip": zip,
}
"""What the templates call."""


def by_night(color: str) -> str:
    """Black as white and greys likewise, other colours as they are."""
    red, green, blue = to_rgb(color)
    return mixed("#ffffff", 0.0, red) if red == green == blue else color


def readable(color: str, background: str, least: float = LEAST_CONTRAST) -> str:
    """`color`, mixed with black or white until its contrast with `background` is enough."""
    target = 0.0 if _luminance(background) > 0.5 else 1.0
    for step in range(21):
        shown = mixed(color, target, step / 20)
        bright, dim = sorted((_luminance(shown), _luminance(background)), reverse=True)
        if (bright + 0.05) / (dim + 0.05) >= least:
            break
    return shown


def _luminance(color: str) -> float:
    """Relative luminance (WCAG 2)."""
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
