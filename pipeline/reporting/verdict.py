"""The verdict on one benchmark in words: headline, grid of signs, three sentences, and prose.

Which methods are named is decided in pipeline.reporting.uses; here it is said.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metrics.registry import metric
from pipeline.reporting.names import method_name
from pipeline.reporting.table_model import ResultTable
from pipeline.reporting.uses import (
    BEYOND,
    CHEAP,
    COST,
    UNKNOWN,
    WITHIN,
    WORSE,
    Choice,
    Use,
    cheapest,
    choice_of,
    is_own,
    surely_dearer,
    untested,
)
from pipeline.reporting.wording import ROUNDING, bound, counted, listed, names, with_half

MOST_NAMED = 3
"""A headline names up to this many methods; it gives the number of more."""
SIGNS = {WITHIN: "✓", BEYOND: "○", CHEAP: "=", WORSE: "✗", UNKNOWN: "–"}
MEANINGS = {
    WITHIN: "within noise of perfectly calibrated",
    BEYOND: "beyond noise",
    CHEAP: "not surely dearer than the cheapest",
    WORSE: "significantly worse than the best",
    UNKNOWN: "no noise floor",
}
USERS = "user of these classes (U_CWE, U_topK, U_dcg and the like)"


@dataclass(frozen=True)
class Verdict:
    """`headline`, `summary` and the signs of `uses` are read in ten seconds.

    `legend` explains the signs that occur. `prose`: the signs of each use in a sentence, then the
    summary. `overall`: the method to take for all uses.
    """

    headline: str
    legend: str
    summary: Sequence[str]
    prose: Sequence[str]
    uses: Sequence[Use]
    overall: str | None

    @property
    def grid(self) -> list[list[str]]:
        """Per method its name and a sign for each of the uses."""
        methods = dict.fromkeys(method for use in self.uses for method in use.signs)
        return [
            [method_name(method), *(SIGNS[use.signs[method]] for use in self.uses)]
            for method in methods
        ]


def verdict_of(
    table: ResultTable, refused: str = "", decisions: Mapping[str, Any] | None = None
) -> Verdict:
    """The verdict on one benchmark.

    Args:
        refused: why nothing is recommended (uses.refusal), if so.
        decisions: what decisions by the user's losses cost (pipeline.own.decisions), if given.
    """
    choice = choice_of(table, refused, decisions and decisions["methods"])
    sentences = (
        _choice_sentence(choice),
        _own_bound_sentence(table, choice) or _bound_sentence(table, choice),
        _unknown_sentence(choice.uses, table.test_points, table.splits),
    )
    summary = [sentence for sentence in sentences if sentence]
    return Verdict(
        headline=_headline(choice, decisions),
        legend=_legend(choice.uses, untested(table)),
        summary=summary,
        prose=[*map(_prose, choice.uses), *summary],
        uses=choice.uses,
        overall=choice.overall,
    )


def _legend(uses: Sequence[Use], not_tested: str) -> str:
    occurring = {sign for use in uses for sign in use.signs.values()}
    signs = ", ".join(f"{SIGNS[sign]} {MEANINGS[sign]}" for sign in SIGNS if sign in occurring)
    return f"{signs}; not tested against each other: {not_tested}" if not_tested else signs


def _headline(choice: Choice, decisions: Mapping[str, Any] | None) -> str:
    """Which methods will do for which use; with decisions, which one acts cheapest."""
    if decisions is not None:
        cost = _cost_sentence(choice, decisions)
        return f"{choice.unranked} On these test points {cost}" if choice.unranked else cost
    if choice.unranked or not choice.uses:
        return choice.unranked
    by_choice: dict[tuple[str, ...], list[str]] = {}
    for use in choice.uses:
        by_choice.setdefault(use.named, []).append(use.label)
    clauses = "; ".join(_clause(*pair) for pair in by_choice.items())
    return f"{clauses[0].upper()}{clauses[1:]}{_left_out(choice.uses)}."


def _clause(methods: Sequence[str], labels: Sequence[str]) -> str:
    uses = listed(labels)
    if not methods:
        return f"for {uses} no method is recommended, because the best ones have an infinite NLL"
    if len(methods) > MOST_NAMED:
        return f"any of {counted(len(methods))} methods will do for {uses}"
    if len(methods) > 1:
        return f"{names(methods, 'or')} will do for {uses}"
    return f"for {uses} take {method_name(methods[0])}"


def _left_out(uses: Sequence[Use]) -> str:
    """The methods that some of these uses would name if their NLL were finite."""
    methods = dict.fromkeys(method for use in uses if use.named for method in use.left_out)
    return f" (not named, because of an infinite NLL: {names(methods)})" if methods else ""


def _cost_sentence(choice: Choice, decisions: Mapping[str, Any]) -> str:
    """Which method acts cheapest, by how much, how sure that is, and which is calibrated best."""
    costs = decisions["methods"]
    best = cheapest(costs)
    others = [method for method in costs if method != best]
    infinite = ", though its NLL is infinite" if best in choice.infinite else ""
    loss = f"mean loss {costs[best]['cost']:.3g}"
    text = f"{method_name(best)} acts cheapest{infinite}: {loss}" if others else f"the {loss}"
    if others:
        second = min(others, key=lambda method: float(costs[method]["cost"]))
        gap = costs[second]["against"][best]
        text += f", {with_half(gap, 'difference')} less than with {method_name(second)}, the next"
        if gap["difference_half_width"] is not None:
            dearer = len(surely_dearer(costs, best))
            of_all = "the others" if len(others) > 1 else "it"
            sure = f"{counted(dearer)} of {counted(len(others))} others" if dearer else of_all
            text += f", and {'surely' if dearer else 'not surely'} less than with {sure}"
    constant = decisions["best_constant"]
    always = costs[best]["against"][f"always {constant}"]["difference"]
    if always > ROUNDING:
        text += f", but to {constant} always costs {always:.2g} less"
    calibrated = [use for use in choice.uses if use.metric == "u_losses" and use.named]
    if calibrated and others:
        sentence = _calibrated_best(calibrated[0], best)
        text += f". {sentence[0].upper()}{sentence[1:]}{_left_out(calibrated)}"
    return f"{text}."


def _calibrated_best(losses: Use, cheapest: str) -> str:
    """Which methods are calibrated best for the user's losses, and whether the cheapest is."""
    named = losses.named
    if len(named) == len(losses.signs):
        return "no test tells the methods apart in calibration for these losses"
    if named == (cheapest,):
        which = "it is also"
    elif len(named) <= MOST_NAMED:
        which = f"{names(named)} {'is' if len(named) == 1 else 'are'}"
    elif cheapest in named:
        which = f"it and {counted(len(named) - 1)} other methods are"
    else:
        which = f"{counted(len(named))} other methods are"
    return f"{which} calibrated best for these losses"


