"""What a report may recommend on one benchmark: methods for each use, and one for all uses.

Here it is decided whether anything may be recommended at all. recommended.py decides which methods,
from the signs in use_columns.py.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from .cost_gaps import are_tested
from .decisions import INFINITE, Decisions
from .recommended import UNTOUCHED, Pick, Use, pick_for_all, use_of
from .use_columns import CHEAP, WITHIN, WORSE, UseColumn, column_of, column_of_costs
from .uses import is_use

PRESENT = "uncalibrated"  # the method that leaves a forecast as it is


class Unranked(Enum):
    """Why no method is named for any use."""

    REFUSED = "too few points, or a classifier that is worse than guessing"
    NO_USE = "no metric of a use"
    ONE_METHOD = "one method"
    UNTESTED = "no test"
    NO_DIFFERENCE = "no difference"


class Choice(NamedTuple):
    """The uses of one benchmark, and the method to take for all of them."""

    uses: Sequence[Use]
    pick: Pick | None = None
    """The method to take for all uses. No test supports it where `why_unranked` is NO_DIFFERENCE.
    None for any other reason in `why_unranked`, and where no method remains."""
    why_unranked: Unranked | None = None
    """None where tests rank the methods."""
    refused: str = ""
    """A sentence; empty unless `why_unranked` is REFUSED."""

    @property
    def overall(self) -> str | None:
        """The method to take for all uses that tests support; None where there is none."""
        return None if self.why_unranked or self.pick is None else self.pick.method


def choice_of(decisions: Decisions, costs: Mapping[str, Any] | None = None) -> Choice:
    """Decide which methods are named for which use, and which one is to be taken for all.

    Args:
        costs: by method what decisions cost with it (the `methods` of pipeline/scoring/costs.py).
    """
    columns = [column_of(decisions, key) for key in decisions.shown if is_use(key)]
    cost_column = None
    if costs and are_tested(costs):
        cost_column = column_of_costs(costs)
        columns.append(cost_column)
    why = _why_unranked(decisions, columns)
    uses = [use_of(decisions, column, is_ranked=why is None) for column in columns]
    pick = None
    if why == Unranked.NO_DIFFERENCE and _is_fine_as_it_is(decisions, uses):
        pick = Pick(PRESENT, UNTOUCHED)
    elif why in (None, Unranked.NO_DIFFERENCE):
        pick = pick_for_all(decisions, uses, cost_column)
    return Choice(uses, pick, why, decisions.refused)


def _why_unranked(decisions: Decisions, columns: Sequence[UseColumn]) -> Unranked | None:
    """Why no method is named for any use; None where the tests rank them."""
    if decisions.refused:
        return Unranked.REFUSED
    if not columns:
        return Unranked.NO_USE
    if len(decisions.methods) == 1:
        return Unranked.ONE_METHOD
    if not decisions.test:
        return Unranked.UNTESTED
    is_ranked = any(WORSE in column.signs.values() for column in columns)
    return None if is_ranked else Unranked.NO_DIFFERENCE


def _is_fine_as_it_is(decisions: Decisions, uses: Sequence[Use]) -> bool:
    """Whether the present forecast has no error beyond chance for any use, and a finite NLL."""
    if PRESENT not in decisions.methods or PRESENT in decisions.marked(INFINITE):
        return False
    return all(use.signs[PRESENT] in (WITHIN, CHEAP) for use in uses)
