"""Which methods are named for which use, and which one is to be taken for all uses.

A method that a test finds worse than the best is never named, nor is one whose NLL is infinite. Of
the others, those that are not beyond their noise floor are preferred. Where no test finds any
difference for a use, no method is named for it. The same holds where the tests leave a method
that may well be bad: with 95 % confidence it must exceed the smallest error by less than half of
the largest error that the methods have beyond chance.

Of the methods that remain for all uses, the default is taken if no sign or mark of it is worse than
another's, else the one of the lowest NLL. A user's own losses are another matter: there the method
whose decisions cost least is taken.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from utility_calibration.metrics.registry import PURPOSES

from .decisions import HARMED, INFINITE, Decision, Decisions
from .inference import ONE_SIDED

SHARED = ("u_tce", "u_comb", "u_lin_median", "u_lin_q95", "u_rank_median", "u_rank_q95")
"""Utility metrics that name no use of their own; any other `u_…` is a user's own utility."""
COST = "cost"  # stands for a metric, in the use that is about the cost of decisions
ROUNDING = 1e-12  # a smaller difference of losses comes from the order of a sum
WITHIN, BEYOND, WORSE = "within noise", "beyond noise", "worse than the best"
UNSEEN, UNKNOWN, CHEAP = "too few points of a class", "no floor", "as cheap as the cheapest"
RANKS = {WITHIN: 0, CHEAP: 0, UNSEEN: 1, BEYOND: 2, UNKNOWN: 2, WORSE: 3}
"""The signs of a method from the best to the worst."""
ALONE, UNTESTED, EQUAL = "one method", "no test", "no difference"
"""Why no method is named for any use."""
PRESENT = "uncalibrated"  # the method that leaves a forecast as it is
DEFAULT = "logit_shift"  # the method that is taken unless something speaks against it
ONLY, DEFAULTED, LOWEST = "the only one that remains", "the default", "the lowest value"
UNTOUCHED = "nothing is wrong with it"
"""Why a method is taken for all uses. UNTOUCHED: no test finds a difference between the methods,
and the forecast as it is has no error beyond chance."""
DECIDING = ("nll", "brier")  # the score that decides otherwise: the first one in the table
LARGE = 0.5  # a method with this share of the largest error is not to be named
LABELS = {"u_utility": "your utility"}


@dataclass(frozen=True)
class Use:
    """What a report says of the methods for one use.

    Attributes:
        metric, label: what measures the use, and what it is called.
        named: the methods that will do.
        take: the best of these, "" if there is none.
        left_out: the methods that would be named if their NLL were finite.
        differs: whether some test separates the methods.
        has_power: whether the tests can rule out a large error of the methods that they leave.
        spread: if no test separates the methods, the largest half of a 95 % interval of a
            difference.
        signs: by method one of the words above.
    """

    metric: str
    label: str
    named: tuple[str, ...]
    take: str
    left_out: tuple[str, ...]
    differs: bool
    has_power: bool
    spread: float | None
    signs: Mapping[str, str]


@dataclass(frozen=True)
class Pick:
    """The method to take for all uses, and the numbers that decided.

    Attributes:
        method: the method to take.
        why: ONLY, DEFAULTED, LOWEST or UNTOUCHED.
        score: the metric that decided, where the lowest value did.
        values: its values by method for those that remained, the best one first.
        are_named: whether those that remained are named for every use that names some; else they
            have no ✗ and a finite NLL.
    """

    method: str
    why: str
    score: str = ""
    values: Mapping[str, float] = field(default_factory=dict)
    are_named: bool = False


class Choice(NamedTuple):
    """The uses of one benchmark, and the method to take for all of them.

    unranked: why no method is named for any use: ALONE, UNTESTED, EQUAL or Decisions.refused.
    pick: None where no method remains. Where `unranked` is EQUAL, no test supports it.
    """

    uses: Sequence[Use]
    unranked: str
    pick: Pick | None

    @property
    def overall(self) -> str | None:
        """The method to take for all uses that tests support; None where there is none."""
        return None if self.unranked or self.pick is None else self.pick.method


