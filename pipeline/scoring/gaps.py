"""How far a metric differs between two groups of points, and what patches of groups changed.

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

REPAIRS, PLAIN = "logit_shift_groups", ("logit_shift", "temperature", "uncalibrated")
"""The method with patches of groups, and those without; the first that was scored is compared."""
REPAIRED = ("u_cwe", "u_topk")
"""The metrics whose utilities the patches of groups are audited for."""
CLOSED, OPEN = "closed", "still beyond noise"
NONE, OPENED = "within noise without and with them", "beyond noise only with them"
UNKNOWN = "no floor, or too few points of a class, to tell"


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


@dataclass(frozen=True)
class Repair:
    """One error of one group, without and with patches of groups.

    `method`, `plain`: the rows compared, with and without; `errors`: without and with, means over
    splits; `floor`: the 95 % quantile of the noise floor with them; `outcome`: one of the words.
    """

    group: str
    metric: str
    method: str
    plain: str
    errors: tuple[float, float]
    floor: float
    outcome: str


def repairs_of(groups: Mapping[str, Decisions]) -> list[Repair]:
    """What the row REPAIRS changed in each group, against the first of the rows PLAIN."""
    return [
        Repair(name, key, REPAIRS, plain, (before.mean, after.mean), after.floor_q95, outcome)
        for name, own in groups.items()
        for plain in [method for method in PLAIN if method in own.methods][:1]
        for key in REPAIRED
        if (REPAIRS, key) in own.rows
        for before, after in [(own.rows[plain, key], own.rows[REPAIRS, key])]
        for outcome in [_outcome(before, after)]
    ]


def _outcome(before: Decision, after: Decision) -> str:
    if after.within_noise is None or before.beyond_floor is None:
        return UNKNOWN
    if after.within_noise:
        return CLOSED if before.beyond_floor else NONE
    return OPEN if before.beyond_floor else OPENED


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
