"""The verdict on one forecast in a few lines of text."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

from metrics.certificate import CalibrationInterval
from metrics.registry import PURPOSES, metric


def report_of(
    metrics: Mapping[str, float],
    floors: Mapping[str, Mapping[str, float]],
    certificates: Mapping[str, CalibrationInterval],
) -> str:
    """Return a headline, a line per purpose (error, noise floor and bound), and the scores.

    A purpose is within noise if its error is at most the 95 % quantile of the errors that a
    perfectly calibrated forecast with these probabilities has. The bound holds for fresh points of
    the same kind with the confidence of the scorecard's certificates, 95 % by default.

    Args:
        metrics, floors, certificates: by metric, as in a `Scorecard`.
    """
    uses = {key: use for key, use in PURPOSES.items() if key in metrics}
    within = [
        use for key, use in uses.items() if key in floors and metrics[key] <= floors[key]["q95"]
    ]
    beyond = [use for key, use in uses.items() if use not in within and key in floors]
    verdicts = [(within, "within noise of perfectly calibrated"), (beyond, "beyond noise")]
    said = "; ".join(f"{verdict} for {', '.join(named)}" for named, verdict in verdicts if named)
    unknown = "not compared with chance: no labels were redrawn"
    lines = [f"{(said or unknown).capitalize()}.", ""]
    lines.append(f"{'use':<18}{'error':>9}{'by chance':>12}{'at most':>10}")
    for key, use in uses.items():
        floor = f"{floors[key]['q95']:.4f}" if key in floors else "–"
        bound = f"{certificates[key].upper:.4f}" if key in certificates else "–"
        lines.append(f"{use:<18}{metrics[key]:>9.4f}{floor:>12}{bound:>10}")
    if floors:
        lines += ["", 'Observed errors up to the column "by chance" cannot be told from chance.']
    scores = [f"{metric(key).text} {metrics[key]:.4f}" for key in ("accuracy", "brier", "nll")]
    lines += ["", ", ".join(scores)]
    return "\n".join(lines)


def as_html(report: str) -> str:
    """Return a report as HTML: its lines of several columns are a table."""
    parts = []
    for block in report.split("\n\n"):
        heading, *rows = [re.split(" {2,}", html.escape(line)) for line in block.splitlines()]
        if len(heading) == 1:
            parts.append(f"<p>{' '.join(heading)}</p>")
            continue
        lines = ["<th>" + "<th>".join(heading), *("<td>" + "<td>".join(row) for row in rows)]
        parts.append("<table><tr>" + "<tr>".join(lines) + "</table>")
    return "\n".join(parts)
