"""The utilities that patching calibrates to: those of `metrics`, on a forecast that moves.

A utility u(p, e_j) has the vector u⃗(p) = (u(p, e_1), …, u(p, e_C)), the predicted utility
v = <p, u⃗(p)> and the realized utility u⃗(p)[y]. U_CWE, U_topK and sampled U_lin and U_rank have
payoffs by class or by rank, the same for all points. Their v come from the ranking and the top-K
sums that the moving forecast keeps. A user's own utilities are evaluated as the metrics do it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.forecast import Outcomes
from utility_calibration.metrics.utilities.base import UtilityClass
from utility_calibration.metrics.utilities.decision import Decision
from utility_calibration.metrics.utilities.function import utility_of
from utility_calibration.metrics.utilities.gain_matrix import GainMatrix
from utility_calibration.metrics.utilities.linear_and_rank import Linear, Rank
from utility_calibration.metrics.utilities.payoffs import PayoffClass
from utility_calibration.metrics.utilities.similarity import Similarity
from utility_calibration.metrics.utilities.standard import ClassWise, TopK

from .state import PatchedForecast

Kind = Literal["class", "top_k", "linear", "rank", "own"]
KINDS: tuple[Kind, ...] = ("class", "top_k", "linear", "rank", "own")
SAMPLED = ("linear", "rank")
GIVEN_BY_NUMBERS = {
    kind.__name__: kind for kind in (Linear, Rank, Decision, Similarity, GainMatrix)
}
"""The utility classes that are defined by an array."""


class Vectors(NamedTuple):
    """u⃗ of k rows: float64 [k, C], or [1, C] if all rows have the same. Entry j is for class j.

    If `by_rank`, entry j is for the class of rank j, and ranks beyond the table's width are paid 0.
    """

    table: Array
    by_rank: bool = False

    def of(self, rows: slice) -> Self:
        """Return the vectors of a slice of the rows."""
        return self if len(self.table) == 1 else self._replace(table=self.table[rows])

    def spread(self, classes: int, weights: Array) -> float:
        """Return the mean ‖u⃗ - mean u⃗‖² of rows of `weights` [k].

        The simplex has no room along mean u⃗.
        """
        means = self.table.sum(axis=1) / classes
        squares = np.square(self.table).sum(axis=1) - classes * np.square(means)
        return float(squares[0] if len(squares) == 1 else np.average(squares, weights=weights))


@dataclass(frozen=True)
class Utility:
    """Utility `number` of a class of utilities, on a forecast that moves.

    `kind` and `index` name it in a file. `index` is the class, K - 1, the number among the sampled
    utilities, or, for a user's own, the number that counts through all of their classes.
    """

    kind: Kind
    index: int
    utilities: UtilityClass
    number: int

    @classmethod
    def standard(cls, kind: Kind, index: int, payoff: Array | None = None) -> Self:
        """Return the utility of class `index`, of K = `index` + 1, or of a sampled `payoff` [C]."""
        if kind in SAMPLED and payoff is not None:
            return cls(kind, index, Linear(payoff) if kind == "linear" else Rank(payoff), 0)
        return cls(kind, index, ClassWise() if kind == "class" else TopK(), index)

    @property
    def by_rank(self) -> bool:
        """Whether it pays the rank of the outcome, not its class; a user's own may do either."""
        return self.kind in ("top_k", "rank")

    def payoff(self, classes: int) -> Array:
        """Return what each class or each rank pays, float64 [C]; a user's own may have none."""
        if self.kind in ("class", "top_k"):
            return indicator(self.kind, self.number, classes)
        assert isinstance(self.utilities, PayoffClass)
        return self.utilities.payoff(self.number, classes)

    def predicted_and_realized(self, state: PatchedForecast) -> tuple[Array, Array]:
        """Return v and u of every point, float64 [n] each; u means nothing without labels.

        v is a column for payoffs 0 and 1, else a product with the probabilities or top-K sums.
        """
        if self.kind == "own":
            forecast = state.forecast()
            outcomes = Outcomes(state.labels.clip(min=0)[None], forecast=forecast)
            return self.utilities.predicted_and_realized(forecast, outcomes, self.number)
        values, codes = state.probabilities, state.labels
        if self.by_rank:
            values, codes = state.top_sums, state.ranks
        payoff = self.payoff(values.shape[1])
        if self.kind not in SAMPLED:
            return np.ascontiguousarray(values[:, self.number]), payoff[codes]
        return values @ (drops(payoff[None])[0] if self.by_rank else payoff), payoff[codes]

    def vectors(self, state: PatchedForecast, rows: Array) -> Vectors:
        """Return u⃗ of `rows`; by rank without the zeros at the end, so one entry for top-1."""
        if self.kind == "own":
            table = self.utilities.outcome_utilities(state.forecast(rows), self.number)
            return Vectors(table.astype(np.float64, copy=False))
        payoff = self.payoff(state.probabilities.shape[1])
        if self.by_rank:
            payoff = payoff[: int(np.flatnonzero(payoff).max()) + 1]
        return Vectors(payoff[None], self.by_rank)


@lru_cache(maxsize=64)
def indicator(kind: Kind, number: int, classes: int) -> Array:
    """Return the payoff [C] of a class or of the first ranks, which nobody may change."""
    return (ClassWise() if kind == "class" else TopK()).payoff(number, classes)


def drops(payoffs: Array) -> Array:
    """Return the weights w [b, C] with Σ_k θ_k p_(k) = Σ_K w_K (p_(1) + … + p_(K)) for any p."""
    return payoffs - np.pad(payoffs[:, 1:], ((0, 0), (0, 1)))


def described(utilities: Any) -> dict[str, Any]:
    """Return a class as numbers, {"kind": "Linear", "values": [[…]]}, for `classes_of`."""
    if isinstance(utilities, Mapping):
        return dict(utilities)
    of = GainMatrix if isinstance(utilities, GainMatrix) else type(utilities)  # sampled ones, too
    kind = of.__name__
    if GIVEN_BY_NUMBERS.get(kind) is not of:
        message = f"a {kind} is not given by numbers, so it cannot be saved and predicting needs it"
        fixes = ["keep the calibrator in memory", f"use one of {', '.join(GIVEN_BY_NUMBERS)}"]
        raise InputError(message, field="utilities", fixes=fixes)
    if isinstance(utilities, GainMatrix):
        numbers = np.stack([utilities.matrix(k) for k in range(utilities.utilities)])
    else:
        numbers = utilities.losses if isinstance(utilities, Decision) else utilities.matrix
    return {"kind": kind, "values": numbers.tolist()}


def classes_of(utilities: Sequence[Any] | None, standard: bool) -> list[UtilityClass]:
    """Return the classes of the argument `utilities`, which may be given as `described` them."""
    if isinstance(utilities, UtilityClass | str | Mapping):
        message, fix = "expected a list of utility classes", "put brackets around it"
        raise InputError(message, field="utilities", fixes=fix)
    classes: list[UtilityClass] = []
    for entry in utilities or ():
        if isinstance(entry, Mapping) and entry.get("kind") in GIVEN_BY_NUMBERS:
            classes.append(GIVEN_BY_NUMBERS[entry["kind"]](entry["values"]))
        else:
            classes.append(utility_of(entry))
    if not (classes or standard):
        fixes = ["give one", "standard=True"]
        raise InputError("none given and standard=False", field="utilities", fixes=fixes)
    return classes
