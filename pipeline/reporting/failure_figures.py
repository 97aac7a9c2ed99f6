"""The diagrams of the worst utilities as figures: small multiples, one file per class."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

from metrics.diagram import Bins, UtilityDiagram
from metrics.plots.utility import diagram_figure
from metrics.registry import metric
from metrics.utility_calibration import WorstInterval
from pipeline.reporting.failures import Failure
from pipeline.reporting.names import method_name
from pipeline.reporting.report_page import Section
from pipeline.reporting.style import house_style, look, save_figure
from pipeline.reporting.verdict import interval, is_own

STANDARD = ("u_cwe", "u_topk")
"""The classes with a figure; own utilities have one, too, the page shows all."""

WIDEST = 34
"""Characters of a line above a panel, beyond which it runs into its neighbour's."""


def write_failure_figures(section: Section, folder: Path, stem: str) -> list[Path]:
    """Write `<stem>_<metric>.{pdf,svg,png}` for U_CWE, U_topK and own utilities."""
    written: list[Path] = []
    for key, group in section.failures.items():
        if key not in STANDARD and not is_own(key):
            continue
        panels = [(_heading(m, failure), _diagram(failure)) for m, failure in group.items()]
        colors = [look(method).color for method in group]
        title = f"{section.title}: worst of {metric(key).text}"
        with house_style():
            figure = diagram_figure(panels, title, colors)
        written += save_figure(figure, folder, f"{stem}_{key}")
    return written


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
