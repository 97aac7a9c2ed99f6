"""The verdict on one benchmark: what to take and why, the grid of signs, and what is not known.

pipeline/scoring/choice.py and recommended.py decide which methods are named; here it is said.
The answer on the present forecast is in answer.py, what the sample cannot show in limits.py, the
signs in signs.py.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from utility_calibration.metrics.registry import metric

from ..scoring.choice import PRESENT, Choice, Unranked, choice_of
from ..scoring.decisions import INFINITE, Decisions
from ..scoring.inference import FEWEST_SPLITS
from ..scoring.recommended import DEFAULTED, ONLY, UNTOUCHED, Pick, Use
from ..scoring.use_columns import BEYOND, RANKS, WORSE
from ..scoring.uses import COST
from .answer import YES, Answer, answer_of
from .by_use import STILL_ERR, by_use, errs_for
from .cost_words import cost_sentences, more_on_costs
from .limits import accuracy_of, bounds_of, cautions_of, limits_of
from .names import MARK, method_name
from .signs import SIGNS, errors_of, legend_of, methods_of
from .tables import Column
from .wording import counted, listed
from .worst import Worst

NOT_COMPARED = (
    "No method is recommended, because no test compares the methods: there are fewer than "
    f"{FEWEST_SPLITS} splits and no resampled cases."
)
NONE_FOR_ALL = "No method is among the best for all of these uses."
LEAVE = "Leave the probabilities as they are."
NOTHING_HELPS = "None of these methods is shown to repair the probabilities."
EQUAL = "{} methods are equally good, as far as tests can tell."
EQUAL_APART = (
    f"Not counting those with {INFINITE}, {{}} methods are equally good, as far as tests can tell."
)
SCORES = {"nll": "log loss (NLL)", "brier": "Brier score (squared error)"}
"""The scores that decide between methods, with what they measure."""
EXAMPLE = "From which probability on should you act? An example"
COSTS = "What do decisions cost with other methods?"
CHANGES = "What else does the repair change?"
SIZES = "How large can the errors be?"
LIMITS = "What can this file not show?"
LEFT = "Could another repair gain more?"
MEANING = "What is an error of .05?"
METHODS = "What does each method do?"
HEADINGS = (EXAMPLE, COSTS, CHANGES, SIZES, LIMITS, LEFT, MEANING, METHODS)
"""Of the details below the first screen, in their order."""


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
        legend: a line for each sign, mark and use in the grid.
        details: what is not on the first screen: sentences by one of HEADINGS.
        overall: the method for all uses that tests support, or None.
        marks: by method the marks beside its name.
    """

    answer: Answer
    headline: str
    by_use: str
    legend: Sequence[str]
    uses: Sequence[Use]
    overall: str | None
    marks: Mapping[str, Sequence[str]]
    commands: Sequence[str] = ()
    cautions: Sequence[str] = ()
    details: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def with_detail(self, heading: str, lines: Iterable[str]) -> Self:
        """The same with these sentences under one of HEADINGS; unchanged without any."""
        sentences = [line for line in lines if line]
        if not sentences:
            return self
        details = {**self.details, heading: sentences}
        return replace(self, details={key: details[key] for key in HEADINGS if key in details})

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
        headline = f"{headline} {cost_sentences(choice, costs)}".strip()
    answer = answer_of(decisions, worst or {})
    infinite = decisions.marked(INFINITE)
    verdict = Verdict(
        answer=answer,
        headline=headline,
        by_use="" if costs is not None else by_use(choice, bool(infinite)),
        legend=legend_of(choice.uses, bool(infinite), decisions.rarest),
        cautions=cautions_of(decisions, choice),
        uses=choice.uses,
        overall=choice.overall,
        marks=dict.fromkeys(infinite, (INFINITE,)),
    )
    details = {
        EXAMPLE: [answer.example],
        COSTS: [] if costs is None else more_on_costs(choice, costs),
        CHANGES: accuracy_of(decisions, choice.overall),
        SIZES: bounds_of(decisions, choice),
        LIMITS: [*limits_of(decisions, choice), *marks_elsewhere(decisions, answer)],
        MEANING: errors_of(choice.uses, decisions.splits) if choice.uses else [],
        METHODS: methods_of(decisions.methods),
    }
    for heading, lines in details.items():
        verdict = verdict.with_detail(heading, lines)
    return verdict


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
        f"above. Also, chance alone makes a {MARK} in 5 % of such columns."
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
            return f"Only the method {only} was scored, so there is nothing to choose."
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
    """The sentences where no test finds a difference between the methods."""
    is_present_scored = PRESENT in decisions.methods
    if pick is not None and pick.method == PRESENT:
        if pick.why != UNTOUCHED:
            return f"{NOTHING_HELPS} No test finds a better one."
        text = f"{LEAVE} No test finds a better method."
        if any(errs_for(uses, method) for method in decisions.methods):
            text += f" The methods with {SIGNS[BEYOND]} seem to add errors."
        return text
    text = f"No test finds a difference between the {counted(len(decisions.methods))} methods."
    must = "choose a method"
    if is_present_scored:
        text = "Nothing shows that a repair helps: no test finds a better method."
        must = "repair the probabilities"
    if pick is None:
        return text
    name = method_name(pick.method)
    if pick.why == DEFAULTED:
        return f"{text} If you must {must}, take {name}, this program's default."
    return f"{text} If you must {must}, take {name}. {_lowest_of_all(decisions, pick)}".strip()


