"""What a verdict cannot exclude or show: bounds on errors, the rarest class, small differences."""

import math
from collections.abc import Iterator, Mapping, Sequence

from utility_calibration.metrics.registry import metric

from ..scoring import choice as chosen
from ..scoring.choice import Choice, Use, largest
from ..scoring.decisions import Decisions, Rarest
from .names import PRESENT, method_name
from .wording import MOST_NAMED, SMALLEST_BOUND, bound, counted, listed, names, short

CLUSTERED = (
    "Points of a cluster depend on each other: splits, floors, intervals and tests keep each of "
    "the {:,} clusters together."
)
FEW_SPLITS = (
    "With {} the tests know the chance of the points that test, not of those that calibrate. With "
    "other calibration points the methods may rank otherwise."
)
THRESHOLD_RULE = "Choosing another threshold could gain at most twice this bound."
HALF = 0.5  # of the rarest class's frequency: an error of this size is worth a sentence


def limits_of(decisions: Decisions, choice: Choice, is_bound_said: bool = False) -> Iterator[str]:
    """What the sample cannot exclude or show, as far as it is known, a sentence or two each.

    Args:
        is_bound_said: whether the answer has the bound of the recommended method.
    """
    uses, methods = choice.uses, decisions.methods
    recommended = list(dict.fromkeys(use.take for use in uses if use.take)) or methods
    if choice.overall:
        recommended = methods = [choice.overall]
    yield from _accuracy(decisions, choice.overall)
    if not is_bound_said:
        yield from _bounds(decisions, methods, recommended)
    if decisions.rarest is not None and decisions.column("u_cwe"):
        yield from _of_the_rarest(decisions, decisions.rarest, uses, recommended)
    if len(decisions.methods) > 1:
        apart = [f"{bound(use.spread)} ({use.label})" for use in uses if use.spread]
        if apart:
            yield f"Differences between methods below {listed(apart)} cannot be seen here."
        if decisions.test == "bootstrap":
            splits = f"only {counted(decisions.splits)} split{'s' * (decisions.splits > 1)}"
            yield FEW_SPLITS.format(splits)
    if decisions.clusters:
        yield CLUSTERED.format(decisions.clusters)


def _accuracy(decisions: Decisions, method: str | None) -> Iterator[str]:
    """How often the most probable class is right, before and after calibration."""
    rows = decisions.column("accuracy")
    if method is None or method == PRESENT or PRESENT not in rows or method not in rows:
        return
    before, after = (f"{100 * rows[name].mean:.1f} %" for name in (PRESENT, method))
    if before == after:
        yield f"The accuracy stays at {after} with {method_name(method)}."
    else:
        yield f"The accuracy goes from {before} to {after} with {method_name(method)}."


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
    own_bounds = []
    for key in filter(chosen.is_own, decisions.shown):
        upper = largest(decisions.column(key)[method].upper for method in methods)
        if upper is not None:
            own_bounds.append(f"{bound(upper)} ({metric(key).text})")
    if own_bounds:
        start = f"With {_each(methods)} the 95 % upper bound on the error of your utility is"
        yield f"{start} {_at_most(methods)}{listed(own_bounds)}{over}. {THRESHOLD_RULE}"
        return
    upper = largest(decisions.users.get(method, math.nan) for method in recommended)
    if upper is None:
        return
    which = "Whichever class, length of a shortlist or way to rank you choose"
    start = f"{which}, the 95 % upper bound on the error with {_each(recommended)} is"
    before = decisions.users.get(PRESENT, math.nan)
    compared = ""
    if math.isfinite(before) and PRESENT not in recommended:
        compared = f" (with the present probabilities: {bound(before)})"
    yield f"{start} {_at_most(recommended)}{bound(upper)}{over}{compared}."


def _each(methods: Sequence[str]) -> str:
    return names(methods) if len(methods) <= MOST_NAMED else "each of these methods"


def _at_most(methods: Sequence[str]) -> str:
    return "at most " if len(methods) > 1 else ""


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
    called = rarest_words(rarest)
    called = called[0].upper() + called[1:]
    if upper is not None and upper >= frequency:
        yield (
            f"{called} is too rare: an error as large as its whole frequency cannot be excluded."
        )
    elif upper is not None and upper >= HALF * frequency:
        yield f"{called} has few points: an error of half its frequency cannot be excluded."
    if any(chosen.UNSEEN in use.signs.values() for use in uses):
        tested = min(round(rarest.tested), rarest.needed - 1)  # rounded up it may seem enough
        name = f"“{rarest.name}”" if rarest.name else "the rarest class"
        yield (
            f"A test part has about {tested} points of {name}. With fewer than {rarest.needed} "
            "nobody could notice if it were predicted 1.5 times as often as it occurs."
        )


def left_words(gains: Mapping[str, tuple[float, float]]) -> Iterator[str]:
    """What any recalibration could still gain with each method, or that no test finds anything.

    Args:
        gains: by method how much lower the NLL could be, and half of the 95 % interval of that.
    """
    for method, (gain, half) in gains.items():
        name = "the present probabilities" if method == PRESENT else method_name(method)
        if gain > half:
            yield (
                f"A further map of {name} could lower the log loss (NLL) by {short(gain)} ± "
                f"{short(half)} per point, measured on the first split."
            )
        else:
            most = bound(max(gain + half, SMALLEST_BOUND))
            yield (
                f"No test finds anything that a further map of {name} could still gain (at most "
                f"{most} of log loss per point, measured on the first split)."
            )
