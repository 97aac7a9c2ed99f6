"""What a verdict cannot exclude or show: bounds on errors, the rarest class, small differences."""

import math
from collections.abc import Iterator, Mapping, Sequence

from utility_calibration.metrics.registry import metric

from ..scoring.choice import Choice
from ..scoring.decisions import Decisions, Rarest
from ..scoring.recommended import Use, largest
from ..scoring.use_columns import UNSEEN
from ..scoring.uses import is_own
from .names import PRESENT, method_name
from .wording import MOST_NAMED, bound, counted, listed, names, short
from .worst import LOSSES

CLUSTERED = (
    "Points of one cluster may resemble each other. So splits, intervals and tests keep each of "
    "the {:,} clusters whole."
)
FEW_SPLITS = (
    "There {}. So nothing is known about how much the results depend on the points that calibrate: "
    "with others the order of the methods may be another one."
)
THRESHOLD_RULE = (
    "If you act where the predicted utility exceeds a threshold, another threshold could gain at "
    "most twice as much."
)
SMALLEST_GAIN = 0.001  # of log loss per point; nobody needs to know a smaller one
LESS = f"less than {short(SMALLEST_GAIN, 1)}"
HALF = 0.5  # of the rarest class's frequency: an error of this size is worth a sentence


def limits_of(decisions: Decisions, choice: Choice, is_bound_said: bool = False) -> Iterator[str]:
    """What the sample cannot exclude or show, as far as it is known, a sentence or two each.

    Args:
        is_bound_said: whether the answer has the bound of the recommended method.
    """
    uses, methods = choice.uses, decisions.methods
    recommended = _recommended(decisions, choice)
    if choice.overall:
        methods = recommended
    yield from _accuracy(decisions, choice.overall)
    if not is_bound_said:
        yield from _bounds(decisions, methods, recommended)
    if len(decisions.methods) > 1:
        apart = [f"{bound(use.spread)} ({use.label})" for use in uses if use.spread]
        if apart:
            yield (
                "On these points no test can see differences between methods that are smaller "
                f"than {listed(apart)}."
            )
        if decisions.test == "bootstrap":
            one = "is only one split"
            several = f"are only {counted(decisions.splits)} splits"
            yield FEW_SPLITS.format(one if decisions.splits == 1 else several)
    if decisions.clusters:
        yield CLUSTERED.format(decisions.clusters)


def cautions_of(decisions: Decisions, choice: Choice) -> list[str]:
    """What a reader must know before the advice: what cannot be said of the rarest class."""
    if decisions.rarest is None or not decisions.column("u_cwe"):
        return []
    recommended = _recommended(decisions, choice)
    return list(_of_the_rarest(decisions, decisions.rarest, choice.uses, recommended))


def _recommended(decisions: Decisions, choice: Choice) -> list[str]:
    """The method for all uses, else those for some use, else all that were scored."""
    if choice.overall:
        return [choice.overall]
    of_uses = dict.fromkeys(use.take for use in choice.uses if use.take)
    return list(of_uses) or decisions.methods


def _accuracy(decisions: Decisions, method: str | None) -> Iterator[str]:
    """How often the most probable class is right, before and after calibration."""
    rows = decisions.column("accuracy")
    if method is None or method == PRESENT or PRESENT not in rows or method not in rows:
        return
    before, after = (f"{100 * rows[name].mean:.1f} %" for name in (PRESENT, method))
    change = "as before" if before == after else f"before: {before}"
    yield (
        f"With {method_name(method)} the most probable class is right for {after} of the points "
        f"({change})."
    )


