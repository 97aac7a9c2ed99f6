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
from pipeline.reporting.evidence import Statistics, number_of
from pipeline.reporting.intervals import SIZE
from pipeline.reporting.names import method_name
from pipeline.reporting.wording import short
from pipeline.scoring.tidy import CONFIDENCE


@dataclass(frozen=True)
class Gap:
    """The two groups that one method treats most differently by one metric.

    `larger`, `smaller`: their names; `values`: the metric of both, unscaled; `difference`: of
    their parts beyond chance; `p_value` of no difference between any two groups, NaN where a group
    has no interval (a single split).
    """

    method: str
    metric: str
    larger: str
    smaller: str
    values: tuple[float, float]
    difference: float
    p_value: float

    @property
    def words(self) -> str:
        """One sentence."""
        one, other = map(short, self.values)
        sure = "nothing is tested on a single split"
        if math.isfinite(self.p_value):
            told = "more than chance" if self.p_value <= SIZE else "no more than chance may do"
            sure = f"{told} (p = {short(self.p_value)})"
        beyond = " once their floors are taken off" if metric(self.metric).has_floor else ""
        return (
            f"{metric(self.metric).text}, {method_name(self.method)}: {self.larger} {one}, "
            f"{self.smaller} {other}; apart by {short(self.difference)}{beyond}: {sure}"
        )

    def as_json(self) -> dict[str, Any]:
        """Plain values; NaN becomes null."""
        known = math.isfinite(self.p_value)
        return {**vars(self), "p_value": self.p_value if known else None}


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
    by_excess = sorted(rows, key=lambda name: _excess(rows[name]))
    larger, smaller = by_excess[-1], by_excess[0]
    one, other = rows[larger], rows[smaller]
    difference = _excess(one) - _excess(other)
    error = math.hypot(_standard_error(one), _standard_error(other))
    tail = float(special.ndtr(-difference / error)) if error else 0.5
    p_value = float(np.minimum(1.0, math.comb(len(rows), 2) * 2 * tail))  # NaN stays
    values = (number_of(one, "mean"), number_of(other, "mean"))
    return Gap(method, key, larger, smaller, values, difference, p_value)


def _excess(row: Mapping[str, Any]) -> float:
    """The part of an error beyond chance; a score as it is."""
    floor = number_of(row, "floor_mean")
    return number_of(row, "mean") - (floor if math.isfinite(floor) else 0.0)


def _standard_error(row: Mapping[str, Any]) -> float:
    quantile = float(special.ndtri((1 + CONFIDENCE) / 2))
    return number_of(row, "half_width") / quantile
