"""What a verdict cannot exclude or show: bounds on errors, the rarest class, small differences."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

from utility_calibration.metrics.registry import PURPOSES, metric
from utility_calibration.metrics.shown import LIKELIHOOD_FLOOR

from ..scoring.choice import PRESENT, Choice
from ..scoring.decisions import Decisions, Rarest
from ..scoring.inference import ONE_SIDED
from ..scoring.recommended import Use
from ..scoring.use_columns import UNSEEN
from ..scoring.uses import is_own, label_of
from .names import method_name
from .wording import bound, counted, listed, per_hundred, short, with_zero
from .worst import LOSSES

FEW_SPLITS = (
    "There {}. So it is not known how much the results depend on the cases that fit the methods. "
    "With other cases the order of the methods may be another one."
)
THRESHOLD_RULE = (
    "If you act where the predicted utility is above a threshold, another threshold could gain at "
    "most twice as much."
)
NLL = "The log loss (NLL) is a score of all probabilities, where 0 is perfect."
TRIED = (
    "We looked for more with an average of three simple repairs. It was fitted to a part of the "
    "test cases of the first split, and measured on the others."
)
SMALLEST_GAIN = 0.001  # of log loss per point
HALF = 0.5  # of the rarest class's frequency: an error of this size is worth a sentence


def limits_of(decisions: Decisions, choice: Choice) -> Iterator[str]:
    """What the sample cannot show, as far as it is known, a sentence or two each."""
    yield from _of_the_rarest(decisions, choice)
    yield from _of_weak_tests(decisions, choice)
    if len(decisions.methods) > 1:
        for use in choice.uses:
            if use.spread:
                yield _smallest_seen(decisions, use, use.spread)
        if decisions.test == "bootstrap":
            one = "is only one split"
            several = f"are only {counted(decisions.splits)} splits"
            yield FEW_SPLITS.format(one if decisions.splits == 1 else several)


def _of_weak_tests(decisions: Decisions, choice: Choice) -> Iterator[str]:
    """How much worse than the best the method taken may be, where tests rule out too little."""
    if choice.overall is None:
        return
    for use in choice.uses:
        if use.has_power:
            continue
        row = decisions.column(use.metric)[choice.overall]
        most = row.difference + ONE_SIDED * row.difference_half_width
        yield (
            f"For {use.label} the tests are weak: the error of {method_name(choice.overall)} may "
            f"be {_amount(use, most)} larger than that of the best method (95 % confidence)."
        )


def _smallest_seen(decisions: Decisions, use: Use, spread: float) -> str:
    """From where on a difference is seen in a use, beside the errors that the methods have."""
    errors = [row.mean for row in decisions.column(use.metric).values()]
    factor, unit = _scale(use)
    extent = f"{short(factor * min(errors))} to {short(factor * max(errors))}"
    extent = with_zero(extent) if factor == 1 else extent
    return (
        f"For {use.label} the methods have errors of {extent} {unit}. This file "
        "shows a difference between two methods only if it is larger than about "
        f"{_amount(use, spread)}."
    )


def _scale(use: Use) -> tuple[int, str]:
    """What an error is multiplied with to be shown, and its unit: a cost is none of cases."""
    return (1, "per case, in your unit") if is_own(use.metric) else (100, "per 100 cases")


def _amount(use: Use, error: float) -> str:
    """An error, rounded up, with its unit."""
    factor, unit = _scale(use)
    return f"{with_zero(bound(error)) if factor == 1 else per_hundred(error)} {unit}"


def cautions_of(decisions: Decisions, choice: Choice) -> list[str]:
    """What a reader must know before the advice: how far the rarest class may be off."""
    rarest = decisions.rarest
    if rarest is None or not decisions.column("u_cwe") or _is_unseen(choice):
        return []
    # A bound that is large because a method is bad says nothing about the class.
    column, frequency = decisions.column("u_cwe"), rarest.points / rarest.n
    methods = recommended_of(decisions, choice)
    uppers = {method: column[method].upper for method in methods}
    finite = {method: upper for method, upper in uppers.items() if math.isfinite(upper)}
    if not finite or min(finite.values()) < HALF * frequency:
        return []
    best = min(finite, key=lambda method: finite[method])
    times = "twice" if finite[best] >= frequency else "1.5 times"
    source = "the model itself" if best == PRESENT else f"even {method_name(best)}"
    return [
        f"Be careful with {rarest_words(rarest)}: {source} may predict it {times} as often as it "
        "occurs. The file is too small to rule that out."
    ]


def _is_unseen(choice: Choice) -> bool:
    """Whether the grid says of some method that the smallest class has too few cases."""
    return any(UNSEEN in use.signs.values() for use in choice.uses)


def recommended_of(decisions: Decisions, choice: Choice) -> list[str]:
    """The method for all uses, else those for some use, else all that were scored."""
    if choice.overall:
        return [choice.overall]
    of_uses = dict.fromkeys(use.take for use in choice.uses if use.take)
    return list(of_uses) or decisions.methods


def accuracy_of(decisions: Decisions, method: str | None) -> Iterator[str]:
    """How often the most probable class is right, before and after calibration."""
    rows = decisions.column("accuracy")
    if method is None or method == PRESENT or PRESENT not in rows or method not in rows:
        return
    before, after = (f"{100 * rows[name].mean:.1f} %" for name in (PRESENT, method))
    change = "as before" if before == after else f"before: {before}"
    yield (
        f"With {method_name(method)} the most probable class is right for {after} of the cases "
        f"({change})."
    )


def bounds_of(decisions: Decisions, choice: Choice) -> Iterator[str]:
    """Upper bounds on errors: of the user's own utilities, else of all that were asked.

    A mean over splits of bounds that hold with 95 % confidence each is not such a bound itself, so
    the sentence does not say so. A threshold rule acts where the predicted utility is at least t;
    acting pays the utility minus t. No monotone change of the predicted utility raises the mean pay
    by more than 2 UC, for any utility and any t (the paper's proposition "Utility Risk Gap").
    """
    methods = [PRESENT] if PRESENT in decisions.methods else []
    methods += recommended_of(decisions, choice)
    own = [key for key in decisions.shown if is_own(key)]
    lines: list[str] = []
    for method in dict.fromkeys(methods):
        lines += _own_bounds(decisions, method, own) if own else _bound(decisions, method)
    if not lines:
        return
    yield from lines
    largest = "" if own else " on the largest error of these uses"
    over = ""
    if decisions.splits > 1:
        over = f", which we computed in each of {decisions.splits} splits and averaged"
    yield (
        f"“At most” is a 95 % upper bound{largest}{over}. It says what such a file cannot rule "
        "out, so it is larger than what was measured."
    )
    if own and own != [LOSSES]:
        yield THRESHOLD_RULE


def _bound(decisions: Decisions, method: str) -> Iterator[str]:
    """What was measured in each use, what chance makes, and the bound for all uses."""
    upper = decisions.users.get(method, math.nan)
    if not math.isfinite(upper):
        return
    parts = []
    for key in filter(decisions.column, PURPOSES):
        row = decisions.column(key)[method]
        chance = short(100 * row.floor_q95)
        by_chance = f" (by chance alone up to {chance})" if chance != "?" else ""
        parts.append(f"{short(100 * row.mean)} in {label_of(key)}{by_chance}")
    start = f"{_whose(method)}: the errors are at most {per_hundred(upper)} per 100 cases."
    yield f"{start} Measured were {listed(parts)}." if parts else start


def _own_bounds(decisions: Decisions, method: str, own: Sequence[str]) -> Iterator[str]:
    """The same of each utility of the user, in its unit."""
    for key in own:
        row = decisions.column(key)[method]
        if not math.isfinite(row.upper):
            continue
        numbers = [bound(row.upper), short(row.mean), short(row.floor_q95)]
        most, measured, chance = map(with_zero, numbers) if key == LOSSES else numbers
        by_chance = f" (by chance alone up to {chance})" if chance != "?" else ""
        error = f"error for your utility {metric(key).text}"
        if key == LOSSES:
            error = "error of the predicted cost"
        most_of_all = f"{_whose(method)}: the {error} is at most {most}."
        yield f"{most_of_all} Measured was {measured}{by_chance}."


def _whose(method: str) -> str:
    """A method at the beginning of a sentence."""
    return "The model's probabilities" if method == PRESENT else f"With {method_name(method)}"


def rarest_name(rarest: Rarest) -> str:
    """The rarest class in quotes, or what it is."""
    return f"“{rarest.name}”" if rarest.name else "the smallest class"


def rarest_words(rarest: Rarest) -> str:
    """The rarest class with its frequency: `“malignant” (3.3 % of the cases)`."""
    return f"{rarest_name(rarest)} ({short(100 * rarest.points / rarest.n)} % of the cases)"


def needed_words(rarest: Rarest) -> str:
    """How many cases of the rarest class the file has, and how many it needs."""
    in_all = math.ceil(rarest.needed / rarest.share)
    return f"the file has {rarest.points:,}, and about {in_all:,} are needed"


def _of_the_rarest(decisions: Decisions, choice: Choice) -> Iterator[str]:
    """What follows from how rare the rarest class is, where the grid cannot tell; else nothing."""
    rarest = decisions.rarest
    if rarest is None or not decisions.column("u_cwe") or not _is_unseen(choice):
        return
    in_all = math.ceil(rarest.needed / rarest.share)
    name = rarest_name(rarest)
    yield (
        f"{name[0].upper()}{name[1:]} is the smallest class: the file has {rarest.points:,} cases "
        f"of it, and each test about {round(rarest.tested)}. To see that a class is predicted 1.5 "
        f"times as often as it occurs, a test needs {rarest.needed} of its cases, so the file "
        f"needs about {in_all:,}."
    )


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
        whose = "the model's probabilities" if method == PRESENT else method_name(method)
        zeros = ""
        if method in infinite:
            zeros = f", if probabilities of 0 count as {LIKELIHOOD_FLOOR:g}"
        now = f"The log loss of {whose} is {short(losses[method])} per case{zeros}."
        if gain > half:
            sentences.append(f"{now} This repair lowers it by {short(gain)} ± {short(half)} there.")
        else:
            most = max(gain + half, SMALLEST_GAIN)  # nobody needs to know a smaller one
            sentences.append(f"{now} This repair gains nothing there (at most {bound(most)}).")
    return [NLL, TRIED, *sentences] if sentences else []
