"""A metric's heading in LaTeX and in HTML, written as in the paper's tables.

Both follow from the plain heading: U_CWE, CWE_bin, "U_lin 95 %".
"""

from __future__ import annotations

import re
from html import escape

from metrics.registry import METRICS, Metric

UTILITY = re.compile(r"U_(.+?)( median| 95 %)?")
BINNED = re.compile(r"(.+)_bin")


def latex_heading(metric: Metric) -> str:
    """The heading in LaTeX without the scale; an own utility of a configuration as its key."""
    if metric.key not in METRICS:
        return r"\texttt{" + metric.key.replace("_", r"\_") + "}"
    if named := UTILITY.fullmatch(metric.text):
        statistic = (named[2] or "").replace("%", r"\%")
        return rf"$\mathcal{{U}}_{{\mathrm{{{named[1]}}}}}${statistic}"
    if binned := BINNED.fullmatch(metric.text):
        return rf"$\mathrm{{{binned[1]}}}^{{\mathrm{{bin}}}}$"
    return "Brier Score" if metric.key == "brier" else metric.text


def html_heading(metric: Metric) -> str:
    """The heading in HTML, which is Markdown too, without the scale."""
    if metric.key not in METRICS:
        return f"<code>{escape(metric.key)}</code>"
    if named := UTILITY.fullmatch(metric.text):
        return f"U<sub>{escape(named[1])}</sub>{named[2] or ''}"
    if binned := BINNED.fullmatch(metric.text):
        return f"{binned[1]}<sup>bin</sup>"
    return "Brier score" if metric.key == "brier" else metric.text
