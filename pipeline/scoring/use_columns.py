"""One use as the tests see it: the sign and the error of each method, or the cost of decisions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .cost_gaps import cheapest, surely_dearer
from .decisions import Decision, Decisions
from .uses import COST

WITHIN, BEYOND, WORSE = "within noise", "beyond noise", "worse than the best"
UNSEEN, UNKNOWN, CHEAP = "too few points of a class", "no floor", "as cheap as the cheapest"
RANKS = {WITHIN: 0, CHEAP: 0, UNSEEN: 1, BEYOND: 2, UNKNOWN: 2, WORSE: 3}
"""The signs of a method from the best to the worst."""


@dataclass(frozen=True)
class UseColumn:
    """One use with what is known of each method."""

    metric: str
    """The metric that measures the use, or COST."""
    signs: Mapping[str, str]
    """By method one of RANKS."""
    errors: Mapping[str, float]
    """By method the mean error, or the mean cost of decisions."""
    rows: Mapping[str, Decision] = field(default_factory=dict)
    """By method the decision on its error; none of costs."""

    @property
    def differs(self) -> bool:
        """Whether some test finds a difference; the cheapest method is known in any case."""
        return self.metric == COST or WORSE in self.signs.values()


def column_of(decisions: Decisions, key: str) -> UseColumn:
    """The column of a metric."""
    rows = decisions.column(key)
    signs = {method: _sign(row) for method, row in rows.items()}
    errors = {method: row.mean for method, row in rows.items()}
    return UseColumn(key, signs, errors, rows)


def column_of_costs(costs: Mapping[str, Any]) -> UseColumn:
    """The column of the costs of decisions (`costs` as in cost_gaps.py)."""
    dearer = surely_dearer(costs, cheapest(costs))
    signs = {method: WORSE if method in dearer else CHEAP for method in costs}
    means = {method: record["cost"] for method, record in costs.items()}
    return UseColumn(COST, signs, means)


def _sign(row: Decision) -> str:
    if row.not_worse is False:
        return WORSE
    if row.beyond_floor is None:
        return UNKNOWN
    return {True: WITHIN, False: BEYOND, None: UNSEEN}[row.within_noise]