def _choice_sentence(choice: Choice) -> str:
    """What to take for all uses and how sure that is; "" where no method is named."""
    uses, overall = choice.uses, choice.overall
    if not any(use.take for use in uses):
        return ""
    if overall is None:
        return "No method is among the best for all of these uses: choose for yours."
    labels = {
        sign: [use.label for use in uses if use.signs[overall] == sign]
        for sign in (WITHIN, BEYOND, WORSE)
    }
    noise = listed([f"{sign} for {listed(of)}" for sign, of in labels.items() if of])
    name = method_name(overall)
    if any(use.metric == COST for use in uses):
        return f"The calibration of {name} is {noise}." if noise else ""
    is_alone = all(list(use.signs.values()).count(WORSE) == len(use.signs) - 1 for use in uses)
    sure = "clearly" if is_alone else "no test finds a better one"
    start = f"One method for all of these is {name}" if len(uses) > 1 else f"Take {name}"
    return f"{start}: {sure}.{f' It is {noise}.' if noise else ''}"


def _bound_sentence(table: ResultTable, choice: Choice) -> str:
    """The bound for the users of the standard classes; "" where there is none.

    It is that of the methods taken, or the largest of all where none is taken. A mean over splits
    of bounds that hold with 95 % confidence each is not such a bound itself, so the sentence does
    not say so.
    """
    taken = dict.fromkeys(use.take for use in choice.uses if use.take)
    methods = [choice.overall] if choice.overall else list(taken) or list(table.spec.methods)
    value = _largest(table.certificates.get(method) for method in methods)
    if value is None:
        return ""
    if table.splits < 2 and len(methods) == 1:
        return (
            f"With 95 % confidence no {USERS} is off by more than {bound(value)} with "
            f"{names(methods)}."
        )
    users = f"the error of any {USERS} is"
    return f"{_bound_on(users, methods)}{bound(value)}{_on_average(table)}."


def _own_bound_sentence(table: ResultTable, choice: Choice) -> str:
    """The bounds for the user's own utilities and what follows from them; "" where there are none.

    A threshold rule acts where the predicted utility is at least t. Acting pays the utility minus
    t, not acting pays nothing. No monotone change of the predicted utility raises the mean pay by
    more than 2 UC, for any utility and any t (the paper's proposition "Utility Risk Gap").
    """
    methods = [choice.overall] if choice.overall else list(table.spec.methods)
    uppers = {
        column.metric.text: _largest(column.cells[method].row.get("upper") for method in methods)
        for column in table.columns
        if is_own(column.metric.key)
    }
    bounds = [f"{bound(upper)} ({text})" for text, upper in uppers.items() if upper is not None]
    if not bounds:
        return ""
    return (
        f"{_bound_on('the error of your utility is', methods)}{listed(bounds)}{_on_average(table)};"
        " no monotone change of a threshold rule on this utility gains more than twice the bound."
    )


def _largest(uppers: Iterable[float | None]) -> float | None:
    known = [upper for upper in uppers if upper is not None and math.isfinite(upper)]
    return max(known, default=None)


def _bound_on(error: str, methods: Sequence[str]) -> str:
    which = names(methods) if len(methods) <= MOST_NAMED else "each of these methods"
    most = "at most " if len(methods) > 1 else ""
    return f"With {which} the 95 % upper bound on {error} {most}"


def _on_average(table: ResultTable) -> str:
    return f", on average over the {table.splits} splits" if table.splits > 1 else ""


def _unknown_sentence(uses: Sequence[Use], points: int, splits: int) -> str:
    """What the sample cannot show; "" where no noise floor is known."""
    limits = [
        f"{bound(use.not_seen_below)} ({metric(use.metric).text})"
        for use in uses
        if use.not_seen_below is not None
    ]
    if not limits:
        return ""
    return (
        f"With {points:,} test points{' a split' if splits > 1 else ''}, errors below "
        f"{listed(limits)} cannot be told from chance."
    )


def _prose(use: Use) -> str:
    """One use in full: the methods by sign, and the one to take."""
    by_sign: dict[str, list[str]] = {}
    for method, sign in use.signs.items():
        by_sign.setdefault(sign, []).append(method)
    signs = "; ".join(f"{sign}: {names(methods)}" for sign, methods in by_sign.items())
    take = f" Take {method_name(use.take)}." if use.take else ""
    return f"{use.use[0].upper()}{use.use[1:]}: {signs}.{take}"
