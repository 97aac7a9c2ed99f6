"""How far groups of points are apart: the largest difference of a metric between two of them.

Errors grow as a group shrinks, calibrated or not. So of an error with a noise floor the floor's
mean at the group's size is taken off first; what is compared is the part beyond chance. Groups
share no points, so the variances of the bootstrap (or of the corrected t interval) add up; the
p-value of the largest of K (K - 1) / 2 differences is Bonferroni's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from metrics.registry import metric
from pipeline.reporting.collect import Statistics
from pipeline.reporting.intervals import SIZE
from pipeline.reporting.names import method_name
from pipeline.reporting.uses import Use
from pipeline.reporting.wording import short
from pipeline.scoring.tidy import CONFIDENCE


@dataclass(frozen=True)
class Gap:
    """The two groups that one method treats most differently by one metric.

    `larger`, `smaller`: their names; `values`: the metric of both, unscaled; `beyond`: their parts
    beyond chance, whose `difference` is tested; `p_value` of no difference between any two groups,
    NaN where a group has no interval (a single split).
    """

    method: str
    metric: str
    larger: str
    smaller: str
    values: tuple[float, float]
    beyond: tuple[float, float]
    difference: float
    p_value: float

    @property
    def words(self) -> str:
        """One sentence."""
        has_floor = metric(self.metric).has_floor
        larger, smaller = (short(max(value, 0.0) if has_floor else value) for value in self.beyond)
        sure = "a single split tests nothing"
        if math.isfinite(self.p_value):
            how = "more than chance" if self.p_value <= SIZE else "no more than chance may do"
            sure = f"they differ by {how} (p = {short(self.p_value)})"
        return (
            f"{metric(self.metric).text}, {method_name(self.method)}"
            f"{', beyond chance' if has_floor else ''}: "
            f"{self.larger} {larger}, {self.smaller} {smaller}; {sure}"
        )

    def as_json(self) -> dict[str, Any]:
        """Plain values; NaN becomes null."""
        return {**vars(self), "p_value": self.p_value if math.isfinite(self.p_value) else None}


def gap_of_use(gaps: Sequence[Gap], use: Use) -> Gap | None:
    """The gap of the method that a use's verdict takes; where it takes none, the surest gap."""
    of_use = [gap for gap in gaps if gap.metric == use.metric and use.take in (gap.method, "")]
    return min(
        of_use, key=lambda gap: 1.0 if math.isnan(gap.p_value) else gap.p_value, default=None
    )


def largest_gaps(
    groups: Mapping[str, Statistics], methods: Sequence[str], metrics: Sequence[str]
) -> list[Gap]:
    """The largest gap of each method and metric among `groups`; none for a single group."""
    if len(groups) < 2:
        return []
    return [_largest(groups, method, key) for key in metrics for method in methods]


def _largest(groups: Mapping[str, Statistics], method: str, key: str) -> Gap:
    rows = {name: statistics[method, key] for name, statistics in groups.items()}
    # Bonferroni's bound holds for the pair that is furthest apart, whatever its intervals.
    excesses = {name: _excess(row) for name, row in rows.items()}
    smaller, *_, larger = sorted(excesses, key=excesses.__getitem__)
    difference = excesses[larger] - excesses[smaller]
    quantile = float(special.ndtri((1 + CONFIDENCE) / 2))
    error = math.hypot(*(rows[name]["half_width"] / quantile for name in (larger, smaller)))
    tail = float(special.ndtr(-difference / error)) if error else 0.5
    p_value = float(np.minimum(1.0, math.comb(len(rows), 2) * 2 * tail))  # NaN stays
    values = (rows[larger]["mean"], rows[smaller]["mean"])
    beyond = (excesses[larger], excesses[smaller])
    return Gap(method, key, larger, smaller, values, beyond, difference, p_value)


def _excess(row: Mapping[str, Any]) -> float:
    """The part of an error beyond chance; a score as it is."""
    floor = row["floor_mean"]
    return float(row["mean"] - (floor if math.isfinite(floor) else 0.0))