@dataclass(frozen=True)
class _Column:
    """One use as the tests see it: by method the sign, the error or cost, and the decision."""

    metric: str
    signs: Mapping[str, str]
    errors: Mapping[str, float]
    rows: Mapping[str, Decision] = field(default_factory=dict)

    @property
    def differs(self) -> bool:
        """Whether some test finds a difference; the cheapest method is known in any case."""
        return self.metric == COST or WORSE in self.signs.values()


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

    Args:
        costs: by method what decisions cost with it (the `methods` of pipeline/scoring/costs.py).
    """
    columns = [_column(decisions, key) for key in decisions.shown if is_use(key)]
    if costs and _are_tested(costs):
        columns.append(_column_of_costs(costs))
    unranked = _why_unranked(decisions, columns)
    uses = [_use(decisions, column, is_ranked=not unranked) for column in columns]
    if not uses or unranked not in ("", EQUAL):
        return Choice(uses, unranked, None)
    if unranked == EQUAL and _is_fine_as_it_is(decisions, uses):
        return Choice(uses, unranked, Pick(PRESENT, UNTOUCHED))
    return Choice(uses, unranked, _for_all(decisions, uses, columns[-1]))


def _is_fine_as_it_is(decisions: Decisions, uses: Sequence[Use]) -> bool:
    """Whether the present forecast has no error beyond chance for any use, and a finite NLL."""
    if PRESENT not in decisions.methods or PRESENT in decisions.marked(INFINITE):
        return False
    return all(use.signs[PRESENT] in (WITHIN, CHEAP) for use in uses)


def _column(decisions: Decisions, key: str) -> _Column:
    rows = decisions.column(key)
    signs = {method: _sign(row) for method, row in rows.items()}
    errors = {method: row.mean for method, row in rows.items()}
    return _Column(key, signs, errors, rows)


def _column_of_costs(costs: Mapping[str, Any]) -> _Column:
    dearer = surely_dearer(costs, cheapest(costs))
    signs = {method: WORSE if method in dearer else CHEAP for method in costs}
    means = {method: record["cost"] for method, record in costs.items()}
    return _Column(COST, signs, means)


def _are_tested(costs: Mapping[str, Any]) -> bool:
    for record in costs.values():
        for gap in record["against"].values():
            if gap.get("difference_half_width") is not None:
                return True
    return False


def _why_unranked(decisions: Decisions, columns: Sequence[_Column]) -> str:
    """Why no method is named for any use; "" where the tests rank them."""
    if decisions.refused or not columns:
        return decisions.refused
    if len(decisions.methods) == 1:
        return ALONE
    if not decisions.test:
        return UNTESTED
    is_ranked = any(WORSE in column.signs.values() for column in columns)
    return "" if is_ranked else EQUAL


def _use(decisions: Decisions, column: _Column, is_ranked: bool) -> Use:
    """Which methods are named for one use; none where no test ranks the methods."""
    remaining: list[str] = []
    if is_ranked and column.differs:
        remaining = [method for method, sign in column.signs.items() if sign != WORSE]
    infinite = decisions.marked(INFINITE)
    finite = [method for method in remaining if method not in infinite]
    named = _preferred(finite, column.signs)
    left_out = [m for m in _preferred(remaining, column.signs) if m in infinite]
    has_power = _rules_out_large_errors(column.rows, named)
    spread = None
    if not column.differs:
        spread = largest(row.difference_half_width for row in column.rows.values())
    use = Use(
        metric=column.metric,
        label=label_of(column.metric),
        named=tuple(named) if has_power else (),
        take="",
        left_out=tuple(left_out),
        differs=column.differs,
        has_power=has_power,
        spread=spread,
        signs=column.signs,
    )
    return replace(use, take=_best_of_use(decisions, column, use))


def _best_of_use(decisions: Decisions, column: _Column, use: Use) -> str:
    """The best of the methods that are named for a use, "" if none is."""
    if column.metric == COST:
        pick = _lowest(use.named, COST, column.errors)
    else:
        pick = _best(decisions, use.named, use.named, [use])
    return "" if pick is None else pick.method


def _rules_out_large_errors(rows: Mapping[str, Decision], methods: Sequence[str]) -> bool:
    """Whether no method's error may exceed the smallest by half of the largest beyond chance.

    A test that finds nothing says little where it could not have found much. The upper bound of the
    difference says how much larger an error may be than the smallest one, with 95 % confidence.
    Of costs there are no rows, and nothing is asked.
    """
    if not rows:
        return True
    smallest = min(row.mean for row in rows.values())
    beyond = max(row.mean - float(np.nan_to_num(row.floor_mean)) for row in rows.values())
    highest = (
        rows[method].difference + ONE_SIDED * rows[method].difference_half_width
        for method in methods
        if rows[method].mean > smallest
    )
    return not any(high >= LARGE * beyond for high in highest)


def _for_all(decisions: Decisions, uses: Sequence[Use], last: _Column) -> Pick | None:
    """The method for all uses: one that is named wherever methods are, if there is one."""
    infinite = decisions.marked(INFINITE)
    finite = [method for method in decisions.methods if method not in infinite]
    if last.metric == COST:
        cheap = [method for method in finite if last.signs[method] != WORSE]
        return _lowest(cheap, COST, last.errors)
    remaining = [m for m in finite if all(use.signs[m] != WORSE for use in uses)]
    naming = [use.named for use in uses if use.named]
    everywhere = [method for method in remaining if all(method in named for named in naming)]
    pick = _best(decisions, everywhere or remaining, remaining, uses)
    return pick and replace(pick, are_named=bool(naming and everywhere))


def _best(
    decisions: Decisions, methods: Sequence[str], rivals: Sequence[str], uses: Sequence[Use]
) -> Pick | None:
    """Of `methods` the default, if no rival has a better sign, else the one of the lowest NLL.

    Where the table has no such score, the error of the first use decides. None of no methods.
    """
    if len(methods) == 1:
        return Pick(methods[0], ONLY)
    if DEFAULT in methods and _is_unmatched(decisions, DEFAULT, rivals, uses):
        return Pick(DEFAULT, DEFAULTED)
    scores = [key for key in DECIDING if key in decisions.shown] or [uses[0].metric]
    values = {method: row.mean for method, row in decisions.column(scores[0]).items()}
    return _lowest(methods, scores[0], values)


def _is_unmatched(
    decisions: Decisions, method: str, rivals: Sequence[str], uses: Sequence[Use]
) -> bool:
    """Whether no sign and no mark of a method is worse than that of a rival."""
    harmed = decisions.marked(HARMED)
    if method in harmed and not all(rival in harmed for rival in rivals):
        return False
    for use in uses:
        best = min(RANKS[use.signs[rival]] for rival in (method, *rivals))
        if RANKS[use.signs[method]] > best:
            return False
    return True


def _lowest(methods: Sequence[str], score: str, values: Mapping[str, float]) -> Pick | None:
    known = [method for method in methods if math.isfinite(values.get(method, math.nan))]
    ranked = sorted(known, key=values.__getitem__)
    if not ranked:
        return None
    return Pick(ranked[0], LOWEST, score, {method: values[method] for method in ranked})


def largest(values: Iterable[float]) -> float | None:
    """The largest finite value; None where there is none."""
    return max((value for value in values if math.isfinite(value)), default=None)


def cheapest(costs: Mapping[str, Any]) -> str:
    """The method whose decisions cost least."""
    return min(costs, key=lambda method: float(costs[method]["cost"]))


def surely_dearer(costs: Mapping[str, Any], than: str) -> list[str]:
    """The methods whose cost exceeds another's by more than the 95 % interval, if it is known."""
    dearer = []
    for method, record in costs.items():
        if method == than:
            continue
        gap = record["against"][than]
        half = gap["difference_half_width"]
        if half is not None and gap["difference"] - half > ROUNDING:
            dearer.append(method)
    return dearer


def _preferred(methods: list[str], signs: Mapping[str, str]) -> list[str]:
    return [m for m in methods if signs[m] in (WITHIN, UNSEEN)] or methods


def _sign(row: Decision) -> str:
    if row.not_worse is False:
        return WORSE
    if row.beyond_floor is None:
        return UNKNOWN
    return {True: WITHIN, False: BEYOND, None: UNSEEN}[row.within_noise]
