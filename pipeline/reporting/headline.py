"""The verdict that is read in ten seconds: a headline, signs per use and method, three sentences.

A method *will do* for a use where no test finds its error larger than the best. Of those that will
do, the ones within noise of perfectly calibrated are preferred. A method that gives probability 0
to a label that occurs has an infinite NLL and is not recommended while another method is there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from metrics.registry import metric
from pipeline.reporting.names import method_name
from pipeline.reporting.wording import bound, counted, listed, names

FEWEST_POINTS = 200
"""Test points of a split below which no method is recommended."""
FEWEST_OF_A_CLASS = 3
"""Expected test points of the rarest class: with fewer, test parts without the class are common."""
MOST_NAMED = 3
"""A headline names up to this many methods; it gives the number of more."""
WITHIN, BEYOND, WORSE, UNKNOWN = "within noise", "beyond noise", "worse than the best", "no floor"
SIGNS = {WITHIN: "✓", BEYOND: "○", WORSE: "✗", UNKNOWN: "–"}
LEGEND = (
    "✓ within noise of perfectly calibrated, ○ beyond noise, ✗ significantly worse than the best"
)


@dataclass(frozen=True)
class UseVerdict:
    """One use: which methods are within noise, which to take, which are as good, how sure.

    label: the use in a word or two. take: the method to take, "" where none is recommended.
    will_do: the methods that the headline recommends. not_seen_below: the 95 % quantile of the
    noise floor of the method taken. signs: by method WITHIN, BEYOND, WORSE or UNKNOWN.
    """

    metric: str
    use: str
    label: str
    within_noise: tuple[str, ...]
    beyond_noise: tuple[str, ...]
    take: str
    will_do: tuple[str, ...]
    as_good: tuple[str, ...]
    sure: str
    not_seen_below: float
    signs: Mapping[str, str]
    sentence: str


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


def headline_of(uses: Sequence[UseVerdict], compared: bool) -> str:
    """One sentence: which methods will do for which use."""
    methods = list(uses[0].signs)
    if len(methods) == 1:
        return f"{method_name(methods[0])} is the only method here: there is nothing to choose."
    if not compared:
        return "No method is recommended: a single split does not test one against another."
    if all(WORSE not in use.signs.values() for use in uses):
        return (
            f"Too few points to rank the methods: no test finds a difference among the "
            f"{counted(len(methods))}."
        )
    by_choice: dict[tuple[str, ...], list[str]] = {}
    for use in uses:
        by_choice.setdefault(use.will_do, []).append(use.label)
    clauses = "; ".join(_clause(*pair) for pair in by_choice.items())
    return f"{clauses[0].upper()}{clauses[1:]}."


def _clause(methods: Sequence[str], labels: Sequence[str]) -> str:
    uses = listed(labels)
    if not methods:
        return f"for {uses} no method is recommended, because the best ones have an infinite NLL"
    if len(methods) > MOST_NAMED:
        return f"any of {counted(len(methods))} methods will do for {uses}"
    if len(methods) > 1:
        return f"{names(methods, 'or')} will do for {uses}"
    return f"for {uses} take {method_name(methods[0])}"


def choice_sentence(uses: Sequence[UseVerdict], overall: str | None, barred: Sequence[str]) -> str:
    """What to take and how sure that is; "" where no test finds a difference.

    Args:
        overall: the method that is among the best for every use, if there is one.
        barred: methods that are not recommended for their infinite NLL.
    """
    if not any(WORSE in use.signs.values() for use in uses) or not any(use.take for use in uses):
        return ""
    if overall is None:
        return "No method is among the best for all of these uses: choose by yours."
    as_good = {method for use in uses for method in use.as_good}
    left_out = [method for method in barred if method in as_good]
    end = f" ({names(left_out)}: not recommended, infinite NLL)" if left_out else ""
    if len(uses) == 1:
        sure = "every other method's error is significantly larger"
        if uses[0].as_good:
            sure = f"no test finds it different from {names(uses[0].as_good, 'or')}"
        return f"Take {method_name(uses[0].take)}: {sure}{end}."
    sure = "no test finds a better one" if as_good else "clearly"
    labels = {
        sign: [use.label for use in uses if use.signs[overall] == sign] for sign in (WITHIN, BEYOND)
    }
    noise = " and ".join(f"{sign} for {listed(of)}" for sign, of in labels.items() if of)
    how_good = f"; it is {noise}" if noise else ""
    return f"One method for all of these is {method_name(overall)}: {sure}{how_good}{end}."


def bound_sentence(upper: float, method: str, splits: int) -> str:
    """The bound for the users of the standard classes; "" where it is NaN.

    A mean over splits of bounds that hold with 95 % confidence each is not such a bound itself, so
    the sentence does not say so.
    """
    if not math.isfinite(upper):
        return ""
    name, value = method_name(method), bound(upper)
    users = "user of these classes (U_CWE, U_topK, U_dcg and the like)"
    if splits > 1:
        return (
            f"With {name} the 95 % upper bound on the error of any {users} is {value}, on average "
            f"over the {splits} splits."
        )
    return f"With 95 % confidence no {users} is off by more than {value} with {name}."


def unknown_sentence(uses: Sequence[UseVerdict], points: int, splits: int) -> str:
    """What the sample cannot show; "" where no noise floor is known."""
    limits = [use for use in uses if math.isfinite(use.not_seen_below)]
    if not limits:
        return ""
    errors = listed([f"{bound(use.not_seen_below)} ({metric(use.metric).text})" for use in limits])
    return (
        f"Not known: with {points:,} test points{' a split' if splits > 1 else ''} an error "
        f"below {errors} could not have been seen."
    )
