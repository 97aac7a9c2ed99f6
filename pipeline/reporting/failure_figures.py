"""The diagrams of the worst utilities as figures: small multiples, one file per class."""

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
from pipeline.reporting.failures import Failure
from pipeline.reporting.names import method_name
from pipeline.reporting.report_page import Section
from pipeline.reporting.style import house_style, look
from pipeline.reporting.verdict import interval, is_own

STANDARD = ("u_cwe", "u_topk")
"""The classes with a figure; own utilities have one, too, the page shows all."""

WIDEST = 34
"""Characters of a line above a panel, beyond which it runs into its neighbour's."""


def failure_drawings(section: Section, folder: Path, stem: str) -> list[Drawing]:
    """`<stem>_<metric>` for U_CWE, U_topK and own utilities."""
    return [
        Drawing(
            partial(failure_figure, group, f"{section.title}: worst of {metric(key).text}"),
            folder,
            f"{stem}_{key}",
        )
        for key, group in section.failures.items()
        if key in STANDARD or is_own(key)
    ]


def failure_figure(failures: Mapping[str, Failure], title: str) -> Figure:
    """A panel per method, in the method's colour."""
    panels = [
        (_heading(method, failure), _diagram(failure)) for method, failure in failures.items()
    ]
    with house_style():
        return diagram_figure(panels, title, [look(method).color for method in failures])


def _heading(method: str, failure: Failure) -> str:
    ends = interval(failure.low, failure.high)
    line = f"{failure.name}, {ends}"
    where = line if len(line) <= WIDEST else f"{fill(failure.name, WIDEST)}\n{ends}"
    return f"{method_name(method)}\n{where}"


def _diagram(failure: Failure) -> UtilityDiagram:
    """The rounded numbers of a record as the diagram they were."""
    bins = [_array(column) for column in zip(*failure.diagram["bins"], strict=True)]
    sign = int(np.sign(failure.gap))
    return UtilityDiagram(
        predicted=_array(failure.diagram["at"]),
        difference=_array(failure.diagram["curve"]),
        low=_array(failure.diagram["low"]),
        high=_array(failure.diagram["high"]),
        bins=Bins(*bins),
        worst=WorstInterval(failure.error, failure.low, failure.high, sign),
        share=failure.share,
        gap=failure.gap,
        floor=failure.floor,
        n=0,
    )


def _array(values: Any) -> Any:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)
