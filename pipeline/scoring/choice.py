"""Which methods are named for which use, and how far groups of points differ.

A method that a test finds worse than the best is never named. Where no test finds any difference
for a use, the tests have no power there, and no method is named for it. Of the methods that no test
rejects, those that are not beyond their noise floor are preferred. A method whose NLL is infinite
is not named. The smallest number alone decides nothing. The one exception is a user's own losses:
which method's decisions cost least is a fact about the test points, and is told as such.

Errors grow as a group shrinks, calibrated or not. So of an error with a noise floor the floor's
mean at the group's size is taken off first; what is compared is the part beyond chance. Groups
share no points, so the variances of their intervals add up; the p-value of the largest of
K (K - 1) / 2 differences is Bonferroni's.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from utility_calibration.metrics.registry import PURPOSES

from .decisions import INFINITE, Decision, Decisions
from .inference import CONFIDENCE

SHARED = ("u_tce", "u_comb", "u_lin_median", "u_lin_q95", "u_rank_median", "u_rank_q95")
"""Utility metrics that name no use of their own; any other `u_…` is a user's own utility."""
COST = "cost"  # stands for a metric, in the use that is about the cost of decisions
ROUNDING = 1e-12  # a smaller difference of losses comes from the order of a sum
WITHIN, BEYOND, WORSE = "within noise", "beyond noise", "worse than the best"
UNSEEN, UNKNOWN, CHEAP = "too few points of a class", "no floor", "as cheap as the cheapest"
ALONE, UNTESTED, EQUAL = "one method", "no test", "no difference"
"""Why no method is named for any use."""
REPAIRS, PLAIN = "logit_shift_groups", ("logit_shift", "temperature", "uncalibrated")
"""The method with patches of groups, and those without; the first that was scored is compared."""
REPAIRED = ("u_cwe", "u_topk")  # the metrics whose utilities the patches of groups are audited for
OUTCOMES = {
    (True, True): "beyond noise before and after",
    (True, False): "closed",
    (False, True): "within noise before, beyond it after",
    (False, False): "within noise before and after",
}
"""What the row with patches of groups changed, by whether the error was and is beyond noise."""
LABELS = {"u_utility": "your utility"}
UNTOLD = "no floor, or too few points of a class, to tell"


@dataclass(frozen=True)
class Use:
    """What a report says of the methods for one use.

    named: the methods that will do; take: the best of them, or "". left_out: those that would be
    named if their NLL were finite. told: whether some test finds a difference; spread: without it,
    the largest half of a 95 % interval of a difference. not_seen_below: the 95 % quantile of the
    noise floor of the method taken, or the largest one. signs: by method one of the words above.
    """

    metric: str
    label: str
    named: tuple[str, ...]
    take: str
    left_out: tuple[str, ...]
    told: bool
    spread: float | None
    not_seen_below: float | None
    signs: Mapping[str, str]


class Choice(NamedTuple):
    """The uses of one benchmark, and the method to take for all of them.

    unranked: why no method is named for any use: ALONE, UNTESTED, EQUAL or Decisions.refused.
    overall: None where there is none. Where decisions are priced it is the cheapest method.
    """

    uses: Sequence[Use]
    unranked: str
    overall: str | None


def is_own(key: str) -> bool:
    """Whether a metric is of a user's own utility."""
    return key.startswith("u_") and (key == "u_utility" or key not in (*PURPOSES, *SHARED))


def is_use(key: str) -> bool:
    """Whether the verdict rests on a metric: it has a use of its own."""
    return key in PURPOSES or is_own(key)


def label_of(key: str) -> str:
    """What a use is called: what people do, or the user's own word."""
    return PURPOSES.get(key) or LABELS.get(key, key.removeprefix("u_"))


