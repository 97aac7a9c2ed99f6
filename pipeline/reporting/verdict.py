"""The verdict on one benchmark in words: headline, grid of signs, and a few sentences.

The sentences are about bounds, the rarest class, clusters, and what nobody can see. Which methods
are named is decided in pipeline.scoring.choice; here it is said.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metrics.registry import metric
from pipeline.reporting.names import method_name
from pipeline.reporting.wording import MOST_NAMED, bound, counted, listed, names, short, with_half
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
    is_own,
    largest,
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
CLUSTERED = (
    "Points of a cluster depend on each other: splits, floors, intervals and tests keep each of "
    "the {:,} clusters together."
)
USERS = "user of these classes (U_CWE, U_topK, U_dcg and the like)"


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
    """The verdict; `priced`: what decisions by the user's losses cost (pipeline.own.decisions)."""
    choice = choice_of(decisions, priced and priced["methods"])
    sentences = (
        _choice_sentence(choice),
        _own_bound_sentence(decisions, choice) or _bound_sentence(decisions, choice),
        _rarest_sentence(decisions, choice),
        _unknown_sentence(decisions, choice.uses),
        CLUSTERED.format(decisions.clusters) if decisions.clusters else "",
    )
    return Verdict(
        headline=_headline(decisions, choice, priced),
        legend=_legend(decisions, choice.uses),
        summary=[sentence for sentence in sentences if sentence],
        uses=choice.uses,
        overall=choice.overall,
        marks={method: marks for method, marks in decisions.marks.items() if marks},
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
    few = "points" if decisions.splits >= FEWEST_SPLITS else "points or splits"
    reasons = {
        ALONE: f"{method_name(decisions.methods[0])} is the only method here: there is nothing to "
        "choose.",
        UNTESTED: f"No method is recommended: {NOT_TESTED}.",
        EQUAL: f"Too few {few} to rank the methods: no test finds a difference among the "
        f"{counted(len(decisions.methods))}.",
    }
    unranked = reasons.get(choice.unranked, choice.unranked)
    if priced is not None:
        cost = _cost_sentence(decisions, choice, priced)
        return f"{unranked} On these test points {cost}" if unranked else cost
    if unranked or not choice.uses:
        return unranked
    by_choice: dict[tuple[tuple[str, ...], bool], list[Use]] = {}
    for use in choice.uses:
        by_choice.setdefault((use.named, use.told), []).append(use)
    return f"{_capitalized('; '.join(map(_clause, by_choice.values())))}."


def _capitalized(text: str) -> str:
    return text[0].upper() + text[1:]


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
        some = f"any of the {counted(len(methods))} methods with {signs}{finite}"
        return f"{some} will do for {labels}"
    if len(methods) > 1:
        return f"{names(methods, 'or')} will do for {labels}"
    return f"for {labels} take {method_name(methods[0])}"


def _cost_sentence(decisions: Decisions, choice: Choice, priced: Mapping[str, Any]) -> str:
    """Which method has the lowest mean loss, by how much, how sure that is; the best calibrated."""
    costs, constant = priced["methods"], priced["best_constant"]
    best = cheapest(costs)
    others = {method: of["cost"] for method, of in costs.items() if method != best}
    infinite = ", though its NLL is infinite" if best in decisions.marked(INFINITE) else ""
    start = f"{method_name(best)} has the lowest mean loss{infinite}: " if others else ""
    text = f"{start or 'the mean loss is '}{costs[best]['cost']:.3g}"
    if others:
        second = min(others, key=others.__getitem__)
        gap, dearer = costs[second]["against"][best], len(surely_dearer(costs, best))
        text += f", {with_half(gap, 'difference')} less than with {method_name(second)}, the next"
        if gap["difference_half_width"] is not None and len(others) > 1:
            found = counted(dearer) if dearer else "none"
            text += f"; a test finds {found} of the {counted(len(others))} others costlier"
        elif gap["difference_half_width"] is not None:
            text += f"; {'a' if dearer else 'no'} test finds that one costlier"
    always = costs[best]["against"][f"always {constant}"]["difference"]
    if always > ROUNDING:
        text += f", but to {constant} always costs {always:.2g} less"
    calibrated = [use.named for use in choice.uses if use.metric == "u_losses" and use.named]
    if calibrated and others:
        few, count = len(calibrated[0]) <= MOST_NAMED, counted(len(calibrated[0]))
        which = names(calibrated[0]) if few else f"{count} of {counted(len(costs))} methods"
        are = "is" if len(calibrated[0]) == 1 else "are"
        text += f". {_capitalized(which)} {are} calibrated best for these losses"
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


def _taken(decisions: Decisions, choice: Choice) -> list[str]:
    """The methods that sentences on bounds are about: those taken, or all where none is."""
    taken = dict.fromkeys(use.take for use in choice.uses if use.take)
    return [choice.overall] if choice.overall else list(taken) or decisions.methods


def _bound_sentence(decisions: Decisions, choice: Choice) -> str:
    """The bound for the users of the standard classes; "" where there is none.

    A mean over splits of bounds that hold with 95 % confidence each is not such a bound itself, so
    the sentence does not say so.
    """
    methods = _taken(decisions, choice)
    value = largest(decisions.users.get(method, math.nan) for method in methods)
    if value is None:
        return ""
    if decisions.splits < 2 and len(methods) == 1:
        name = names(methods)
        return f"With 95 % confidence no {USERS} is off by more than {bound(value)} with {name}."
    return f"{_bounded(decisions, methods, f'the error of any {USERS} is', bound(value))}."


def _own_bound_sentence(decisions: Decisions, choice: Choice) -> str:
    """The bounds for the user's own utilities and what follows from them; "" where there are none.

    A threshold rule acts where the predicted utility is at least t. Acting pays the utility minus
    t, not acting pays nothing. No monotone change of the predicted utility raises the mean pay by
    more than 2 UC, for any utility and any t (the paper's proposition "Utility Risk Gap").
    """
    methods = [choice.overall] if choice.overall else decisions.methods
    uppers = {
        metric(key).text: largest(decisions.rows[method, key].upper for method in methods)
        for key in decisions.shown
        if is_own(key)
    }
    bounds = [f"{bound(upper)} ({text})" for text, upper in uppers.items() if upper is not None]
    if not bounds:
        return ""
    bounded = _bounded(decisions, methods, "the error of your utility is", listed(bounds))
    return (
        f"{bounded}; no monotone change of a threshold rule on this utility gains more than twice "
        "the bound."
    )


def _bounded(decisions: Decisions, methods: Sequence[str], error: str, bounds: str) -> str:
    which = names(methods) if len(methods) <= MOST_NAMED else "each of these methods"
    most = "at most " if len(methods) > 1 else ""
    over = f", on average over the {decisions.splits} splits" if decisions.splits > 1 else ""
    return f"With {which} the 95 % upper bound on {error} {most}{bounds}{over}"


def _rarest_sentence(decisions: Decisions, choice: Choice) -> str:
    """How many points the rarest class has, and the bound on single decisions beside that."""
    rarest, column = decisions.rarest, decisions.column("u_cwe")
    if rarest is None or not column:
        return ""
    text = f"The rarest class has {rarest.points:,} of {rarest.n:,} points"
    value = largest(column[method].upper for method in _taken(decisions, choice))
    if value is not None:
        prevalence = short(rarest.points / rarest.n)
        text += f": compare its prevalence {prevalence} with the bound {bound(value)} (U_CWE)"
    if any(UNSEEN in use.signs.values() for use in choice.uses):
        text += (
            f". A test part has about {rarest.tested:.0f} of them; fewer than {rarest.needed} do "
            "not show whether that class is predicted half too often"
        )
    return f"{text}."


def _unknown_sentence(decisions: Decisions, uses: Sequence[Use]) -> str:
    """What the sample cannot show; "" where nothing is known of it."""
    limits, apart = (
        listed([f"{bound(value)} ({metric(use.metric).text})" for use, value in known])
        for known in (
            [(u, u.not_seen_below) for u in uses if u.not_seen_below is not None],
            [(u, u.spread) for u in uses if u.spread and len(decisions.methods) > 1],
        )
    )
    parts = [f"observed errors below {limits} cannot be told from chance"] if limits else []
    if apart:
        parts.append(f"differences between methods are known to ± {apart} only")
    a_split = " a split" if decisions.splits > 1 else ""
    start = f"With {decisions.test_points:,} test points{a_split}, "
    return f"{start}{', and '.join(parts)}." if parts else ""
