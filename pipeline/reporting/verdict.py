"""The verdict on one benchmark in words: headline, grid of signs, and a few sentences.

Which methods are named is decided in pipeline/scoring/choice.py; here it is said.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from utility_calibration.metrics.registry import metric

from ..scoring import choice as chosen
from ..scoring.choice import BEYOND, COST, WITHIN, WORSE, Choice, Pick, Use, largest
from ..scoring.decisions import HARMED, INFINITE, Decisions
from ..scoring.inference import FEWEST_SPLITS
from .names import SHOWN, family, method_name
from .tables import Column
from .wording import MOST_NAMED, bound, counted, listed, names, short, with_half

SIGNS = {
    WITHIN: "✓",
    chosen.UNSEEN: "?",
    BEYOND: "○",
    chosen.CHEAP: "=",
    WORSE: "✗",
    chosen.UNKNOWN: "–",
}
MEANINGS = {
    WITHIN: "within noise of perfectly calibrated",
    chosen.UNSEEN: "not beyond noise, but the rarest class has too few points to tell",
    BEYOND: "beyond noise",
    chosen.CHEAP: "no test finds it costlier than the cheapest",
    WORSE: "a test finds it worse than the best (in each column even the truly best method gets a "
    f"{SIGNS[WORSE]} by chance in 5 % of cases)",
    chosen.UNKNOWN: "no noise floor",
}
MARKED = {
    INFINITE: "infinite NLL, so it is not recommended",
    HARMED: "in some split no setting that was tried beats temperature scaling on held-out points",
}
NOT_TESTED = (
    "no test compares the methods, because there are fewer than "
    f"{FEWEST_SPLITS} splits and no resampled points"
)
FIXED_FITS = "the tests resample the points; the spread over other calibration sets is not known"
CLUSTERED = (
    "Points of a cluster depend on each other: splits, floors, intervals and tests keep each of "
    "the {:,} clusters together."
)
THRESHOLD_RULE = (
    "; no monotone change of a threshold rule on this utility gains more than twice the bound"
)
NOT_SHOWN = "do not show whether that class is predicted half too often"
USERS = "user of these classes (U_CWE, U_topK, U_dcg and the like)"


@dataclass(frozen=True)
class Verdict:
    """`legend` explains the signs, marks and short names that occur; `overall`: for all uses.

    `present` says how far the forecast as it is misleads (worst.py); a reader sees it first.
    """

    headline: str
    legend: str
    summary: Sequence[str]
    uses: Sequence[Use]
    overall: str | None
    marks: Mapping[str, Sequence[str]]
    present: Sequence[str] = ()

    @property
    def grid(self) -> list[list[str]]:
        """Per method its name with its marks, and a sign for each of the uses."""
        rows: dict[str, list[str]] = {}
        for use in self.uses:
            for method, sign in use.signs.items():
                name = " ".join([method_name(method), *self.marks.get(method, ())])
                rows.setdefault(method, [name]).append(SIGNS[sign])
        return list(rows.values())


def verdict_of(decisions: Decisions, costs: Mapping[str, Any] | None = None) -> Verdict:
    """The verdict; `costs`: what decisions by the user's losses cost (scoring/costs.py)."""
    choice = chosen.choice_of(decisions, costs and costs["methods"])
    clusters = CLUSTERED.format(decisions.clusters) if decisions.clusters else ""
    sentences = _choice_sentence(decisions, choice), *_limits(decisions, choice)
    occurring = {sign for use in choice.uses for sign in use.signs.values()}
    signs = [f"{SIGNS[sign]} {MEANINGS[sign]}" for sign in SIGNS if sign in occurring]
    signs += [f"{mark} {meaning}" for mark, meaning in MARKED.items() if decisions.marked(mark)]
    named = dict.fromkeys(family(method) for use in choice.uses for method in use.signs)
    shown = (SHOWN.get(root, {}) for root in named)
    signs += [f"{look['title']} {look['full']}" for look in shown if "full" in look]
    remark = {"": NOT_TESTED, "bootstrap": FIXED_FITS}.get(decisions.test, "")
    legend = [", ".join(signs), remark if len(decisions.methods) > 1 else ""]
    return Verdict(
        headline=_headline(decisions, choice, costs),
        legend="; ".join(filter(None, legend)),
        summary=list(filter(None, [*sentences, clusters])),
        uses=choice.uses,
        overall=choice.overall,
        marks={method: marks for method, marks in decisions.marks.items() if marks},
    )


