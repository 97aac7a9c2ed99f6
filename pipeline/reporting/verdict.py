"""The verdict on one benchmark: what to take and why, the grid of signs, and what is not known.

Which methods are named is decided in pipeline/scoring/choice.py; here it is said. The answer on the
present forecast is in answer.py, what the sample cannot show in limits.py, the signs in signs.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from utility_calibration.metrics.registry import metric

from ..scoring import choice as chosen
from ..scoring.choice import BEYOND, COST, WORSE, Choice, Pick, Use
from ..scoring.decisions import INFINITE, Decisions
from ..scoring.inference import FEWEST_SPLITS
from .answer import YES, Answer, answer_of
from .cost_words import cost_sentences
from .limits import cautions_of, limits_of
from .names import MARK, PRESENT, method_name
from .signs import MARKED, SIGNS, legend_of
from .tables import Column
from .wording import MOST_NAMED, counted, listed, names
from .worst import Worst

NOT_COMPARED = (
    "No method is recommended, because no test compares the methods: there are fewer than "
    f"{FEWEST_SPLITS} splits and no resampled points."
)
STILL_ERR = "more than chance explains"
DEFAULT_REASON = "this program prefers it where no test tells methods apart"
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
    choice = chosen.choice_of(decisions, costs and costs["methods"])
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
        by_use="" if costs is not None else _by_use(choice),
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
    if choice.unranked == chosen.EQUAL:
        return _of_a_tie(decisions, pick)
    if choice.unranked == chosen.ALONE:
        return f"Only {method_name(decisions.methods[0])} was scored: there is nothing to choose."
    if choice.unranked == chosen.UNTESTED:
        return NOT_COMPARED
    if choice.unranked or not choice.uses:
        return choice.unranked
    if pick is None:
        is_named = any(use.named for use in choice.uses)
        return "No method is among the best for all of these uses: choose for yours." * is_named
    if pick.score == COST:
        return ""
    return _of_all_uses(decisions, choice.uses, pick)


def _of_a_tie(decisions: Decisions, pick: Pick | None) -> str:
    count = counted(len(decisions.methods))
    text = f"No test finds a difference between the {count} methods on these points."
    if pick is None:
        return text
    if pick.why == chosen.UNTOUCHED:
        return f"{text} So leave the probabilities as they are (Uncalibrated)."
    if PRESENT in decisions.methods:
        text += " So nothing shows that a change of the present probabilities helps."
    reason = _reason(decisions, pick)
    return f"{text} If you must choose, take {method_name(pick.method)}: {reason}."


def _of_all_uses(decisions: Decisions, uses: Sequence[Use], pick: Pick) -> str:
    """The sentence on a method that tests support."""
    method, name = pick.method, method_name(pick.method)
    labels = listed([use.label for use in uses])
    errs = _errs(uses, method)
    is_alone = all(list(use.signs.values()).count(WORSE) == len(use.signs) - 1 for use in uses)
    if is_alone:
        sure = "this is clearly the best"
    elif method == PRESENT:
        sure = "no test finds anything better"
    else:
        sure = "; ".join(filter(None, ["no test finds a better one", _reason(decisions, pick)]))
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


def _errs(uses: Sequence[Use], method: str) -> list[str]:
    """The uses for which a method errs beyond chance, though no test finds a better one."""
    return [use.label for use in uses if use.signs[method] == BEYOND]


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


def _reason(decisions: Decisions, pick: Pick) -> str:
    """Why a method was taken of those that no test finds worse."""
    unmarked = f"without {SIGNS[WORSE]} and {INFINITE}"
    those = "named below" if pick.are_named else unmarked
    if pick.why == chosen.DEFAULTED:
        return f"{DEFAULT_REASON}, and in the grid no method {unmarked} has a better sign"
    if pick.why == chosen.ONLY or len(pick.values) == 1:
        return "" if pick.are_named else f"it is the only method {unmarked}"
    best, following = [*pick.values][:2]
    column = Column.of(decisions.column(pick.score), "default", best)
    lowest, after = (column.text(pick.values[method]) for method in (best, following))
    score = SCORES.get(pick.score, metric(pick.score).text)
    text = f"its {score} of {lowest} is the lowest of the methods {those}"
    if lowest == after:
        return f"{text}, by less than the last digit"
    return f"{text} ({method_name(following)}: {after})"


def _by_use(choice: Choice) -> str:
    """What to take for which use, alike uses together; "" where the headline says all of it."""
    if choice.unranked or not choice.uses:
        return ""
    overall = (choice.overall,)
    if all(use.named == overall for use in choice.uses):
        return ""
    if choice.overall == PRESENT and not _errs(choice.uses, PRESENT):
        return ""  # to leave the probabilities as they are is advice for every use
    alike: dict[tuple[Any, ...], list[Use]] = {}
    for use in choice.uses:
        left = sum(sign != WORSE for sign in use.signs.values())
        # A clause names the signs of its methods, which must be those of each of its columns.
        signs = frozenset(use.signs[method] for method in use.named)
        key = use.named, use.differs, use.has_power, signs, None if use.named else left
        alike.setdefault(key, []).append(use)
    clauses = [_clause(uses) for uses in alike.values()]
    if choice.overall and len(clauses) > 1:
        return f"If only one use matters to you: {'; '.join(clauses)}."
    return " ".join(f"{clause[0].upper()}{clause[1:]}." for clause in clauses)


def _clause(uses: Sequence[Use]) -> str:
    """What to take for uses for which the same methods are named."""
    first, labels = uses[0], listed([use.label for use in uses])
    methods = first.named
    if not first.differs:
        return f"for {labels} no test finds a difference between the methods"
    if not first.has_power:
        left = sum(sign != WORSE for sign in first.signs.values())
        if left == 1:
            only = f"the only method without {SIGNS[WORSE]}"
            return f"for {labels} there are too few points to rule out a large error of {only}"
        among = f"the {counted(left)} methods without {SIGNS[WORSE]}"
        return f"for {labels} there are too few points to tell good from bad among {among}"
    if not methods:
        return (
            f"for {labels} no method is recommended, because the best ones gave probability 0 to "
            f"classes that occurred ({INFINITE})"
        )
    signs = {use.signs[method] for use in uses for method in methods}
    is_beyond = signs == {BEYOND}
    if len(methods) == 1:
        text = f"for {labels} take {method_name(methods[0])}"
        return f"{text}, which is the best here but errs by {STILL_ERR}" if is_beyond else text
    if len(methods) <= MOST_NAMED:
        which = names(methods, "or")
    else:
        shown = listed([sign for name, sign in SIGNS.items() if name in signs], "or")
        finite = f" and without {INFINITE}" if any(use.left_out for use in uses) else ""
        which = f"any of the {counted(len(methods))} methods with {shown}{finite}"
    if is_beyond:
        return (
            f"for {labels} no method is clearly better than {which}, but each of these errs by "
            f"{STILL_ERR}"
        )
    return f"{which} will do for {labels}"
