"""Which methods are named for which use: the one place where a report decides this.

Everything follows from tests. Methods are equally good for a use if no paired test over the splits
finds a difference (the cells marked best). Of those, the ones within noise are preferred: their
error does not exceed the noise floor of their own probabilities. A method that gives probability 0
to a label that occurs has an infinite NLL and is not named. The smallest number alone decides
nothing. The one exception is a user's own losses: which method's decisions cost least is a fact
about the test points, and is told as such.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.reporting.names import method_name
from pipeline.reporting.table_model import Cell, ResultTable
from pipeline.reporting.wording import ROUNDING, counted

USES: Mapping[str, tuple[str, str]] = {
    "u_cwe": ("single decisions by class", "single decisions"),
    "u_topk": ("shortlists of the most probable classes", "shortlists"),
    "u_dcg": ("graded gains by rank", "graded gains"),
    "u_w2v": ("gains by similarity", "similarity"),
    "u_utility": ("your own utility", "your utility"),
}
"""What a metric is for, and the same in a word or two."""
SHARED = ("u_tce", "u_comb", "u_lin_median", "u_lin_q95", "u_rank_median", "u_rank_q95")
"""Utility metrics that name no use of their own; any other `u_…` is a user's own utility."""
COST = "cost"
"""In the place of a metric, for the use that is about the cost of decisions by one's own losses."""

FEWEST_POINTS = 200
"""Test points of a split below which no method is recommended."""
FEWEST_OF_A_CLASS = 3
"""Expected test points of the rarest class: with fewer, test parts without the class are common."""
MANY_SPLITS = 5
"""With fewer splits a test finds large differences only, however many points there are."""
WITHIN, BEYOND, WORSE = "within noise", "beyond noise", "worse than the best"
UNKNOWN, CHEAP = "no floor", "as cheap as the cheapest"


@dataclass(frozen=True)
class Use:
    """What a report says of the methods for one use.

    use, label: its name, and the same in a word or two.
    named: the methods that will do, () where none is recommended; take: the best of them, or "".
    left_out: the methods that would be named if their NLL were finite.
    not_seen_below: the 95 % quantile of the noise floor of the method taken, or the largest one.
    signs: by method WITHIN, BEYOND, WORSE, UNKNOWN or CHEAP.
    """

    metric: str
    use: str
    label: str
    named: tuple[str, ...]
    take: str
    left_out: tuple[str, ...]
    not_seen_below: float | None
    signs: Mapping[str, str]


@dataclass(frozen=True)
class Choice:
    """The uses of one benchmark, and the method to take for all of them.

    unranked: why no method is named for any use; "" where some are.
    overall: the method that is among the best for every use, None where there is none. Where
    decisions are priced it is the cheapest method. infinite: the methods with an infinite NLL.
    """

    uses: tuple[Use, ...]
    unranked: str
    overall: str | None
    infinite: tuple[str, ...]


def is_own(key: str) -> bool:
    """Whether a metric is of a user's own utility."""
    return key.startswith("u_") and (key == "u_utility" or key not in (*USES, *SHARED))


def is_use(key: str) -> bool:
    """Whether the verdict rests on a metric: it has a use of its own."""
    return key in USES or is_own(key)


def refusal(points: int, rarest_class: float = math.inf, share: float = 0.0) -> str:
    """Why the sample is too small to recommend a method, and what is needed; else empty.

    Args:
        points: test points of a split.
        rarest_class: points of the rarest class in the whole sample.
        share: of the sample that is in the test part.
    """
    if points < FEWEST_POINTS:
        return (
            f"Too few test points to recommend a method: a split has {points}, and at least "
            f"{FEWEST_POINTS} are needed."
        )
    if rarest_class * share < FEWEST_OF_A_CLASS:
        needed = math.ceil(FEWEST_OF_A_CLASS / share)
        return (
            "Too few points of some class to recommend a method: the rarest class has "
            f"{rarest_class:.0f} in all, and at least {needed} are needed so that every test part "
            "has some."
        )
    return ""


def untested(table: ResultTable) -> str:
    """Why no test compares the methods of a table; empty where tests do."""
    if table.spec.look == "paper":
        return "the paper's look has no tests"
    return "one split" if table.splits < 2 else ""