def _headline(decisions: Decisions, choice: Choice, costs: Mapping[str, Any] | None) -> str:
    """Which methods will do for which use; with losses, which one has the lowest mean loss."""
    few = "points" if decisions.splits >= FEWEST_SPLITS else "points or splits"
    reasons = {
        chosen.ALONE: f"{method_name(decisions.methods[0])} is the only method here: there is "
        "nothing to choose.",
        chosen.UNTESTED: f"No method is recommended: {NOT_TESTED}.",
        chosen.EQUAL: f"Too few {few} to rank the methods: no test finds a difference among the "
        f"{counted(len(decisions.methods))}.",
    }
    unranked = reasons.get(choice.unranked, choice.unranked)
    if costs is not None:
        cost = _cost_sentence(decisions, choice, costs)
        return f"{unranked} On these test points {cost}" if unranked else cost
    if unranked or not choice.uses:
        return unranked
    alike: dict[tuple[Any, ...], list[Use]] = {}
    for use in choice.uses:
        left = sum(sign != WORSE for sign in use.signs.values())
        # Of many methods the clause names the signs, which must be those of each of its columns.
        signs = frozenset(use.signs[m] for m in use.named if len(use.named) > MOST_NAMED)
        key = use.named, use.differs, use.has_power, signs, None if use.named else left
        alike.setdefault(key, []).append(use)
    text = "; ".join(map(_clause, alike.values()))
    return f"{text[0].upper()}{text[1:]}."


def _clause(uses: Sequence[Use]) -> str:
    """What to take for uses for which the same methods are named."""
    methods, labels = uses[0].named, listed([use.label for use in uses])
    if not uses[0].differs:
        return f"for {labels} no test tells the methods apart"
    if not uses[0].has_power:
        left = sum(sign != WORSE for sign in uses[0].signs.values())
        return (
            f"for {labels} there are too few points to tell which of the {counted(left)} methods "
            f"without {SIGNS[WORSE]} have small errors"
        )
    if not methods:
        return f"for {labels} no method is recommended, because the best ones have an infinite NLL"
    if len(methods) == 1:
        return f"for {labels} take {method_name(methods[0])}"
    if len(methods) <= MOST_NAMED:
        return f"{names(methods, 'or')} will do for {labels}"
    found = dict.fromkeys(use.signs[m] for use in uses for m in methods)
    signs = listed([f"{SIGNS[sign]} ({sign})" for sign in found], "or")
    finite = f" and a finite NLL (no {INFINITE})" if any(use.left_out for use in uses) else ""
    return f"any of the {counted(len(methods))} methods with {signs}{finite} will do for {labels}"


def _cost_sentence(decisions: Decisions, choice: Choice, costs: Mapping[str, Any]) -> str:
    """Which method has the lowest mean loss, by how much, how sure that is; the best calibrated."""
    methods, constant = costs["methods"], costs["best_constant"]
    best = chosen.cheapest(methods)
    others = {method: of["cost"] for method, of in methods.items() if method != best}
    infinite = (
        ", but it is not recommended, because its NLL is infinite"
        if best in decisions.marked(INFINITE)
        else ""
    )
    start = f"{method_name(best)} has the lowest mean loss{infinite}: " if others else ""
    text = f"{start or 'the mean loss is '}{methods[best]['cost']:.3g}"
    if others:
        second = min(others, key=others.__getitem__)
        gap, dearer = methods[second]["against"][best], len(chosen.surely_dearer(methods, best))
        text += f", {with_half(gap, 'difference')} less than with {method_name(second)}, the next"
        if gap["difference_half_width"] is not None and len(others) > 1:
            found = counted(dearer) if dearer else "none"
            text += f"; a test finds {found} of the {counted(len(others))} others costlier"
        elif gap["difference_half_width"] is not None:
            text += f"; {'a' if dearer else 'no'} test finds that one costlier"
    always = methods[best]["against"][f"always {constant}"]["difference"]
    if always > chosen.ROUNDING:
        text += f", but to {constant} always costs {always:.2g} less"
    calibrated = [use for use in choice.uses if use.metric == "u_losses" and use.named]
    if calibrated and others:
        count = len(calibrated[0].named)
        which = names(calibrated[0].named)
        if count > MOST_NAMED:
            which = f"{counted(count).capitalize()} of {counted(len(methods))} methods"
            which += f", without those with {INFINITE}," if calibrated[0].left_out else ""
        text += f". {which} {'is' if count == 1 else 'are'} calibrated best for these losses"
    return f"{text}."


def _choice_sentence(decisions: Decisions, choice: Choice) -> str:
    """What to take for all uses, how sure that is, and which numbers decided; "" for nothing."""
    uses, pick = choice.uses, choice.pick
    if choice.unranked == chosen.EQUAL and pick is not None:
        start = f"If you must choose, take {method_name(pick.method)}"
        return f"{start}: {_reason(decisions, pick)}. No test supports this choice."
    if choice.unranked or not uses:
        return ""
    if pick is None:
        is_named = any(use.named for use in uses)
        none = "No method is among the best for all of these uses: choose for yours."
        return none if is_named else ""
    name, noise = method_name(pick.method), _noise(uses, pick.method)
    if pick.score == COST:
        lowest = f"Of the methods with a finite NLL {name} has the lowest mean loss"
        parts = [f"{lowest}, {pick.values[pick.method]:.3g}."] if uses[-1].left_out else []
        parts += [f"The calibration of {name} is {noise}."] if noise else []
        return " ".join(parts)
    is_alone = all(list(use.signs.values()).count(WORSE) == len(use.signs) - 1 for use in uses)
    start = f"One method for all of these is {name}" if len(uses) > 1 else f"Take {name}"
    reasons = ["no test finds a better one", _reason(decisions, pick)]
    sure = "clearly" if is_alone else "; ".join(filter(None, reasons))
    return f"{start}: {sure}.{f' It is {noise}.' if noise else ''}"


