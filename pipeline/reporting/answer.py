"""The first thing a reader sees: can the present probabilities be trusted, and where not.

The answer is yes, no or cannot tell. It follows from the tests of the present forecast alone; which
method improves it is another question (verdict.py).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from utility_calibration.metrics.registry import PURPOSES, metric

from ..scoring.choice import PRESENT
from ..scoring.decisions import FEWEST_POINTS, INFINITE, Decision, Decisions
from ..scoring.uses import is_own, is_use, label_of
from .limits import bound_of_the_present, rarest_words
from .wording import interval, listed, percents, short, with_zero
from .worst import LOSSES, Worst

YES, NO, UNSURE = "yes", "no", "cannot tell"
DOUBT = "Cannot tell whether you can trust the present probabilities as they are: "
UNSCORED = f"{DOUBT}the method uncalibrated was not scored."
DISTRUST = "No, do not trust the present probabilities as they are: "
ZEROS = "some classes that occurred had a predicted probability of 0"
NEARLY_ALL = 0.9  # a range with this share of the points is no single place
PLAIN = ("u_cwe", "u_topk")  # of these a worst place is a probability and how often it comes true


@dataclass(frozen=True)
class Answer:
    """The answer in one sentence or two, and the worst place of the present forecast.

    Attributes:
        word: YES, NO or UNSURE.
        sentence: the answer in words.
        metric: of the worst place, "" if none is known.
        place: the worst place in words, "" if none is known.
        example: what a better threshold gains there, "" where no test finds a gain.
    """

    word: str
    sentence: str
    metric: str = ""
    place: str = ""
    example: str = ""


def answer_of(decisions: Decisions, worst: Mapping[str, Mapping[str, Worst]]) -> Answer:
    """The answer for the forecast as it is.

    Args:
        worst: the worst utilities by metric and method.
    """
    if PRESENT not in decisions.methods:
        return Answer(UNSURE, UNSCORED)
    rows = {key: decisions.rows[PRESENT, key] for key in decisions.shown if is_use(key)}
    word, sentence = _answer(decisions, rows)
    key = _worst_metric(rows, worst)
    if not key:
        return Answer(word, sentence)
    one = worst[key][PRESENT]
    is_error = rows[key].beyond_floor
    # Nobody acts on a utility that is no probability from a threshold on.
    is_example = is_error and one.surely_gains and key in PLAIN
    example = _example(key, one) if is_example else ""
    return Answer(word, sentence, key, _place(key, one, is_error), example)


def _answer(decisions: Decisions, rows: Mapping[str, Decision]) -> tuple[str, str]:
    """Yes, no or cannot tell, and the sentence that says so."""
    beyond = [label_of(key) for key, row in rows.items() if row.beyond_floor]
    within = [label_of(key) for key, row in rows.items() if row.within_noise]
    unseen = [label_of(key) for key, row in rows.items() if row.within_noise is None]
    is_infinite = PRESENT in decisions.marked(INFINITE)
    fine = f" For {listed(within)} no error beyond chance was found." if within else ""
    if beyond:
        text = f"{DISTRUST}for {listed(beyond)} their errors are larger than chance explains."
        return NO, text + fine + (f" Also, {ZEROS}." if is_infinite else "")
    if is_infinite:
        return NO, f"{DISTRUST}{ZEROS}."
    if not rows or all(row.beyond_floor is None for row in rows.values()):
        return UNSURE, f"{DOUBT}how large errors are by chance alone is not known here."
    if decisions.refused:
        reason = "no method can be recommended here, as said below"
        if decisions.test_points < FEWEST_POINTS:
            reason = f"{decisions.test_points} test points cannot show much"
        return UNSURE, f"{DOUBT}no error beyond chance was found, but {reason}."
    if unseen:
        rarest = "some class"
        if decisions.rarest is not None:
            rarest = rarest_words(decisions.rarest)
        text = f"for {listed(unseen)} there are too few points of {rarest} to see an error."
        return UNSURE, f"{DOUBT}{text}{fine}"
    text = (
        f"Yes, you can trust the present probabilities as they are for {listed(within)}: no error "
        "beyond chance was found."
    )
    if math.isfinite(decisions.users.get(PRESENT, math.nan)):
        text += f" {bound_of_the_present(decisions)}"
    return YES, text


def _worst_metric(rows: Mapping[str, Decision], worst: Mapping[str, Mapping[str, Worst]]) -> str:
    """The metric whose worst place is shown, "" if there is none.

    An error beyond chance goes first. Of these the user's own utilities go first, and then those
    that are probabilities. Of equals it is the one that exceeds its noise floor most.
    """
    candidates = [key for key in rows if PRESENT in worst.get(key, {})]
    beyond = [key for key in candidates if rows[key].beyond_floor]
    candidates = beyond or candidates
    for preferred in (
        [key for key in candidates if is_own(key)],
        [key for key in candidates if key in PLAIN],
        candidates,
    ):
        if preferred:
            return max(preferred, key=lambda key: _excess(rows[key]))
    return ""


def _excess(row: Decision) -> float:
    floor = 0.0 if math.isnan(row.floor_q95) else row.floor_q95
    return row.mean - floor


def _place(key: str, one: Worst, is_error: bool | None) -> str:
    """Where the forecast errs most, in words; `is_error`: None where chance is not known."""
    if not one.gap:
        return "Nothing differs: all comes true as predicted."
    low_or_high = "low" if one.gap > 0 else "high"
    conclusions = {
        True: f"these predictions are too {low_or_high}",
        False: "chance can explain it",
        None: "whether chance explains it is not known",
    }
    share = f"{100 * one.share:.0f} % of the points"
    difference, conclusion = _difference(key, one), conclusions[is_error]
    if is_error and one.share >= NEARLY_ALL:
        return f"Nearly everywhere ({share}): {difference}; {conclusion}."
    start = "The worst range of predictions"
    if not is_error:
        start = "The range with the largest error (difference × share of the points)"
    return f"{start}: {difference}. This concerns {share}; {conclusion}."


def _difference(key: str, one: Worst) -> str:
    """How far what came true is from what was predicted, there."""
    direction = "more" if one.gap > 0 else "less"
    where = percents(one.low, one.high)
    difference = f"{short(abs(100 * one.gap))} percentage points {direction} often than predicted"
    if key == "u_cwe":
        return f"{_event(key, one)} predicted at {where} comes true {difference}"
    if key == "u_topk":
        return f"{_event(key, one)}, predicted at {where}, is right {difference}"
    where, size = interval(one.low, one.high), short(abs(one.gap))
    if key == LOSSES:
        higher = "higher" if one.gap > 0 else "lower"
        return (
            f"where the predicted cost is {with_zero(where)} per point, the real cost is "
            f"{with_zero(size)} {higher} on average"
        )
    use = PURPOSES.get(key, metric(key).text)
    unit = ", in your unit" if is_own(key) else ""
    return (
        f"where the utility “{one.name}” ({use}) is predicted at {where}, {direction} comes true "
        f"than predicted, by {size} on average{unit}"
    )


def _event(key: str, one: Worst) -> str:
    """What is predicted, as a part of a sentence."""
    if key == "u_topk" and one.utility == 0:
        return "the most probable class"
    if key == "u_topk":
        return f"one of the {one.utility + 1} most probable classes"
    return f"“{one.name.removeprefix('class ')}”"


def _example(key: str, one: Worst) -> str:
    """From where a user should act, and what that gains on points that did not choose it.

    A user acts where the predicted probability is at least a threshold, because acting pays only
    if it is right so often.
    """
    gain, half = one.fresh_gain or 0.0, one.fresh_half_width or 0.0
    threshold, act_from = _apart(one.threshold, one.act_from)
    event = _event(key, one)
    start = (
        "An example, for the present probabilities only: suppose acting pays only if it is right "
        f"in at least {threshold} of the cases."
    )
    worth = (
        f"Compared with acting wherever {threshold} or more is predicted, this gains "
        f"{short(100 * gain)} ± {short(100 * half)} per 100 points (unit: the difference in value "
        "between a right and a wrong act)."
    )
    if act_from is None:
        return f"{start} Then do not act on {event} at all, whatever is predicted. {worth}"
    is_late = one.act_from is not None and one.act_from <= one.threshold
    when = (
        f"already where at least {act_from} is" if is_late else f"only where {act_from} or more is"
    )
    return f"{start} Then act on {event} {when} predicted. {worth}"


def _apart(threshold: float, act_from: float | None) -> tuple[str, str | None]:
    """The threshold and the advice, with so many decimals that both predictions differ.

    The second one is not rounded to a whole number either: .9975 must not read as 1.00. It is None
    where it is better never to act.
    """
    if act_from is None or not math.isfinite(act_from):
        return f"{100 * threshold:.0f} %", None
    gaps = abs(act_from - threshold), abs(act_from - round(act_from))
    gap = min(filter(None, gaps), default=1.0)
    digits = 2 if gap >= 0.02 else 1 - math.floor(math.log10(gap))
    ends = [f"{100 * value:.{digits - 2}f} %" for value in (threshold, act_from)]
    return ends[0], ends[1]
