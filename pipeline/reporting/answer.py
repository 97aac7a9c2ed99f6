"""The first thing a reader sees: can the present probabilities be trusted, and where not.

The answer is yes, no or cannot tell. It follows from the tests of the present forecast alone; which
method improves it is another question (verdict.py).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from utility_calibration.metrics.registry import PURPOSES, metric

from ..scoring.choice import PRESENT
from ..scoring.decisions import FEWEST_POINTS, INFINITE, Decision, Decisions
from ..scoring.uses import is_own, is_use, label_of
from .limits import needed_words, rarest_name
from .wording import interval, listed, percents, short, with_zero
from .worst import LOSSES, PLAIN, Worst

YES, NO, UNSURE = "yes", "no", "cannot tell"
TRUST = "Yes, you can trust the model's probabilities as they are."
DISTRUST = "No, do not trust the model's probabilities as they are."
DOUBT = "Cannot tell whether you can trust the model's probabilities as they are."
UNSCORED = "The method uncalibrated was not scored."
ZEROS = "Some classes that occurred had a predicted probability of 0."
AS_GOOD_AS_ALL = 0.995  # which is printed as 100 %
NEARLY_ALL = 0.9  # a range with this share of the points is no single place


@dataclass(frozen=True)
class Answer:
    """The answer in one sentence, why, and the worst place of the present forecast.

    Attributes:
        word: YES, NO or UNSURE.
        sentence: the answer in words.
        reason: what it rests on.
        metric: of the worst place, "" if none is known.
        place: the worst place in words, "" if none is known.
        example: what a better threshold gains there, "" where no test finds a gain.
    """

    word: str
    sentence: str
    reason: str
    metric: str = ""
    place: str = ""
    example: str = ""


def answer_of(decisions: Decisions, worst: Mapping[str, Mapping[str, Worst]]) -> Answer:
    """The answer for the forecast as it is.

    Args:
        worst: the worst utilities by metric and method.
    """
    if PRESENT not in decisions.methods:
        return Answer(UNSURE, DOUBT, UNSCORED)
    rows = {key: decisions.rows[PRESENT, key] for key in decisions.shown if is_use(key)}
    word, reason = _answer(decisions, rows)
    sentence = {YES: TRUST, NO: DISTRUST, UNSURE: DOUBT}[word]
    key = _worst_metric(rows, worst)
    if not key:
        return Answer(word, sentence, reason)
    one = worst[key][PRESENT]
    is_error = rows[key].beyond_floor
    # Nobody acts on a utility that is no probability from a threshold on.
    is_example = is_error and one.surely_gains and key in PLAIN
    example = _example(key, one) if is_example else ""
    return Answer(word, sentence, reason, key, _place(key, one, is_error), example)


def _answer(decisions: Decisions, rows: Mapping[str, Decision]) -> tuple[str, str]:
    """Yes, no or cannot tell, and the sentences that say why."""
    beyond = [label_of(key) for key, row in rows.items() if row.beyond_floor]
    within = [label_of(key) for key, row in rows.items() if row.within_noise]
    unseen = [label_of(key) for key, row in rows.items() if row.within_noise is None]
    is_infinite = PRESENT in decisions.marked(INFINITE)
    fine = f"For {listed(within)} chance alone can explain all errors." if within else ""
    if beyond:
        errs = f"For {listed(beyond)} their errors are larger than chance alone explains."
        return NO, " ".join(filter(None, [errs, fine, ZEROS if is_infinite else ""]))
    if is_infinite:
        return NO, ZEROS
    if not rows or all(row.beyond_floor is None for row in rows.values()):
        return UNSURE, "How large errors are by chance alone is not known here."
    if decisions.refused:
        is_small = decisions.test_points < FEWEST_POINTS
        why = "but the file is too small to show much" if is_small else "but see below"
        return UNSURE, f"Chance alone can explain all errors, {why}."
    if unseen:
        text = f"For {listed(unseen)} some class has too few cases."
        if decisions.rarest is not None:
            name, needed = rarest_name(decisions.rarest), needed_words(decisions.rarest)
            text = f"For {listed(unseen)} {name} has too few cases: {needed}."
        return UNSURE, f"{text} {fine}".strip()
    return YES, fine


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
    predicted = "predicted costs" if key == LOSSES else "predictions"
    conclusions = {
        True: f"So these {predicted} are too {'low' if one.gap > 0 else 'high'}.",
        False: "Chance alone can explain this.",
        None: "Whether chance alone explains this is not known.",
    }
    share = f"({100 * one.share:.0f} % of the cases)"
    where, subject, it, difference = _difference(key, one)
    if is_error and one.share >= NEARLY_ALL:
        start = "Everywhere" if one.share >= AS_GOOD_AS_ALL else f"Nearly everywhere {share}"
        return f"{start} {subject} {difference}. {conclusions[is_error]}"
    return f"The largest error is {where} {share}: there {it} {difference}. {conclusions[is_error]}"


class _Difference(NamedTuple):
    """Parts of a sentence on how far what came true is from what was predicted."""

    where: str
    subject: str
    it: str
    """The subject where it was named just before."""
    differs: str


def _difference(key: str, one: Worst) -> _Difference:
    """Where a forecast errs, and how."""
    direction, higher = ("more", "higher") if one.gap > 0 else ("less", "lower")
    if key in PLAIN:
        event, where = _event(key, one), percents(one.low, one.high)
        points = short(abs(100 * one.gap))
        often = f"{points} percentage points {direction} often than predicted"
        if key == "u_topk" and one.utility:
            among = f"one of the {one.utility + 1} most probable classes"
            where = f"where {event} have together a probability of {where}"
            return _Difference(where, among, "one of them", f"is right {often}")
        verb = "is right" if key == "u_topk" else "comes true"
        where = f"where {event} has a probability of {where}"
        return _Difference(where, event, "it", f"{verb} {often}")
    where, size = interval(one.low, one.high), short(abs(one.gap))
    if key == LOSSES:
        where = f"where the cheapest action is predicted to cost {with_zero(where)} per case"
        differs = f"costs {with_zero(size)} {direction} than predicted, on average"
        return _Difference(where, "the cheapest action", "it", differs)
    utility = f"the utility “{one.name}” ({PURPOSES.get(key, metric(key).text)})"
    unit = ", in your unit" if is_own(key) else ""
    differs = f"is {size} {higher} than predicted, on average{unit}"
    return _Difference(f"where {utility} is predicted at {where}", utility, "it", differs)


def _event(key: str, one: Worst) -> str:
    """What is predicted, as a part of a sentence."""
    if key == "u_topk" and one.utility == 0:
        return "the most probable class"
    if key == "u_topk":
        return f"the {one.utility + 1} most probable classes"
    return f"the class “{one.name.removeprefix('class ')}”"


def _example(key: str, one: Worst) -> str:
    """From where a user should act, and what that gains on points that did not choose it.

    A user acts where the predicted probability is at least a threshold, because acting pays only
    if it is right so often.
    """
    gain, half = one.fresh_gain or 0.0, one.fresh_half_width or 0.0
    threshold, act_from = _apart(one.threshold, one.act_from)
    event = _event(key, one)
    start = (
        f"Suppose that acting pays only if it is right in at least {threshold} of the cases. With "
        "this number most is to be gained."
    )
    worth = (
        f"Compared with acting from {threshold} on, this is worth as much as turning "
        f"{short(100 * gain)} ± {short(100 * half)} wrong acts into right ones, per 100 cases of "
        "the file."
    )
    those = "This holds for the model's probabilities as they are, not after a repair."
    if act_from is None:
        what = f"Then do not act on {event} at all, whatever is predicted."
    else:
        is_late = one.act_from is not None and one.act_from <= one.threshold
        from_when = "already where" if is_late else "only where"
        what = f"Then act on {event} {from_when} at least {act_from} is predicted."
    return f"{start} {what} {worth} {those}"


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
