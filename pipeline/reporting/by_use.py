"""What to take for each use, where the headline of a verdict does not say all of it."""

from collections.abc import Sequence
from typing import NamedTuple

from ..scoring.choice import PRESENT, Choice
from ..scoring.decisions import INFINITE
from ..scoring.recommended import Use
from ..scoring.use_columns import BEYOND, WITHIN, WORSE
from .names import method_name
from .signs import SIGNS
from .wording import MOST_NAMED, counted, listed, names

STILL_ERR = "more than chance explains"
IN_COLUMNS = {1: "in this column", 2: "in both of these columns"}


def by_use(choice: Choice, has_infinite: bool) -> str:
    """What to take for which use, alike uses together; "" where the headline says all of it.

    Args:
        has_infinite: whether the NLL of some method is infinite. Such a method is never named.
    """
    if choice.why_unranked is not None:
        return ""
    overall = (choice.overall,)
    if all(use.named == overall for use in choice.uses):
        return ""
    if choice.overall == PRESENT and not errs_for(choice.uses, PRESENT):
        return ""  # to leave the probabilities as they are is advice for every use
    alike: dict[_Advice, list[Use]] = {}
    for use in choice.uses:
        alike.setdefault(_Advice.of(use), []).append(use)
    clauses = [_clause(uses, choice.overall, has_infinite) for uses in alike.values()]
    if choice.overall and len(clauses) > 1 and all(use.has_power for use in choice.uses):
        return f"If only one use matters to you: {'; '.join(clauses)}."
    return " ".join(f"{clause[0].upper()}{clause[1:]}." for clause in clauses)


def errs_for(uses: Sequence[Use], method: str) -> list[str]:
    """The uses for which a method errs beyond chance, though no test finds a better one."""
    return [use.label for use in uses if use.signs[method] == BEYOND]


class _Advice(NamedTuple):
    """What a clause says of a use. Uses for which it is equal share one clause."""

    named: tuple[str, ...]
    signs_of_named: frozenset[str]
    """A clause names these signs, so they must be those of each of its uses."""
    differs: bool
    has_power: bool
    n_not_worse: int | None
    """How many methods no test finds worse; None where some are named."""

    @classmethod
    def of(cls, use: Use) -> "_Advice":
        """The advice for a use."""
        signs = frozenset(use.signs[method] for method in use.named)
        n_not_worse = None if use.named else _count_not_worse(use)
        return cls(use.named, signs, use.differs, use.has_power, n_not_worse)


def _count_not_worse(use: Use) -> int:
    """How many methods no test finds worse than the best one for a use."""
    return sum(sign != WORSE for sign in use.signs.values())


def _clause(uses: Sequence[Use], overall: str | None, has_infinite: bool) -> str:
    """What to take for uses for which the same methods are named; `overall`: for all uses."""
    first, labels = uses[0], listed([use.label for use in uses])
    methods = first.named
    if not first.differs:
        return f"for {labels} no test finds a difference between the methods"
    if not first.has_power:
        left = _count_not_worse(first)
        if left == 1:
            only = f"the only method without {SIGNS[WORSE]}"
            return f"for {labels} there are too few points to rule out a large error of {only}"
        text = (
            f"for {labels} the file is too small: {SIGNS[WITHIN]} means only that nothing was seen"
        )
        return f"{text}; no test finds {method_name(overall)} worse" if overall else text
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
        finite = f" and without {INFINITE}" if has_infinite else ""
        where = IN_COLUMNS.get(len(uses), "in all of these columns")
        which = f"any of the {counted(len(methods))} methods with {shown} {where}{finite}"
        if not is_beyond:
            return f"for {labels} {which} will do"
    if is_beyond:
        return (
            f"for {labels} no method is clearly better than {which}, but each of these errs by "
            f"{STILL_ERR}"
        )
    return f"{which} will do for {labels}"