def choice_of(decisions: Decisions, costs: Mapping[str, Any] | None = None) -> Choice:
    """Decide which methods are named for which use, and which one is to be taken for all.

    That one is named for every use that tests can tell, or else at least among the best for each;
    of several it has the best Brier score. `costs`: by method what decisions cost with it (the
    `methods` of pipeline/scoring/costs.py).
    """
    columns = {key: decisions.column(key) for key in decisions.shown if is_use(key)}
    signs = {key: {m: _sign(row) for m, row in column.items()} for key, column in columns.items()}
    errors = {key: {m: row.mean for m, row in column.items()} for key, column in columns.items()}
    against = [gap for own in (costs or {}).values() for gap in own["against"].values()]
    if costs and any(gap.get("difference_half_width") is not None for gap in against):
        dearer = surely_dearer(costs, cheapest(costs))
        signs[COST] = {method: WORSE if method in dearer else CHEAP for method in costs}
        errors[COST] = {method: own["cost"] for method, own in costs.items()}
    unranked = decisions.refused
    if signs and not unranked:
        is_told = any(WORSE in of_methods.values() for of_methods in signs.values())
        unranked = ("" if is_told else EQUAL) if decisions.test else UNTESTED
        unranked = ALONE if len(decisions.methods) == 1 else unranked
    barred, uses = decisions.marked(INFINITE), []
    for key, of_methods in signs.items():
        told, column = key == COST or WORSE in of_methods.values(), columns.get(key, {})
        good = [m for m, sign in of_methods.items() if sign != WORSE and told and not unranked]
        out = () if key == COST else barred
        named = _preferred([method for method in good if method not in out], of_methods)
        take = min(named, key=errors[key].__getitem__, default="")
        use = Use(
            metric=key,
            label=label_of(key),
            named=tuple(named),
            take=take,
            left_out=tuple(method for method in _preferred(good, of_methods) if method in out),
            told=told,
            spread=None if told else largest(r.difference_half_width for r in column.values()),
            not_seen_below=largest(r.floor_q95 for m, r in column.items() if take in (m, "")),
            signs=of_methods,
        )
        uses.append(use)
    if unranked or not uses:
        return Choice(uses, unranked, None)
    if uses[-1].metric == COST:
        return Choice(uses, unranked, uses[-1].take)
    decisive = [use for use in uses if use.told]
    best = [m for m in uses[0].signs if all(use.signs[m] != WORSE for use in decisive)]
    good = [method for method in best if method not in barred]
    named = [method for method in good if all(method in use.named for use in decisive)]
    brier = {method: row.mean for method, row in decisions.column("brier").items()}
    overall = min(named or good, key=lambda method: brier.get(method, math.inf), default=None)
    return Choice(uses, unranked, overall)


def largest(values: Iterable[float]) -> float | None:
    """The largest finite value; None where there is none."""
    return max((value for value in values if math.isfinite(value)), default=None)


def cheapest(costs: Mapping[str, Any]) -> str:
    """The method whose decisions cost least."""
    return min(costs, key=lambda method: float(costs[method]["cost"]))


def surely_dearer(costs: Mapping[str, Any], than: str) -> list[str]:
    """The methods whose cost exceeds another's by more than the 95 % interval, if it is known."""
    gaps = {method: own["against"][than] for method, own in costs.items() if method != than}
    return [
        method
        for method, gap in gaps.items()
        if (half := gap["difference_half_width"]) is not None
        and gap["difference"] - half > ROUNDING
    ]


def _preferred(methods: list[str], signs: Mapping[str, str]) -> list[str]:
    return [m for m in methods if signs[m] in (WITHIN, UNSEEN)] or methods


def _sign(row: Decision) -> str:
    if row.not_worse is False:
        return WORSE
    if row.beyond_floor is None:
        return UNKNOWN
    return {True: WITHIN, False: BEYOND, None: UNSEEN}[row.within_noise]


@dataclass(frozen=True)
class Gap:
    """The two groups that one method treats most differently by one metric.

    `values`: the metric of both, unscaled; `beyond`: their parts beyond chance, whose `difference`
    is tested; `p_value` of no difference between any two groups, None without intervals.
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
    """One error of one group in the rows `plain` and `method`, without and with patches of groups.

    `floor`: the 95 % quantile of the noise floor with them.
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
    repairs = []
    for name, own in groups.items():
        plain = next((method for method in PLAIN if method in own.methods), "")
        for key in REPAIRED:
            before, after = own.rows.get((plain, key)), own.rows.get((REPAIRS, key))
            if before is not None and after is not None:
                outcome = UNTOLD
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
