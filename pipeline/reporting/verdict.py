"""The verdict on one benchmark in words: headline, grid of signs and a few sentences.

Which methods are named is decided in pipeline.scoring.choice; here it is said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.reporting.limits import (
    bound_sentence,
    cluster_sentence,
    own_bound_sentence,
    rarest_sentence,
    unknown_sentence,
)
from pipeline.reporting.names import method_name
from pipeline.reporting.wording import MOST_NAMED, counted, listed, names, with_half
from pipeline.scoring.choice import (
    ALONE,
    BEYOND,
    CHEAP,
    COST,
    EQUAL,
    ROUNDING,
    UNKNOWN,
    UNSEEN,
    UNTESTED,
    WITHIN,
    WORSE,
    Choice,
    Use,
    cheapest,
    choice_of,
    surely_dearer,
)
from pipeline.scoring.decisions import HARMED, INFINITE, Decisions
from pipeline.scoring.inference import FEWEST_SPLITS

SIGNS = {WITHIN: "✓", UNSEEN: "?", BEYOND: "○", CHEAP: "=", WORSE: "✗", UNKNOWN: "–"}
MEANINGS = {
    WITHIN: "within noise of perfectly calibrated",
    UNSEEN: "not beyond noise, but the rarest class has too few points to tell",
    BEYOND: "beyond noise",
    CHEAP: "no test finds it costlier than the cheapest",
    WORSE: "a test finds it worse than the best (wrong in 5 % of cases for the truly best method "
    "in one column, not for all signs together)",
    UNKNOWN: "no noise floor",
}
MARKED = {
    INFINITE: "infinite NLL, so it is not recommended",
    HARMED: "in some split no setting that was tried beats temperature scaling on held-out points",
}
NOT_TESTED = "no test compares the methods, because there is one split and no resampled points"
FIXED_FITS = "the tests resample the points; the spread over other calibration sets is not known"


@dataclass(frozen=True)
class Verdict:
    """`headline`, `summary` and the signs of `uses` are read in ten seconds.

    `legend` explains the signs and marks that occur. `overall`: the method to take for all uses.
    `marks`: of Decisions.
    """

    headline: str
    legend: str
    summary: Sequence[str]
    uses: Sequence[Use]
    overall: str | None
    marks: Mapping[str, Sequence[str]]

    @property
    def grid(self) -> list[list[str]]:
        """Per method its name with its marks, and a sign for each of the uses."""
        methods = dict.fromkeys(method for use in self.uses for method in use.signs)
        return [
            [
                " ".join([method_name(method), *self.marks.get(method, ())]),
                *(SIGNS[use.signs[method]] for use in self.uses),
            ]
            for method in methods
        ]


def verdict_of(decisions: Decisions, priced: Mapping[str, Any] | None = None) -> Verdict:
    """The verdict on one benchmark.

    Args:
        priced: what decisions by the user's losses cost (pipeline.own.decisions), if given.
    """
    choice = choice_of(decisions, priced and priced["methods"])
    sentences = (
        _choice_sentence(choice),
        own_bound_sentence(decisions, choice) or bound_sentence(decisions, choice),
        rarest_sentence(decisions, choice),
        unknown_sentence(decisions, choice.uses),
        cluster_sentence(decisions),
    )
    summary = [sentence for sentence in sentences if sentence]
    return Verdict(
        headline=_headline(decisions, choice, priced),
        legend=_legend(decisions, choice.uses),
        summary=summary,
        uses=choice.uses,
        overall=choice.overall,
        marks={method: marks for method, marks in (decisions.marks or {}).items() if marks},
    )


def _legend(decisions: Decisions, uses: Sequence[Use]) -> str:
    occurring = {sign for use in uses for sign in use.signs.values()}
    signs = [f"{SIGNS[sign]} {MEANINGS[sign]}" for sign in SIGNS if sign in occurring]
    signs += [f"{mark} {meaning}" for mark, meaning in MARKED.items() if decisions.marked(mark)]
    remarks = {"": NOT_TESTED, "bootstrap": FIXED_FITS}
    remark = remarks.get(decisions.test, "") if len(decisions.methods) > 1 else ""
    return "; ".join(filter(None, [", ".join(signs), remark]))


def _headline(decisions: Decisions, choice: Choice, priced: Mapping[str, Any] | None) -> str:
    """Which methods will do for which use; with losses, which one has the lowest mean loss."""
    unranked = _unranked(decisions, choice.unranked)
    if priced is not None:
        cost = _cost_sentence(decisions, choice, priced)
        return f"{unranked} On these test points {cost}" if unranked else cost
    if unranked or not choice.uses:
        return unranked
    by_choice: dict[tuple[tuple[str, ...], bool], list[Use]] = {}
    for use in choice.uses:
        by_choice.setdefault((use.named, use.told), []).append(use)
    clauses = "; ".join(map(_clause, by_choice.values()))
    return f"{clauses[0].upper()}{clauses[1:]}."


def _unranked(decisions: Decisions, reason: str) -> str:
    methods = decisions.methods
    if reason == ALONE:
        return f"{method_name(methods[0])} is the only method here: there is nothing to choose."
    if reason == UNTESTED:
        return f"No method is recommended: {NOT_TESTED}."
    if reason == EQUAL:
        few = "points" if decisions.splits >= FEWEST_SPLITS else "points or splits"
        return (
            f"Too few {few} to rank the methods: no test finds a difference among the "
            f"{counted(len(methods))}."
        )
    return reason


def _clause(uses: Sequence[Use]) -> str:
    """What to take for uses for which the same methods are named."""
    methods, labels = uses[0].named, listed([use.label for use in uses])
    if not uses[0].told:
        return f"for {labels} no test tells the methods apart"
    if not methods:
        return f"for {labels} no method is recommended, because the best ones have an infinite NLL"
    if len(methods) > MOST_NAMED:
        signs = listed(list(dict.fromkeys(SIGNS[u.signs[m]] for u in uses for m in methods)), "or")
        finite = f" and without {INFINITE}" if any(use.left_out for use in uses) else ""
        return (
            f"any of the {counted(len(methods))} methods with {signs}{finite} will do for {labels}"
        )
    if len(methods) > 1:
        return f"{names(methods, 'or')} will do for {labels}"
    return f"for {labels} take {method_name(methods[0])}"


def _cost_sentence(decisions: Decisions, choice: Choice, priced: Mapping[str, Any]) -> str:
    """Which method has the lowest mean loss, by how much, how sure that is; the best calibrated."""
    costs = priced["methods"]
    best = cheapest(costs)
    others = [method for method in costs if method != best]
    infinite = ", though its NLL is infinite" if best in decisions.marked(INFINITE) else ""
    loss = f"{costs[best]['cost']:.3g}"
    start = f"{method_name(best)} has the lowest mean loss{infinite}: "
    text = f"{start}{loss}" if others else f"the mean loss is {loss}"
    if others:
        second = min(others, key=lambda method: float(costs[method]["cost"]))
        gap = costs[second]["against"][best]
        text += f", {with_half(gap, 'difference')} less than with {method_name(second)}, the next"
        if gap["difference_half_width"] is not None:
            dearer = len(surely_dearer(costs, best))
            if len(others) > 1:
                found = counted(dearer) if dearer else "none"
                text += f"; a test finds {found} of the {counted(len(others))} others costlier"
            else:
                text += f"; {'a' if dearer else 'no'} test finds that one costlier"
    constant = priced["best_constant"]
    always = costs[best]["against"][f"always {constant}"]["difference"]
    if always > ROUNDING:
        text += f", but to {constant} always costs {always:.2g} less"
    calibrated = [use for use in choice.uses if use.metric == "u_losses" and use.named]
    if calibrated and others:
        named = calibrated[0].named
        few = len(named) <= MOST_NAMED
        which = names(named) if few else f"{counted(len(named))} of {counted(len(costs))} methods"
        are = "is" if len(named) == 1 else "are"
        text += f". {which[0].upper()}{which[1:]} {are} calibrated best for these losses"
    return f"{text}."


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
