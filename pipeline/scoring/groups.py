"""How far groups of points differ, and what patches of groups changed.

Errors grow as a group shrinks, calibrated or not. So of an error with a noise floor the floor's
mean at the group's size is taken off first; what is compared is the part beyond chance. Groups
share no points, so the variances of their intervals add up; the p-value of the largest of
K (K - 1) / 2 differences is Bonferroni's.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy import special

from .decisions import Decision, Decisions
from .inference import CONFIDENCE

REPAIRS, PLAIN = "logit_shift_groups", ("logit_shift", "temperature", "uncalibrated")
"""The method with patches of groups, and those without; the first that was scored is compared."""
REPAIRED = ("u_cwe", "u_topk")  # the metrics whose utilities the patches of groups are audited for
OUTCOMES = {
    (True, True): "Both errors are larger than chance alone explains.",
    (True, False): "The repair worked: chance alone can explain what is left.",
    (False, True): "Only the error with the repair is larger than chance alone explains.",
    (False, False): "Chance alone can explain both errors.",
}
"""What the row with patches of groups changed, by whether the error was and is beyond noise."""
CANNOT_TELL = "Whether chance alone explains them cannot be told: some class has too few cases."


@dataclass(frozen=True)
class Gap:
    """The two groups that one method treats most differently by one metric."""

    method: str
    metric: str
    larger: str
    """The group with the larger error beyond chance."""
    smaller: str
    values: tuple[float, float]
    """The metric of the larger and the smaller one, unscaled."""
    beyond: tuple[float, float]
    """Their parts beyond chance."""
    difference: float
    """Of these parts."""
    p_value: float | None
    """Of no difference between any two groups; None without intervals."""


@dataclass(frozen=True)
class Repair:
    """One error of one group, without and with patches of groups."""

    group: str
    metric: str
    method: str
    """The row with patches of groups."""
    plain: str
    """The row without."""
    errors: tuple[float, float]
    """Without and with."""
    floor: float
    """The 95 % quantile of the noise floor with them."""
    outcome: str
    """A sentence's end: one of OUTCOMES, or CANNOT_TELL."""


def repairs_of(groups: Mapping[str, Decisions]) -> list[Repair]:
    """What the row REPAIRS changed in each group, against the first of the rows PLAIN."""
    repairs = []
    for name, decisions in groups.items():
        plain = next((method for method in PLAIN if method in decisions.methods), "")
        for key in REPAIRED:
            before = decisions.rows.get((plain, key))
            after = decisions.rows.get((REPAIRS, key))
            if before is None or after is None:
                continue
            outcome = CANNOT_TELL
            if after.within_noise is not None and before.beyond_floor is not None:
                outcome = OUTCOMES[before.beyond_floor, not after.within_noise]
            errors = before.mean, after.mean
            repairs.append(Repair(name, key, REPAIRS, plain, errors, after.floor_q95, outcome))
    return repairs


def gaps_between(groups: Mapping[str, Decisions]) -> list[Gap]:
    """The largest gap of each metric and method that all of at least two groups have."""
    if len(groups) < 2:
        return []
    first = next(iter(groups.values()))
    gaps = []
    for key in first.shown:
        for method in first.methods:
            row = method, key
            if all(row in group.rows for group in groups.values()):
                gaps.append(largest_gap({name: group.rows[row] for name, group in groups.items()}))
    return gaps


def largest_gap(rows: Mapping[str, Decision]) -> Gap:
    """The largest gap between two groups; `rows`: one method and metric in each of two or more."""
    # Bonferroni's bound holds for the pair that is furthest apart, whatever its intervals.
    beyond = {name: row.mean - float(np.nan_to_num(row.floor_mean)) for name, row in rows.items()}
    smaller, *_, larger = sorted(beyond, key=beyond.__getitem__)
    one, other = rows[larger], rows[smaller]
    difference = beyond[larger] - beyond[smaller]
    quantile = float(special.ndtri((1 + CONFIDENCE) / 2))
    error = math.hypot(one.half_width / quantile, other.half_width / quantile)
    p_value = None
    if math.isfinite(error):
        tail = float(special.ndtr(-difference / error)) if error else 0.5
        p_value = min(1.0, math.comb(len(rows), 2) * 2 * tail)
    values, parts = (one.mean, other.mean), (beyond[larger], beyond[smaller])
    return Gap(one.method, one.metric, larger, smaller, values, parts, difference, p_value)