def _of_all_uses(decisions: Decisions, uses: Sequence[Use], pick: Pick) -> str:
    """The sentences on a method that tests support."""
    method, name = pick.method, method_name(pick.method)
    is_alone = all(list(use.signs.values()).count(WORSE) == len(use.signs) - 1 for use in uses)
    if method == PRESENT:
        if errs_for(uses, method):
            return f"{NOTHING_HELPS} No test finds a better one."
        reason = "No test finds a better method."
        if is_alone:
            reason = "Tests show that every other method is worse."
        return f"{LEAVE} {reason}"
    reason = "Tests show that it is better than every other method."
    if not is_alone:
        reason = _reason(decisions, uses, pick)
    errs = errs_for(uses, method)
    still = f"For {listed(errs)} it still has {STILL_ERR}." if errs else ""
    parts = [
        f"Repair the probabilities with the method {name}.",
        reason,
        still,
        _although_present_is_fine(decisions, uses, name),
    ]
    return " ".join(filter(None, parts))


def _although_present_is_fine(decisions: Decisions, uses: Sequence[Use], name: str) -> str:
    """Why a method is taken although the answer on the present forecast is yes; else ""."""
    rows = [decisions.rows.get((PRESENT, use.metric)) for use in uses if use.metric != COST]
    is_fine = all(row is not None and row.within_noise for row in rows)
    is_worse = any(use.signs.get(PRESENT) == WORSE for use in uses)
    if not is_fine or not is_worse:
        return ""
    return f"The model's probabilities are fine, too, but a test finds {name} better."


def _count_equals(decisions: Decisions, uses: Sequence[Use], method: str) -> int:
    """How many methods have a finite NLL and no worse sign than this one for any use."""
    infinite = decisions.marked(INFINITE)
    count = 0
    for other in decisions.methods:
        is_worse = any(RANKS[use.signs[other]] > RANKS[use.signs[method]] for use in uses)
        count += other not in infinite and not is_worse
    return count


def _reason(decisions: Decisions, uses: Sequence[Use], pick: Pick) -> str:
    """Why a method was taken of those that no test finds worse."""
    if pick.why == DEFAULTED:
        count = _count_equals(decisions, uses, pick.method)
        if count > 1:
            return f"{_equal(decisions, count)} Among equals this program takes its default."
    if pick.why == DEFAULTED or (pick.are_named and len(pick.values) < 2):
        return "No test finds a better one."
    if pick.why == ONLY or len(pick.values) == 1:
        bad = [SIGNS[WORSE]] if any(WORSE in use.signs.values() for use in uses) else []
        bad += [INFINITE] if decisions.marked(INFINITE) else []
        return f"Every other method has {listed(bad, 'or')} in the table below."
    return f"{_equal(decisions, len(pick.values))} {_lowest_of_all(decisions, pick)}"


def _equal(decisions: Decisions, count: int) -> str:
    """How many methods tests cannot tell apart."""
    if decisions.marked(INFINITE):
        return EQUAL_APART.format(counted(count))
    return EQUAL.format(counted(count).capitalize())


def _lowest_of_all(decisions: Decisions, pick: Pick) -> str:
    """Which number decided, beside that of the next method; "" where none did."""
    if len(pick.values) < 2:
        return ""
    best, following = [*pick.values][:2]
    column = Column.of(decisions.column(pick.score), "default")
    lowest, after = (column.text(pick.values[method]) for method in (best, following))
    score = SCORES.get(pick.score, f"error ({metric(pick.score).text})")
    next_one = f"{method_name(following)}: {after}"
    if lowest == after:
        next_one = f"{method_name(following)}: more by less than the last digit"
    return f"Of these it has the lowest {score}: {lowest} ({next_one})."
