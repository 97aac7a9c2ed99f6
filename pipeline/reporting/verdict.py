"""The verdict on one benchmark: what to take and why, the grid of signs, and what is not known.

pipeline/scoring/choice.py and recommended.py decide which methods are named; here it is said.
The answer on the present forecast is in answer.py, what the sample cannot show in limits.py, the
signs in signs.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from utility_calibration.metrics.registry import metric

from ..scoring.choice import PRESENT, Choice, Unranked, choice_of
from ..scoring.decisions import INFINITE, Decisions
from ..scoring.inference import FEWEST_SPLITS
from ..scoring.recommended import DEFAULTED, ONLY, UNTOUCHED, Pick, Use
from ..scoring.use_columns import BEYOND, WORSE
from ..scoring.uses import COST
from .answer import YES, Answer, answer_of
from .by_use import STILL_ERR, by_use, errs_for
from .cost_words import cost_sentences
from .limits import cautions_of, limits_of
from .names import MARK, method_name
from .signs import MARKED, SIGNS, legend_of
from .tables import Column
from .wording import counted, listed
from .worst import Worst

NOT_COMPARED = (
    "No method is recommended, because no test compares the methods: there are fewer than "
    f"{FEWEST_SPLITS} splits and no resampled points."
)
NONE_FOR_ALL = "No method is among the best for all of these uses: choose for yours."
SCORES = {"nll": "NLL (log loss)", "brier": "Brier score (squared error)"}
"""The scores that decide between methods, with what they measure."""


@dataclass(frozen=True)
class Verdict:
    """What a report says of one benchmark, in the order in which a reader sees it.

    Attributes:
        answer: whether the present probabilities can be taken at face value.
        cautions: what a reader must know before the advice: a class that is too rare.
        headline: what to take for all uses, and why.
        by_use: what to take for which use; "" where the headline says all of it.
        commands: what to type to save and apply the method taken, if a file was scored.
        uses: the columns of the grid.
        legend: a line for each sign, mark, use and short name in the grid.
        summary: what the sample cannot exclude or show.
        overall: the method for all uses that tests support, or None.
        marks: by method the marks beside its name.
    """

    answer: Answer
    headline: str
    by_use: str
    legend: Sequence[str]
    summary: Sequence[str]
    uses: Sequence[Use]
    overall: str | None
    marks: Mapping[str, Sequence[str]]
    commands: Sequence[str] = ()
    cautions: Sequence[str] = ()

    @property
    def grid(self) -> list[list[str]]:
        """Per method its name with its marks, and a sign for each of the uses."""
        rows: dict[str, list[str]] = {}
        for use in self.uses:
            for method, sign in use.signs.items():
                name = " ".join([method_name(method), *self.marks.get(method, ())])
                rows.setdefault(method, [name]).append(SIGNS[sign])
        return list(rows.values())


def verdict_of(
    decisions: Decisions,
    costs: Mapping[str, Any] | None = None,
    worst: Mapping[str, Mapping[str, Worst]] | None = None,
) -> Verdict:
    """The verdict on one benchmark.

    Args:
        costs: what decisions by the user's losses cost (scoring/costs.py).
        worst: the worst utilities by metric and method.
    """
    choice = choice_of(decisions, costs and costs["methods"])
    headline = _headline(decisions, choice)
    if costs is not None:
        cost = cost_sentences(decisions, choice, costs)
        headline = f"{headline} {cost}".strip()
    answer = answer_of(decisions, worst or {})
    is_present_taken = choice.pick is not None and choice.pick.method == PRESENT
    is_bound_said = answer.word == YES and is_present_taken
    return Verdict(
        answer=answer,
        headline=headline,
        by_use="" if costs is not None else by_use(choice, bool(decisions.marked(INFINITE))),
        legend=legend_of(choice.uses, [mark for mark in MARKED if decisions.marked(mark)]),
        summary=[*limits_of(decisions, choice, is_bound_said), *marks_elsewhere(decisions, answer)],
        cautions=cautions_of(decisions, choice),
        uses=choice.uses,
        overall=choice.overall,
        marks={method: marks for method, marks in decisions.marks.items() if marks},
    )


def marks_elsewhere(decisions: Decisions, answer: Answer) -> list[str]:
    """Why the table marks the present forecast where the answer is yes; nothing if it does not."""
    if answer.word != YES:
        return []
    rows = [decisions.rows[PRESENT, key] for key in decisions.shown]
    marked = [metric(row.metric).text for row in rows if row.beyond_floor]
    if not marked:
        return []
    is_one = len(marked) == 1
    columns = f"column {marked[0]}" if is_one else f"columns {listed(marked)}"
    return [
        f"In the table of numbers Uncalibrated has a {MARK} in the {columns}, although the answer "
        f"is yes. {'This column measures' if is_one else 'These columns measure'} none of the uses "
        f"above, and chance alone gives a {MARK} in 5 % of cases."
    ]


def _headline(decisions: Decisions, choice: Choice) -> str:
    """What to take for all uses, how sure that is, and which numbers decided."""
    pick = choice.pick
    match choice.why_unranked:
        case Unranked.REFUSED:
            return choice.refused
        case Unranked.NO_USE:
            return ""
        case Unranked.ONE_METHOD:
            only = method_name(decisions.methods[0])
            return f"Only {only} was scored: there is nothing to choose."
        case Unranked.UNTESTED:
            return NOT_COMPARED
        case Unranked.NO_DIFFERENCE:
            return _of_a_tie(decisions, choice.uses, pick)
    if pick is None:
        return NONE_FOR_ALL if any(use.named for use in choice.uses) else ""
    if pick.score == COST:
        return ""  # the sentences on costs say what to take (cost_words.py)
    return _of_all_uses(decisions, choice.uses, pick)


def _of_a_tie(decisions: Decisions, uses: Sequence[Use], pick: Pick | None) -> str:
    count = counted(len(decisions.methods))
    text = f"No test proves one of the {count} methods better than another"
    if any(BEYOND in use.signs.values() for use in uses):
        text += f", although some have an error beyond chance ({SIGNS[BEYOND]})"
    text += "."
    if pick is None:
        return text
    if pick.why == UNTOUCHED:
        return f"{text} So leave the probabilities as they are (Uncalibrated)."
    must = "choose"
    if PRESENT in decisions.methods and pick.method != PRESENT:
        text += " So nothing shows that a change of the present probabilities helps."
        must = "repair them"
    reason = "it is the program's default; the data do not prefer it"
    if pick.why != DEFAULTED:
        reason = _reason(decisions, uses, pick)
    return f"{text} If you must {must}, take {method_name(pick.method)}: {reason}."


def _of_all_uses(decisions: Decisions, uses: Sequence[Use], pick: Pick) -> str:
    """The sentence on a method that tests support."""
    method, name = pick.method, method_name(pick.method)
    # Where points are too few to compare methods, the next sentence says so.
    labels = listed([use.label for use in uses if use.has_power] or [use.label for use in uses])
    errs = errs_for(uses, method)
    is_alone = all(list(use.signs.values()).count(WORSE) == len(use.signs) - 1 for use in uses)
    if is_alone:
        sure = "this is clearly the best"
    elif method == PRESENT:
        sure = "no test finds anything better"
    else:
        reason = _reason(decisions, uses, pick)
        sure = "; ".join(filter(None, ["no test finds a better one", reason]))
    if method != PRESENT:
        text = f"Take {name} for {labels}: {sure}."
        text += f" It still errs by {STILL_ERR} for {listed(errs)}." if errs else ""
        return text + _although_present_is_fine(decisions, uses, name)
    if errs:
        return (
            f"None of these methods is clearly better than the present probabilities ({name}), "
            f"although these err by {STILL_ERR} for {listed(errs)}."
        )
    return f"Leave the probabilities as they are ({name}) for {labels}: {sure}."


def _although_present_is_fine(decisions: Decisions, uses: Sequence[Use], name: str) -> str:
    """Why a method is taken although the answer on the present forecast is yes; else ""."""
    rows = [decisions.rows.get((PRESENT, use.metric)) for use in uses if use.metric != COST]
    is_fine = all(row is not None and row.within_noise for row in rows)
    is_worse = any(use.signs.get(PRESENT) == WORSE for use in uses)
    if not is_fine or not is_worse:
        return ""
    return (
        f" The present probabilities have no error beyond chance either, but a test finds {name} "
        "better."
    )


def _count_equals(decisions: Decisions, uses: Sequence[Use]) -> int:
    """How many methods have a finite NLL and are worse than another one for no use."""
    infinite = decisions.marked(INFINITE)
    count = 0
    for method in decisions.methods:
        is_worse = any(use.signs[method] == WORSE for use in uses)
        count += method not in infinite and not is_worse
    return count


def _reason(decisions: Decisions, uses: Sequence[Use], pick: Pick) -> str:
    """Why a method was taken of those that no test finds worse."""
    bad = [SIGNS[WORSE]] if any(WORSE in use.signs.values() for use in uses) else []
    bad += [INFINITE] if decisions.marked(INFINITE) else []
    unmarked = f"without {listed(bad)}" if bad else "here"
    those = "named below" if pick.are_named else unmarked
    if pick.why == DEFAULTED:
        return (
            f"{counted(_count_equals(decisions, uses))} methods are equally good here, as far as "
            f"tests can tell. The program then takes its default, {method_name(pick.method)}; the "
            "data do not prefer it"
        )
    if pick.why == ONLY or len(pick.values) == 1:
        return "" if pick.are_named else f"it is the only method {unmarked}"
    best, following = [*pick.values][:2]
    column = Column.of(decisions.column(pick.score), "default", best)
    lowest, after = (column.text(pick.values[method]) for method in (best, following))
    score = SCORES.get(pick.score, metric(pick.score).text)
    text = f"its {score} of {lowest} is the lowest of the methods {those}"
    if lowest == after:
        return f"{text}, by less than the last digit"
    return f"{text} ({method_name(following)}: {after})"
