"""The verdict on one benchmark in words: headline, grid of signs, a few sentences, and prose.

Which methods are named is decided in pipeline.scoring.choice; here it is said.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metrics.registry import metric
from pipeline.reporting.names import method_name
from pipeline.reporting.wording import bound, counted, listed, names, short, with_half
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
    surely_dearer,
)
from pipeline.scoring.decisions import HARMED, INFINITE, Decisions
from pipeline.scoring.paired import FEWEST_SPLITS

MOST_NAMED = 3
"""A headline names up to this many methods; it gives the number of more."""
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
    HARMED: "held-out points found no setting that is better than temperature scaling",
}
NOT_TESTED = "no test compares the methods, because there is one split and no resampled points"
FIXED_FITS = "the tests resample the points; the spread over other calibration sets is not known"
USERS = "user of these classes (U_CWE, U_topK, U_dcg and the like)"


@dataclass(frozen=True)
class Verdict:
    """`headline`, `summary` and the signs of `uses` are read in ten seconds.

    `legend` explains the signs and marks that occur. `prose`: the signs of each use in a sentence,
    then the summary. `overall`: the method to take for all uses. `marks`: of Decisions.
    """

    headline: str
    legend: str
    summary: Sequence[str]
    prose: Sequence[str]
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
        _own_bound_sentence(decisions, choice) or _bound_sentence(decisions, choice),
        _rarest_sentence(decisions, choice),
        _unknown_sentence(decisions, choice.uses),
        _cluster_sentence(decisions),
    )
    summary = [sentence for sentence in sentences if sentence]
    return Verdict(
        headline=_headline(decisions, choice, priced),
        legend=_legend(decisions, choice.uses),
        summary=summary,
        prose=[*map(_prose, choice.uses), *summary],
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
            found = counted(dearer) if dearer else "none"
            of_all = "others" if len(others) > 1 else "other"
            text += f"; a test finds {found} of {counted(len(others))} {of_all} costlier"
    constant = priced["best_constant"]
    always = costs[best]["against"][f"always {constant}"]["difference"]
    if always > ROUNDING:
        text += f", but to {constant} always costs {always:.2g} less"
    calibrated = [use for use in choice.uses if use.metric == "u_losses" and use.named]
    if calibrated and others:
        sentence = _calibrated_best(calibrated[0], best)
        text += f". {sentence[0].upper()}{sentence[1:]}"
    return f"{text}."


def _calibrated_best(losses: Use, cheapest: str) -> str:
    """Which methods are calibrated best for the user's losses, and whether the cheapest is."""
    named = losses.named
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
    told = [use for use in uses if use.told]
    is_alone = all(list(use.signs.values()).count(WORSE) == len(use.signs) - 1 for use in told)
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
    value = _largest((decisions.users or {}).get(method) for method in methods)
    if value is None:
        return ""
    if decisions.splits < 2 and len(methods) == 1:
        return (
            f"With 95 % confidence no {USERS} is off by more than {bound(value)} with "
            f"{names(methods)}."
        )
    users = f"the error of any {USERS} is"
    return f"{_bound_on(users, methods)}{bound(value)}{_on_average(decisions)}."


def _own_bound_sentence(decisions: Decisions, choice: Choice) -> str:
    """The bounds for the user's own utilities and what follows from them; "" where there are none.

    A threshold rule acts where the predicted utility is at least t. Acting pays the utility minus
    t, not acting pays nothing. No monotone change of the predicted utility raises the mean pay by
    more than 2 UC, for any utility and any t (the paper's proposition "Utility Risk Gap").
    """
    methods = [choice.overall] if choice.overall else decisions.methods
    uppers = {
        metric(key).text: _largest(decisions.rows[method, key].upper for method in methods)
        for key in decisions.shown
        if is_own(key)
    }
    bounds = [f"{bound(upper)} ({text})" for text, upper in uppers.items() if upper is not None]
    if not bounds:
        return ""
    return (
        f"{_bound_on('the error of your utility is', methods)}{listed(bounds)}"
        f"{_on_average(decisions)}; no monotone change of a threshold rule on this utility gains "
        "more than twice the bound."
    )


def _rarest_sentence(decisions: Decisions, choice: Choice) -> str:
    """How many points the rarest class has, and the bound on single decisions beside that."""
    rarest, column = decisions.rarest, decisions.column("u_cwe")
    if rarest is None or not column:
        return ""
    text = f"The rarest class has {rarest.points:,} of {rarest.n:,} points"
    value = _largest(column[method].upper for method in _taken(decisions, choice))
    if value is not None:
        prevalence = short(rarest.points / rarest.n)
        text += f": compare its prevalence {prevalence} with the bound {bound(value)} (U_CWE)"
    if any(UNSEEN in use.signs.values() for use in choice.uses):
        text += (
            f". A test part has about {rarest.tested:.0f} of them; fewer than {rarest.needed} do "
            "not show whether that class is predicted half too often"
        )
    return f"{text}."


def _largest(uppers: Iterable[float | None]) -> float | None:
    known = [upper for upper in uppers if upper is not None and math.isfinite(upper)]
    return max(known, default=None)


def _bound_on(error: str, methods: Sequence[str]) -> str:
    which = names(methods) if len(methods) <= MOST_NAMED else "each of these methods"
    most = "at most " if len(methods) > 1 else ""
    return f"With {which} the 95 % upper bound on {error} {most}"


def _on_average(decisions: Decisions) -> str:
    return f", on average over the {decisions.splits} splits" if decisions.splits > 1 else ""


def _unknown_sentence(decisions: Decisions, uses: Sequence[Use]) -> str:
    """What the sample cannot show; "" where nothing is known of it."""
    limits = [
        f"{bound(use.not_seen_below)} ({metric(use.metric).text})"
        for use in uses
        if use.not_seen_below is not None
    ]
    apart = [f"{bound(use.spread)} ({metric(use.metric).text})" for use in uses if use.spread]
    parts = []
    if limits:
        parts.append(f"observed errors below {listed(limits)} cannot be told from chance")
    if apart and len(decisions.methods) > 1:
        parts.append(f"differences between methods are known to ± {listed(apart)} only")
    if not parts:
        return ""
    a_split = " a split" if decisions.splits > 1 else ""
    return f"With {decisions.test_points:,} test points{a_split}, {', and '.join(parts)}."


def _cluster_sentence(decisions: Decisions) -> str:
    """That points depend on each other; "" where they do not."""
    if not decisions.clusters:
        return ""
    return (
        "Points of a cluster depend on each other: splits, floors, intervals and tests keep each "
        f"of the {decisions.clusters:,} clusters together."
    )


def _prose(use: Use) -> str:
    """One use in full: the methods by sign, and the one to take."""
    by_sign: dict[str, list[str]] = {}
    for method, sign in use.signs.items():
        by_sign.setdefault(sign, []).append(method)
    signs = "; ".join(f"{sign}: {names(methods)}" for sign, methods in by_sign.items())
    take = f" Take {method_name(use.take)}." if use.take else ""
    return f"{use.label[0].upper()}{use.label[1:]}: {signs}.{take}"
