"""Which methods are named for which use: the one place where a report decides this.

Everything follows from the tests of the decisions (pipeline.scoring.decisions). A method that a
test finds worse than the best is never named. Where no test finds any difference for a use, the
tests have no power there, and no method is named for it. Of the methods that no test rejects, those
that are not beyond their noise floor are preferred. A method that gives probability 0 to a label
that occurs has an infinite NLL and is not named. The smallest number alone decides nothing. The one
exception is a user's own losses: which method's decisions cost least is a fact about the test
points, and is told as such.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metrics.registry import PURPOSES
from pipeline.scoring.decisions import INFINITE, Decision, Decisions

SHARED = ("u_tce", "u_comb", "u_lin_median", "u_lin_q95", "u_rank_median", "u_rank_q95")
"""Utility metrics that name no use of their own; any other `u_…` is a user's own utility."""
COST = "cost"
"""In the place of a metric, for the use that is about the cost of decisions by one's own losses."""
ROUNDING = 1e-12
"""A difference of losses that is no larger comes from the order in which they were added up."""
WITHIN, BEYOND, WORSE = "within noise", "beyond noise", "worse than the best"
UNSEEN, UNKNOWN, CHEAP = "too few points of a class", "no floor", "as cheap as the cheapest"


@dataclass(frozen=True)
class Use:
    """What a report says of the methods for one use.

    label: its name. named: the methods that will do, () where none is; take: the best of them, or
    "". left_out: the methods that would be named if their NLL were finite. told: whether some test
    finds a difference between methods; spread: without it, the largest half of a 95 % interval of
    a difference. not_seen_below: the 95 % quantile of the noise floor of the method taken, or the
    largest one. signs: by method one of the words above.
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


@dataclass(frozen=True)
class Choice:
    """The uses of one benchmark, and the method to take for all of them.

    unranked: why no method is named for any use, one of the words below or Decisions.refused; ""
    where some are. overall: the method that is among the best for every use that tests can tell,
    None where there is none. Where decisions are priced it is the cheapest method.
    """

    uses: tuple[Use, ...]
    unranked: str
    overall: str | None


ALONE, UNTESTED, EQUAL = "one method", "no test", "no difference"


def is_own(key: str) -> bool:
    """Whether a metric is of a user's own utility."""
    return key.startswith("u_") and (key == "u_utility" or key not in (*PURPOSES, *SHARED))


def is_use(key: str) -> bool:
    """Whether the verdict rests on a metric: it has a use of its own."""
    return key in PURPOSES or is_own(key)


def label_of(key: str) -> str:
    """A use in a word or two."""
    return PURPOSES.get(key) or {"u_utility": "your utility"}.get(key, key.removeprefix("u_"))


def choice_of(decisions: Decisions, costs: Mapping[str, Any] | None = None) -> Choice:
    """Decide which methods are named for which use.

    Args:
        costs: by method what decisions cost with it (the `methods` of pipeline.own.decisions).
    """
    barred = decisions.marked(INFINITE)
    columns = {key: decisions.column(key) for key in decisions.shown if is_use(key)}
    signs = {key: {m: _sign(row) for m, row in column.items()} for key, column in columns.items()}
    errors = {key: {m: row.mean for m, row in column.items()} for key, column in columns.items()}
    if costs and any(_is_known(priced) for priced in costs.values()):
        signs[COST] = _signs_of_costs(costs)
        errors[COST] = {method: priced["cost"] for method, priced in costs.items()}
    unranked = decisions.refused or (_unranked(decisions, signs) if signs else "")
    uses = []
    for key, of_methods in signs.items():
        told = key == COST or WORSE in of_methods.values()
        named, left_out = (
            _named(of_methods, () if key == COST else barred) if told and not unranked else ((), ())
        )
        take = min(named, key=errors[key].__getitem__, default="")
        column = columns.get(key, {})
        spread = None if told else _largest(row.difference_half_width for row in column.values())
        floor = _largest(row.floor_q95 for m, row in column.items() if take in (m, ""))
        uses.append(Use(key, label_of(key), named, take, left_out, told, spread, floor, of_methods))
    overall = None
    if uses and not unranked:
        is_priced = uses[-1].metric == COST
        overall = uses[-1].take if is_priced else _overall(uses, decisions, barred)
    return Choice(tuple(uses), unranked, overall)


def _largest(values: Any) -> float | None:
    return max((value for value in values if math.isfinite(value)), default=None)


def cheapest(costs: Mapping[str, Any]) -> str:
    """The method whose decisions cost least."""
    return min(costs, key=lambda method: float(costs[method]["cost"]))


def surely_dearer(costs: Mapping[str, Any], than: str) -> list[str]:
    """The methods whose cost exceeds another's by more than the 95 % interval, if it is known."""
    gaps = {method: priced["against"][than] for method, priced in costs.items() if method != than}
    return [
        method
        for method, gap in gaps.items()
        if (half := gap["difference_half_width"]) is not None
        and gap["difference"] - half > ROUNDING
    ]


def _is_known(priced: Mapping[str, Any]) -> bool:
    return any(gap.get("difference_half_width") is not None for gap in priced["against"].values())


def _sign(row: Decision) -> str:
    if row.not_worse is False:
        return WORSE
    if row.beyond_floor is None:
        return UNKNOWN
    return {True: WITHIN, False: BEYOND, None: UNSEEN}[row.within_noise]


def _signs_of_costs(costs: Mapping[str, Any]) -> dict[str, str]:
    dearer = surely_dearer(costs, cheapest(costs))
    return {method: WORSE if method in dearer else CHEAP for method in costs}


def _unranked(decisions: Decisions, signs: Mapping[str, Mapping[str, str]]) -> str:
    if len(decisions.methods) == 1:
        return ALONE
    if not decisions.test:
        return UNTESTED
    found = any(WORSE in of_methods.values() for of_methods in signs.values())
    return "" if found else EQUAL


def _named(
    signs: Mapping[str, str], barred: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The methods that will do, and those that would but for their infinite NLL."""
    good = [method for method, sign in signs.items() if sign != WORSE]
    named = _preferred([method for method in good if method not in barred], signs)
    left_out = [method for method in _preferred(good, signs) if method in barred]
    return tuple(named), tuple(left_out)


def _preferred(methods: Sequence[str], signs: Mapping[str, str]) -> list[str]:
    """The methods within noise; all where none of them is."""
    return [m for m in methods if signs[m] in (WITHIN, UNSEEN)] or list(methods)


def _overall(uses: Sequence[Use], decisions: Decisions, barred: Sequence[str]) -> str | None:
    """The method to take for all uses; of several, that of the best Brier score.

    It is named for every use that tests can tell, or else at least among the best for each.
    """
    told = [use for use in uses if use.told]
    methods = [method for method in uses[0].signs if method not in barred]
    good = [m for m in methods if all(use.signs[m] != WORSE for use in told)]
    named = [m for m in good if all(m in use.named for use in told)]
    brier = {method: row.mean for method, row in decisions.column("brier").items()}
    return min(named or good, key=lambda method: brier.get(method, math.inf), default=None)
