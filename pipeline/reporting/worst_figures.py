"""The figures of a section: eCDFs, and the diagrams of the worst utilities as small multiples."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from metrics.diagram import Bins, UtilityDiagram
from metrics.plots.utility import diagram_figure
from metrics.registry import metric
from metrics.utility_calibration import WorstInterval
from pipeline.reporting.drawings import Drawing
from pipeline.reporting.figures import ecdf_figure
from pipeline.reporting.names import method_name
from pipeline.reporting.report_page import Section
from pipeline.reporting.style import house_style, look
from pipeline.reporting.verdict import is_own
from pipeline.reporting.wording import interval
from pipeline.reporting.worst import Worst

STANDARD = ("u_cwe", "u_topk")
"""The classes with a figure; own utilities have one, too, the page shows all."""

WIDEST = 34
"""Characters of a line above a panel, beyond which it runs into its neighbour's."""


def drawings_of(section: Section, folder: Path, end: str = "") -> list[Drawing]:
    """The eCDFs (`ecdf<end>`) and the worst utilities (`worst<end>_<metric>`) as images."""
    curves = partial(ecdf_figure, section.curves, section.spec.title)
    first = [Drawing(curves, folder, f"ecdf{end}")] if section.curves else []
    return first + worst_drawings(section, folder, f"worst{end}")


def worst_drawings(section: Section, folder: Path, stem: str) -> list[Drawing]:
    """`<stem>_<metric>` for U_CWE, U_topK and own utilities."""
    return [
        Drawing(
            partial(worst_figure, group, f"{section.spec.title}: worst of {metric(key).text}"),
            folder,
            f"{stem}_{key}",
        )
        for key, group in section.worst.items()
        if key in STANDARD or is_own(key)
    ]


def worst_figure(utilities: Mapping[str, Worst], title: str) -> Figure:
    """A panel per method, in the method's colour."""
    panels = [(_heading(method, worst), _diagram(worst)) for method, worst in utilities.items()]
    with house_style():
        return diagram_figure(panels, title, [look(method).color for method in utilities])


def _heading(method: str, worst: Worst) -> str:
    ends = interval(worst.low, worst.high)
    line = f"{worst.name}, {ends}"
    where = line if len(line) <= WIDEST else f"{fill(worst.name, WIDEST)}\n{ends}"
    return f"{method_name(method)}\n{where}"


def _diagram(worst: Worst) -> UtilityDiagram:
    """The rounded numbers of a record as the diagram they were."""
    bins = [_array(column) for column in zip(*worst.diagram["bins"], strict=True)]
    sign = int(np.sign(worst.gap))
    return UtilityDiagram(
        predicted=_array(worst.diagram["at"]),
        difference=_array(worst.diagram["curve"]),
        low=_array(worst.diagram["low"]),
        high=_array(worst.diagram["high"]),
        bins=Bins(*bins),
        worst=WorstInterval(worst.error, worst.low, worst.high, sign),
        share=worst.share,
        gap=worst.gap,
        floor=worst.floor,
        n=0,
    )


def _array(values: Any) -> Any:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
