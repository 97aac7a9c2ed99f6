"""The methods that are named for one use, and the method to take for all of them.

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

import numpy as np

from .decisions import HARMED, INFINITE, Decision, Decisions
from .inference import ONE_SIDED
from .use_columns import RANKS, UNSEEN, WITHIN, WORSE, UseColumn
from .uses import COST, label_of

DEFAULT = "logit_shift"  # the method that is taken unless something speaks against it
ONLY, DEFAULTED, LOWEST = "the only one that remains", "the default", "the lowest value"
UNTOUCHED = "nothing is wrong with it"
"""Why a method is taken for all uses. UNTOUCHED: no test finds a difference between the methods,
and the forecast as it is has no error beyond chance."""
DECIDING = ("nll", "brier")  # the score that decides otherwise: the first one in the table
LARGE_SHARE_OF_EXCESS = 0.5
"""An error is large if it exceeds the smallest one by this share of the largest excess of an error
over its noise floor."""


@dataclass(frozen=True)
class Use:
    """What a report says of the methods for one use."""

    metric: str
    """What measures the use."""
    label: str
    """What the use is called."""
    named: tuple[str, ...]
    """The methods that will do."""
    take: str
    """The best of these; empty if there is none."""
    left_out: tuple[str, ...]
    """The methods that would be named if their NLL were finite."""
    differs: bool
    """Whether some test separates the methods."""
    has_power: bool
    """Whether the tests can rule out a large error of the methods that they leave."""
    spread: float | None
    """If no test separates the methods, the largest half of a 95 % interval of a difference."""
    signs: Mapping[str, str]
    """By method one of RANKS (use_columns.py)."""


@dataclass(frozen=True)
class Pick:
    """The method to take for all uses, and the numbers that decided."""

    method: str
    """The method to take."""
    why: str
    """ONLY, DEFAULTED, LOWEST or UNTOUCHED."""
    score: str = ""
    """The metric that decided; empty unless `why` is LOWEST."""
    values: Mapping[str, float] = field(default_factory=dict)
    """Its values by method for those that remained, the best one first."""
    are_named: bool = False
    """Whether those that remained are named for every use that names some; else they have no ✗ and
    a finite NLL."""


def use_of(decisions: Decisions, column: UseColumn, is_ranked: bool) -> Use:
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


def pick_for_all(
    decisions: Decisions, uses: Sequence[Use], cost_column: UseColumn | None
) -> Pick | None:
    """The method for all uses; None where every method is worse than another one for some use.

    With the costs of a user's decisions these decide alone. Without them a method that is named
    wherever methods are comes first, if there is one.
    """
    infinite = decisions.marked(INFINITE)
    finite = [method for method in decisions.methods if method not in infinite]
    if cost_column is not None:
        cheap = [method for method in finite if cost_column.signs[method] != WORSE]
        return _lowest(cheap, COST, cost_column.errors)
    remaining = [m for m in finite if all(use.signs[m] != WORSE for use in uses)]
    naming = [use.named for use in uses if use.named]
    everywhere = [method for method in remaining if all(method in named for named in naming)]
    pick = _best(decisions, everywhere or remaining, remaining, uses)
    return pick and replace(pick, are_named=bool(naming and everywhere))


def largest(values: Iterable[float]) -> float | None:
    """The largest finite value; None where there is none."""
    return max((value for value in values if math.isfinite(value)), default=None)


def _preferred(methods: list[str], signs: Mapping[str, str]) -> list[str]:
    """The methods that are not beyond their noise floor; all if each of them is."""
    return [m for m in methods if signs[m] in (WITHIN, UNSEEN)] or methods


def _rules_out_large_errors(rows: Mapping[str, Decision], methods: Sequence[str]) -> bool:
    """True if no method can have a large error, as far as 95 % upper bounds tell.

    That is: for each method the 95 % upper bound on (its error - the smallest error) is below half
    of the largest excess of an error over its noise floor. A test that finds nothing says little
    where it could not have found much. Of costs there are no rows, and nothing is asked.
    """
    if not rows:
        return True
    smallest = min(row.mean for row in rows.values())
    excess = max(row.mean - float(np.nan_to_num(row.floor_mean)) for row in rows.values())
    large = LARGE_SHARE_OF_EXCESS * excess
    for method in methods:
        row = rows[method]
        upper_bound = row.difference + ONE_SIDED * row.difference_half_width
        if row.mean > smallest and upper_bound >= large:
            return False
    return True


def _best_of_use(decisions: Decisions, column: UseColumn, use: Use) -> str:
    """The best of the methods that are named for a use, "" if none is."""
    if column.metric == COST:
        pick = _lowest(use.named, COST, column.errors)
    else:
        pick = _best(decisions, use.named, use.named, [use])
    return "" if pick is None else pick.method


def _best(
    decisions: Decisions, methods: Sequence[str], rivals: Sequence[str], uses: Sequence[Use]
) -> Pick | None:
    """Of `methods` the default, if no rival has a better sign, else the one of the lowest NLL.

    Where the table has no such score, the error of the first use decides. None of no methods.

    Args:
        methods: those of which one is taken.
        rivals: those that the default must not be worse than. They may be more than `methods`: a
            method that is not named for every use may still have a better sign for one.
        uses: whose signs are compared.
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
    """The method of the lowest finite value; None where there is none."""
    known = [method for method in methods if math.isfinite(values.get(method, math.nan))]
    ranked = sorted(known, key=values.__getitem__)
    if not ranked:
        return None
    return Pick(ranked[0], LOWEST, score, {method: values[method] for method in ranked})