def _noise(uses: Sequence[Use], method: str) -> str:
    """For which uses a method is within noise and for which beyond it."""
    labels: dict[str, list[str]] = {WITHIN: [], BEYOND: [], WORSE: []}
    for use in uses:
        labels.get(use.signs[method], []).append(use.label)
    return listed([f"{sign} for {listed(of)}" for sign, of in labels.items() if of])


def _reason(decisions: Decisions, pick: Pick) -> str:
    """Why a method was taken of those that no test finds worse."""
    unmarked = f"without {SIGNS[WORSE]} and {INFINITE}"
    those = "named above for each use" if pick.are_named else unmarked
    if pick.why == chosen.DEFAULTED:
        return f"it is the default, and no method {unmarked} has a better sign"
    if pick.why == chosen.ONLY or len(pick.values) == 1:
        return "" if pick.are_named else f"it is the only method {unmarked}"
    if pick.score == COST:
        lowest = f"{pick.values[pick.method]:.3g}"
        return f"of the methods {unmarked} its mean loss of {lowest} is the lowest"
    best, following = [*pick.values][:2]
    column = Column.of(decisions.column(pick.score), "default", best)
    lowest, after = (column.text(pick.values[method]) for method in (best, following))
    text = f"of the methods {those} its {metric(pick.score).text} of {lowest} is the lowest"
    if lowest == after:
        return f"{text}, by less than the last digit"
    return f"{text}, before {after} of {method_name(following)}"


def _limits(decisions: Decisions, choice: Choice) -> Iterator[str]:
    """Bounds on errors, the rarest class, and what the sample cannot show, as far as known.

    A mean over splits of bounds that hold with 95 % confidence each is not such a bound itself, so
    the sentence does not say so. A threshold rule acts where the predicted utility is at least t;
    acting pays the utility minus t. No monotone change of the predicted utility raises the mean pay
    by more than 2 UC, for any utility and any t (the paper's proposition "Utility Risk Gap").
    """
    uses, overall = choice.uses, choice.overall
    taken = list(dict.fromkeys(use.take for use in uses if use.take)) or decisions.methods
    taken, methods = ([overall], [overall]) if overall else (taken, decisions.methods)
    own = {key: largest(decisions.column(key)[m].upper for m in methods) for key in decisions.shown}
    bounds = [
        f"{bound(upper)} ({metric(key).text})"
        for key, upper in own.items()
        if chosen.is_own(key) and upper is not None
    ]
    error, rule = "your utility", THRESHOLD_RULE
    if not bounds:
        methods, error, rule = taken, f"any {USERS}", ""
        value = largest(decisions.users.get(method, math.nan) for method in methods)
        bounds = [] if value is None else [bound(value)]
    if bounds and not rule and decisions.splits < 2 and len(methods) == 1:
        off = f"off by more than {bounds[0]} with {names(methods)}"
        yield f"With 95 % confidence no {USERS} is {off}."
    elif bounds:
        which = names(methods) if len(methods) <= MOST_NAMED else "each of these methods"
        most = "at most " if len(methods) > 1 else ""
        over = f", on average over the {decisions.splits} splits" if decisions.splits > 1 else ""
        limit = f"{most}{listed(bounds)}{over}{rule}"
        yield f"With {which} the 95 % upper bound on the error of {error} is {limit}."
    rarest, column = decisions.rarest, decisions.column("u_cwe")
    if rarest is not None and column:
        text = f"The rarest class has {rarest.points:,} of {rarest.n:,} points"
        value = largest(column[method].upper for method in taken)
        if value is not None:
            prevalence = short(rarest.points / rarest.n)
            text += f": compare its prevalence {prevalence} with the bound {bound(value)} (U_CWE)"
        if any(chosen.UNSEEN in use.signs.values() for use in uses):
            about = min(round(rarest.tested), rarest.needed - 1)  # rounded up it may seem enough
            tested = f"{about} of them; fewer than {rarest.needed}"
            text += f". A test part has about {tested} {NOT_SHOWN}"
        yield f"{text}."
    compared = uses if len(decisions.methods) > 1 else ()
    limits, apart = (
        listed(
            [f"{bound(value)} ({metric(key).text})" for key, value in known if value is not None]
        )
        for known in (
            [(use.metric, use.not_seen_below) for use in uses],
            [(use.metric, use.spread or None) for use in compared],
        )
    )
    parts = [f"observed errors below {limits} cannot be told from chance"] if limits else []
    parts += [f"differences between methods are known to ± {apart} only"] if apart else []
    if parts:
        a_split = " a split" if decisions.splits > 1 else ""
        yield f"With {decisions.test_points:,} test points{a_split}, {', and '.join(parts)}."
