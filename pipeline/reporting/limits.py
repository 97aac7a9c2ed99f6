"""What a verdict cannot exclude or show: bounds on errors, the rarest class, small differences."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from utility_calibration.metrics.registry import PURPOSES, metric
from utility_calibration.metrics.shown import LIKELIHOOD_FLOOR

from ..scoring.choice import PRESENT, Choice
from ..scoring.decisions import Decisions, Rarest
from ..scoring.recommended import Use, largest
from ..scoring.use_columns import UNSEEN
from ..scoring.uses import is_own
from .names import method_name
from .wording import (
    MOST_NAMED,
    bound,
    counted,
    listed,
    names,
    per_hundred,
    short,
    with_zero,
)
from .worst import LOSSES

CLUSTERED = (
    "A cluster's points are never divided between calibrating and testing; the ± and the tests "
    "treat each of the {:,} clusters as one unit."
)
FEW_SPLITS = (
    "There {}. So nothing is known about how much the results depend on the points that calibrate: "
    "with others the order of the methods may be another one."
)
THRESHOLD_RULE = (
    "If you act where the predicted utility exceeds a threshold, another threshold could gain at "
    "most twice as much."
)
REPAIR = (
    "The repair tried is an average of three simple maps. It was measured on the test points of "
    "the first split."
)
SMALLEST_GAIN = 0.001  # of log loss per point
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
        apart = [_smallest_seen(decisions, use, use.spread) for use in uses if use.spread]
        if apart:
            yield (
                "This file can show a difference between two methods only above these limits (per "
                f"100 points): {'; '.join(apart)}."
            )
        if decisions.test == "bootstrap":
            one = "is only one split"
            several = f"are only {counted(decisions.splits)} splits"
            yield FEW_SPLITS.format(one if decisions.splits == 1 else several)
    if decisions.clusters:
        yield CLUSTERED.format(decisions.clusters)


def _smallest_seen(decisions: Decisions, use: Use, spread: float) -> str:
    """From where on a difference is seen in a use, beside the errors that the methods have."""
    errors = [100 * row.mean for row in decisions.column(use.metric).values()]
    return (
        f"{per_hundred(spread)} in {use.label} (the errors are {short(min(errors))} to "
        f"{short(max(errors))})"
    )


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
    of_utilities = []
    own = [key for key in decisions.shown if is_own(key)]
    for key in own:
        upper = largest(decisions.column(key)[method].upper for method in methods)
        if upper is not None:
            of_utilities.append(_own_bound(key, upper))
    if of_utilities:
        rule = "" if own == [LOSSES] else f" {THRESHOLD_RULE}"
        yield f"With {_each(methods)} {listed(of_utilities)}. {_how_sure(decisions)}{rule}"
        return
    if largest(decisions.users.get(method, math.nan) for method in recommended) is not None:
        words = bound_words(decisions, recommended)
        yield f"With {_each(recommended)} the error is {words}"


def bound_words(decisions: Decisions, methods: Sequence[str]) -> str:
    """The largest bound on the errors of some methods, how sure it is, and what chance explains.

    The utilities with a purpose are those that the bound covers. Sampled users have other payoffs.
    """
    upper = largest(decisions.users.get(method, math.nan) for method in methods)
    covered = [key for key in PURPOSES if decisions.column(key)]
    where = f" in {listed([PURPOSES[key] for key in covered])}" if covered else ""
    beside = []
    before = decisions.users.get(PRESENT, math.nan)
    if math.isfinite(before) and PRESENT not in methods:
        beside.append(f"present probabilities: {per_hundred(before)}")
    beside += _chance_words(decisions, methods)
    compared = f" ({'; '.join(beside)})" if beside else ""
    size = math.nan if upper is None else upper
    return f"at most {per_hundred(size)} per 100 points{where}{compared}. {_how_sure(decisions)}"


def bound_of_the_present(decisions: Decisions) -> str:
    """The bound on the errors of the present forecast, for readers who know no error yet."""
    size = per_hundred(decisions.users[PRESENT])
    compared = "".join(f" ({words})" for words in _chance_words(decisions, [PRESENT]))
    return (
        "In every range of predictions, the number that came true differs from the number "
        f"predicted by at most {size} per 100 points of the file{compared}. {_how_sure(decisions)}"
    )


def _chance_words(decisions: Decisions, methods: Sequence[str]) -> list[str]:
    """How large an error chance explains in the uses that a bound covers; nothing if unknown."""
    covered = [key for key in PURPOSES if decisions.column(key)]
    rows = [decisions.rows[method, key] for key in covered for method in methods]
    chance = largest(row.floor_q95 for row in rows)
    if chance is None:
        return []
    return [f"chance alone: below {short(100 * chance)} in 95 % of cases"]


def _how_sure(decisions: Decisions) -> str:
    if decisions.splits > 1:
        return (
            f"We computed a 95 % upper bound in each of {decisions.splits} splits; this is their "
            "mean."
        )
    return "This is a 95 % upper bound."


def _own_bound(key: str, upper: float) -> str:
    """The bound on the error of an own utility, in its unit."""
    if key == LOSSES:
        wrong = with_zero(bound(upper))
        return (
            f"the error of the predicted cost is at most {wrong} (in the worst range of predicted "
            "costs, the mean difference from the real cost times the share of the points there)"
        )
    return f"the error for your utility {metric(key).text} is at most {bound(upper)}"


def _each(methods: Sequence[str]) -> str:
    if len(methods) <= MOST_NAMED:
        return names(methods)
    return f"the worst of the {counted(len(methods))} methods"


def rarest_words(rarest: Rarest) -> str:
    """The rarest class with its frequency: `“malignant” (3.3 % of the points)`."""
    name = f"“{rarest.name}”" if rarest.name else "the smallest class"
    return f"{name} ({short(100 * rarest.points / rarest.n)} % of the points)"


def _of_the_rarest(
    decisions: Decisions, rarest: Rarest, uses: Sequence[Use], recommended: Sequence[str]
) -> Iterator[str]:
    """What follows from how rare the rarest class is; nothing if nothing does."""
    column, frequency = decisions.column("u_cwe"), rarest.points / rarest.n
    # A bound that is large because a method is bad says nothing about the class.
    uppers = [column[method].upper for method in recommended if math.isfinite(column[method].upper)]
    upper = min(uppers, default=None)
    warning = f"Be careful with the smallest class, {rarest_words(rarest)}"
    if not rarest.name:
        warning = f"Be careful with {rarest_words(rarest)}"
    if any(UNSEEN in use.signs.values() for use in uses):
        tested = min(round(rarest.tested), rarest.needed - 1)  # rounded up it may seem enough
        yield (
            f"{warning}: a test part has only about {tested} of its points. With "
            f"fewer than {rarest.needed} we cannot reliably see even a large error (its total "
            "predicted probability 1.5 times the real number)."
        )
    elif upper is not None and upper >= HALF * frequency:
        times = "twice" if upper >= frequency else "1.5 times"
        yield f"{warning}: it may be predicted {times} as often as it occurs, unnoticed."


def left_words(
    gains: Mapping[str, tuple[float, float]],
    losses: Mapping[str, float],
    infinite: Collection[str] = (),
) -> list[str]:
    """What any recalibration could still gain with each method, or that no test finds anything.

    Args:
        gains: by method how much lower the NLL could be, and half of the 95 % interval of that.
        losses: by method the NLL.
        infinite: the methods whose NLL is infinite unless 0 counts as LIKELIHOOD_FLOOR.
    """
    sentences = []
    for method, (gain, half) in gains.items():
        whose = f"the log loss (NLL) of {method_name(method)}"
        loss = losses.get(method, math.nan)
        if method == PRESENT:
            whose = "the log loss (NLL) of the present probabilities"
        counted_as = f", if probabilities of 0 count as {LIKELIHOOD_FLOOR:g}"
        more = counted_as if method in infinite else ""
        now = f" (now {short(loss)}{more})" if math.isfinite(loss) else ""
        if gain > half:
            start = "A repair" if method == PRESENT else "A further repair"
            change = f"{short(gain)} ± {short(half)}"
            sentences.append(f"{start} lowers {whose}{now} by {change} per point.")
        else:
            most = max(gain + half, SMALLEST_GAIN)  # nobody needs to know a smaller one
            found = "We found no repair" if method == PRESENT else "We found no further repair"
            sentences.append(
                f"{found} that lowers {whose}{now}. The one that we tried gains at most "
                f"{bound(most)} per point."
            )
    if sentences:
        sentences[-1] += f" {REPAIR}"
    return sentences