def choice_of(
    table: ResultTable, refused: str = "", costs: Mapping[str, Any] | None = None
) -> Choice:
    """Decide which methods are named for which use.

    Args:
        refused: why the sample is too small (`refusal`), if it is.
        costs: by method what decisions cost with it (the `methods` of pipeline.own.decisions).
    """
    columns = {column.metric.key: column.cells for column in table.columns}
    infinite = _infinite(columns.get("nll", {}))
    is_tested = not untested(table)
    keys = [key for key in columns if is_use(key)]
    signs = {key: _signs(columns[key], is_tested) for key in keys}
    errors = {key: {m: cell.row["mean"] for m, cell in columns[key].items()} for key in keys}
    if costs and table.splits > 1:
        signs[COST] = _signs_of_costs(costs)
        errors[COST] = {method: priced["cost"] for method, priced in costs.items()}
    unranked = refused or (_unranked(table, signs) if signs else "")
    uses = []
    for key, of_methods in signs.items():
        barred = () if key == COST else infinite
        named, left_out = ((), ()) if unranked else _named(of_methods, barred)
        take = min(named, key=errors[key].__getitem__, default="")
        floor = _largest_floor(columns.get(key, {}), take)
        uses.append(Use(key, *_names_of_use(key), named, take, left_out, floor, of_methods))
    overall = None
    if COST in signs and not unranked:
        overall = uses[-1].take
    elif uses and not unranked:
        overall = _overall(uses, columns.get("brier", {}), infinite)
    return Choice(tuple(uses), unranked, overall, infinite)


def _largest_floor(cells: Mapping[str, Cell], take: str) -> float | None:
    methods = [take] if take else list(cells)
    floors = [cells[method].row["floor_q95"] for method in methods if method in cells]
    return max((floor for floor in floors if math.isfinite(floor)), default=None)


def cheapest(costs: Mapping[str, Any]) -> str:
    """The method whose decisions cost least."""
    return min(costs, key=lambda method: float(costs[method]["cost"]))


def surely_dearer(costs: Mapping[str, Any], than: str) -> list[str]:
    """The methods whose cost exceeds another's by more than the 95 % interval; one split: none."""
    gaps = {method: priced["against"][than] for method, priced in costs.items() if method != than}
    return [
        method
        for method, gap in gaps.items()
        if (half := gap["difference_half_width"]) is not None
        and gap["difference"] - half > ROUNDING
    ]


def _names_of_use(key: str) -> tuple[str, str]:
    if key == COST:
        return "cost of your decisions", "cost"
    name = key.removeprefix("u_")
    return USES.get(key, (f"your own utility {name}", name))


def _infinite(likelihoods: Mapping[str, Cell]) -> tuple[str, ...]:
    """The methods with an infinite NLL."""
    return tuple(m for m, cell in likelihoods.items() if cell.row["zero_likelihood"] > 0)


def _signs(cells: Mapping[str, Cell], is_tested: bool) -> dict[str, str]:
    by_floor = {None: UNKNOWN, True: BEYOND, False: WITHIN}
    return {
        method: WORSE if is_tested and not cell.best else by_floor[cell.beyond]
        for method, cell in cells.items()
    }


def _signs_of_costs(costs: Mapping[str, Any]) -> dict[str, str]:
    dearer = surely_dearer(costs, cheapest(costs))
    return {method: WORSE if method in dearer else CHEAP for method in costs}


def _unranked(table: ResultTable, signs: Mapping[str, Mapping[str, str]]) -> str:
    methods = table.spec.methods
    if len(methods) == 1:
        return f"{method_name(methods[0])} is the only method here: there is nothing to choose."
    if reason := untested(table):
        reason = "a single split cannot test one against another" if table.splits < 2 else reason
        return f"No method is recommended, because {reason}."
    if all(WORSE not in of_methods.values() for of_methods in signs.values()):
        few = "points" if table.splits >= MANY_SPLITS else "points or splits"
        return (
            f"Too few {few} to rank the methods: no test finds a difference among the "
            f"{counted(len(methods))}."
        )
    return ""


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
    return [method for method in methods if signs[method] == WITHIN] or list(methods)


def _overall(uses: Sequence[Use], brier: Mapping[str, Cell], barred: Sequence[str]) -> str | None:
    """The method to take for all uses; of several, that of the best Brier score.

    It is named for every use, or else at least among the best for every use.
    """
    methods = [method for method in uses[0].signs if method not in barred]
    good = [m for m in methods if all(use.signs[m] != WORSE for use in uses)]
    named = [m for m in good if all(m in use.named for use in uses)]
    brier_of = {method: cell.row["mean"] for method, cell in brier.items()}
    return min(named or good, key=lambda method: brier_of.get(method, math.inf), default=None)
