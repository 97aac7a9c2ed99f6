"""How far a metric differs between two groups of points.

Errors grow as a group shrinks, calibrated or not. So of an error with a noise floor the floor's
mean at the group's size is taken off first; what is compared is the part beyond chance. Groups
share no points, so the variances of their intervals add up; the p-value of the largest of
K (K - 1) / 2 differences is Bonferroni's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import special

from pipeline.scoring.decisions import Decision, Decisions
from pipeline.scoring.tidy import CONFIDENCE


@dataclass(frozen=True)
class Gap:
    """The two groups that one method treats most differently by one metric.

    `larger`, `smaller`: their names; `values`: the metric of both, unscaled; `beyond`: their parts
    beyond chance, whose `difference` is tested; `p_value` of no difference between any two groups,
    None where a group has no interval (a single split without resampled points).
    """

    method: str
    metric: str
    larger: str
    smaller: str
    values: tuple[float, float]
    beyond: tuple[float, float]
    difference: float
    p_value: float | None


def gaps_between(groups: Mapping[str, Decisions]) -> list[Gap]:
    """The largest gap of each metric and method that all of at least two groups have."""
    first = next(iter(groups.values()), None)
    if first is None or len(groups) < 2:
        return []
    return [
        largest_gap({name: own.rows[method, key] for name, own in groups.items()})
        for key in first.shown
        for method in first.methods
        if all((method, key) in own.rows for own in groups.values())
    ]


def largest_gap(rows: Mapping[str, Decision]) -> Gap:
    """The largest gap between two groups; `rows`: one method and metric in each of two or more."""
    # Bonferroni's bound holds for the pair that is furthest apart, whatever its intervals.
    beyond = {name: row.mean - float(np.nan_to_num(row.floor_mean)) for name, row in rows.items()}
    smaller, *_, larger = sorted(beyond, key=beyond.__getitem__)
    difference = beyond[larger] - beyond[smaller]
    quantile = float(special.ndtri((1 + CONFIDENCE) / 2))
    error = math.hypot(*(rows[name].half_width / quantile for name in (larger, smaller)))
    p_value = None
    if math.isfinite(error):
        tail = float(special.ndtr(-difference / error)) if error else 0.5
        p_value = min(1.0, math.comb(len(rows), 2) * 2 * tail)
    return Gap(
        method=rows[larger].method,
        metric=rows[larger].metric,
        larger=larger,
        smaller=smaller,
        values=(rows[larger].mean, rows[smaller].mean),
        beyond=(beyond[larger], beyond[smaller]),
        difference=difference,
        p_value=p_value,
    )