def _bounds(
    decisions: Decisions, methods: Sequence[str], recommended: Sequence[str]
) -> Iterator[str]:
    """Upper bounds on errors: of the user's own utilities, else of all that were asked.

    A mean over splits of bounds that hold with 95 % confidence each is not such a bound itself, so
    the sentence does not say so. A threshold rule acts where the predicted utility is at least t;
    acting pays the utility minus t. No monotone change of the predicted utility raises the mean pay
    by more than 2 UC, for any utility and any t (the paper's proposition "Utility Risk Gap").
    """
    over = f", on average over {decisions.splits} splits" if decisions.splits > 1 else ""
    how_sure = f"This is a 95 % upper bound{over}."
    of_utilities = []
    own = [key for key in decisions.shown if is_own(key)]
    for key in own:
        upper = largest(decisions.column(key)[method].upper for method in methods)
        if upper is not None:
            of_utilities.append(f"{bound(upper)} for {_own_name(key)}")
    if of_utilities:
        rule = "" if own == [LOSSES] else f" {THRESHOLD_RULE}"
        start = f"With {_each(methods)} an error is at most {listed(of_utilities)}."
        yield f"{start} {how_sure}{rule}"
        return
    upper = largest(decisions.users.get(method, math.nan) for method in recommended)
    if upper is None:
        return
    before = decisions.users.get(PRESENT, math.nan)
    compared = ""
    if math.isfinite(before) and PRESENT not in recommended:
        compared = f" (with the present probabilities: {bound(before)})"
    yield (
        f"With {_each(recommended)} an error is at most {bound(upper)}{compared}, whichever class, "
        f"length of a shortlist or way to rank you choose. {how_sure}"
    )


def _own_name(key: str) -> str:
    """What an own utility is called in a sentence."""
    if key == LOSSES:
        return "the predicted cost of your decisions"
    return f"your utility {metric(key).text}"


def _each(methods: Sequence[str]) -> str:
    return names(methods) if len(methods) <= MOST_NAMED else "each of these methods"


def rarest_words(rarest: Rarest) -> str:
    """The rarest class with its frequency: `“malignant” (3.3 % of the points)`."""
    name = f"“{rarest.name}”" if rarest.name else "the rarest class"
    return f"{name} ({short(100 * rarest.points / rarest.n)} % of the points)"


def _of_the_rarest(
    decisions: Decisions, rarest: Rarest, uses: Sequence[Use], recommended: Sequence[str]
) -> Iterator[str]:
    """What follows from how rare the rarest class is; nothing if nothing does."""
    column, frequency = decisions.column("u_cwe"), rarest.points / rarest.n
    # A bound that is large because a method is bad says nothing about the class.
    uppers = [column[method].upper for method in recommended if math.isfinite(column[method].upper)]
    upper = min(uppers, default=None)
    sentences = []
    if upper is not None and upper >= frequency:
        sentences.append("An error as large as its whole frequency cannot be excluded.")
    elif upper is not None and upper >= HALF * frequency:
        sentences.append("An error of half its frequency cannot be excluded.")
    if any(UNSEEN in use.signs.values() for use in uses):
        tested = min(round(rarest.tested), rarest.needed - 1)  # rounded up it may seem enough
        sentences.append(
            f"A test part has about {tested} of its points. With fewer than {rarest.needed} nobody "
            "could notice if the class were predicted 1.5 times as often as it occurs."
        )
    if sentences:
        yield f"Be careful with {rarest_words(rarest)}, which has few points. {' '.join(sentences)}"


def left_words(gains: Mapping[str, tuple[float, float]]) -> Iterator[str]:
    """What any recalibration could still gain with each method, or that no test finds anything.

    Args:
        gains: by method how much lower the NLL could be, and half of the 95 % interval of that.
    """
    for method, (gain, half) in gains.items():
        name = "the present probabilities" if method == PRESENT else method_name(method)
        further = "A repair" if method == PRESENT else "A further repair"
        measured = "(measured on the test points of the first split)"
        if gain > half:
            change = f"lowers the log loss (NLL) by {short(gain)} ± {short(half)}"
        else:
            most = gain + half
            small = f"at most {bound(most)}" if most > SMALLEST_GAIN else LESS
            change = f"was not found to help: it could lower the log loss (NLL) by {small}"
        yield f"{further} of {name} {change} per point {measured}."
