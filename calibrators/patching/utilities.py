"""The utilities that patching calibrates to. Each returns its vectors u⃗ at the requested rows.

A utility u(p, e_j) has the vector u⃗(p) = (u(p, e_1), …, u(p, e_C)), the predicted utility
v = <p, u⃗(p)> and the realized utility u⃗(p)[y]. There are two forms. `PayoffUtility` has payoffs by
class or by rank, the same for all points (U_CWE, U_topK, sampled U_lin and U_rank). `ClassUtility`
belongs to a class of utilities; its vectors may differ from point to point (gain matrices).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

import torch
from torch import Tensor

from utility_calibration.metrics.forecast import Outcomes
from utility_calibration.metrics.utilities.base import UtilityClass, utility_of
from utility_calibration.metrics.utilities.gain_matrix import GainMatrix
from utility_calibration.metrics.utilities.payoffs import Decision, Linear, Rank, Similarity
from utility_calibration.metrics.validation import InputError

from .state import PatchedForecast

Kind = Literal["class", "top_k", "linear", "rank", "own"]
KINDS: tuple[Kind, ...] = ("class", "top_k", "linear", "rank", "own")
GIVEN_BY_NUMBERS = {
    kind.__name__: kind for kind in (Linear, Rank, Decision, Similarity, GainMatrix)
}
"""The utility classes that are defined by an array."""


class Vectors(NamedTuple):
    """u⃗ of k rows: float64 [k, C], or [1, C] if all rows have the same. Entry j is for class j.

    If `by_rank`, entry j is for the class of rank j, and ranks beyond the table's width are paid 0.
    """

    table: Tensor
    by_rank: bool = False

    def of(self, rows: slice) -> Self:
        """Return the vectors of a slice of the rows."""
        return self if len(self.table) == 1 else self._replace(table=self.table[rows])

    def spread(self, classes: int) -> float:
        """Return the mean ‖u⃗ - mean u⃗‖² of the rows; the simplex has no room along mean u⃗."""
        means = self.table.sum(dim=1) / classes
        return float((self.table.square().sum(dim=1) - classes * means.square()).mean())


@dataclass(frozen=True)
class PayoffUtility:
    """A payoff float64 [C] by class ("class", "linear") or by rank ("top_k", "rank").

    `index` is the class, K - 1, or the number among the sampled utilities.
    """

    kind: Kind
    index: int
    payoff: Tensor

    @classmethod
    def indicator(cls, kind: Kind, index: int, classes: int) -> Self:
        """Return the utility of U_CWE for class `index`, or that of U_topK for K = `index` + 1."""
        numbers = torch.arange(classes)
        pays = numbers == index if kind == "class" else numbers <= index
        return cls(kind, index, pays.to(torch.float64))

    @property
    def by_rank(self) -> bool:
        """Whether the payoff belongs to ranks rather than to classes."""
        return self.kind in ("top_k", "rank")

    def predicted(self, state: PatchedForecast) -> Tensor:
        """Return v of every point, float64 [n]: a column for payoffs 0 and 1, else a product."""
        values = state.top_sums if self.by_rank else state.probabilities
        if self.kind in ("class", "top_k"):
            return values[:, self.index].contiguous()
        payoff = self.payoff.to(values.device)
        return values @ (drops(payoff[None])[0] if self.by_rank else payoff)

    def realized(self, state: PatchedForecast) -> Tensor:
        """Return u of every point: the payoff of its label, or of the label's rank, float64 [n]."""
        return self.payoff.to(state.labels.device)[state.ranks if self.by_rank else state.labels]

    def vectors(self, state: PatchedForecast, rows: Tensor) -> Vectors:
        """Return u⃗ of `rows`; by rank without the zeros at the end, so one entry for top-1."""
        payoff = self.payoff.to(rows.device)
        if self.by_rank:
            payoff = payoff[: int(torch.nonzero(payoff).max()) + 1]
        return Vectors(payoff[None], self.by_rank)


@dataclass(frozen=True)
class ClassUtility:
    """A utility of a `UtilityClass`, which `metrics` or the user defines.

    `index` counts through all classes of the argument `utilities`; `first` is the index of this
    class's first utility.
    """

    utilities: UtilityClass
    index: int
    first: int = 0
    kind: Kind = "own"

    def predicted(self, state: PatchedForecast) -> Tensor:
        return self._both(state)[0]

    def realized(self, state: PatchedForecast) -> Tensor:
        return self._both(state)[1]

    def _both(self, state: PatchedForecast) -> tuple[Tensor, Tensor]:
        forecast = state.forecast()
        # Without labels, all of them are -1. Then only v is used.
        outcomes = Outcomes(state.labels.clamp(min=0)[None], forecast=forecast)
        return self.utilities.predicted_and_realized(forecast, outcomes, self.index - self.first)

    def vectors(self, state: PatchedForecast, rows: Tensor) -> Vectors:
        table = self.utilities.outcome_utilities(state.forecast(rows), self.index - self.first)
        return Vectors(table.to(torch.float64))


Utility = PayoffUtility | ClassUtility


def drops(payoffs: Tensor) -> Tensor:
    """Return the weights w [b, C] with Σ_k θ_k p_(k) = Σ_K w_K (p_(1) + … + p_(K)) for any p."""
    return payoffs - torch.nn.functional.pad(payoffs[:, 1:], (0, 1))


def described(utilities: Any) -> dict[str, Any]:
    """Return a class as numbers, {"kind": "Linear", "values": [[…]]}, for `classes_of`."""
    if isinstance(utilities, Mapping):
        return dict(utilities)
    of = GainMatrix if isinstance(utilities, GainMatrix) else type(utilities)  # sampled ones, too
    kind = of.__name__
    if GIVEN_BY_NUMBERS.get(kind) is not of:
        raise InputError(
            f"utilities: a {kind} is not given by numbers, so it cannot be saved and predicting "
            f"needs it; keep the calibrator in memory, or use one of {', '.join(GIVEN_BY_NUMBERS)}"
        )
    if isinstance(utilities, GainMatrix):
        numbers = torch.stack([utilities.matrix(k) for k in range(utilities.utilities)])
    else:
        numbers = utilities.losses if isinstance(utilities, Decision) else utilities.matrix
    return {"kind": kind, "values": numbers.tolist()}


def classes_of(utilities: Sequence[Any] | None, standard: bool) -> list[UtilityClass]:
    """Return the classes of the argument `utilities`, which may be given as `described` them."""
    if isinstance(utilities, UtilityClass | str | Mapping):
        raise InputError("utilities: expected a list of utility classes; put brackets around it")
    classes: list[UtilityClass] = []
    for entry in utilities or ():
        if isinstance(entry, Mapping) and entry.get("kind") in GIVEN_BY_NUMBERS:
            classes.append(GIVEN_BY_NUMBERS[entry["kind"]](entry["values"]))
        else:
            classes.append(utility_of(entry))
    if not (classes or standard):
        raise InputError("utilities: none given and standard=False; give one, or standard=True")
    return classes
