"""A person's own utilities as targets of patching: any classes of `metrics`, in a fixed order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from calibrators.patching.audit import Auditor, Family, Members
from calibrators.patching.state import PatchedForecast
from calibrators.patching.utilities import Member
from metrics.utilities.base import UtilityClass
from metrics.utilities.decision import Decision
from metrics.utilities.gain_matrix import GainMatrix
from metrics.utilities.linear import Linear
from metrics.utilities.rank import Rank
from metrics.utilities.similarity import Similarity
from metrics.validation import InputError

NUMBERS: dict[type[Any], Callable[[Any], Tensor]] = {
    Linear: lambda given: given.matrix,
    Rank: lambda given: given.matrix,
    Decision: lambda given: given.losses,
    Similarity: lambda given: given.matrix,
    GainMatrix: lambda given: torch.stack([given.matrix(k) for k in range(given.utilities)]),
}
"""Classes that an array makes, and the array."""
BY_NAME = {kind.__name__: kind for kind in NUMBERS}


def described(utilities: Any) -> dict[str, Any]:
    """Return a class as numbers, {"kind": "Linear", "values": [[…]]}, which `classes_of` takes.

    Raises:
        InputError: it is not given by numbers.
    """
    if isinstance(utilities, Mapping):
        return dict(utilities)
    if type(utilities) not in NUMBERS:
        raise InputError(
            f"utilities: a {type(utilities).__name__} is not given by numbers, so it cannot be "
            f"saved and predicting needs it; keep the calibrator in memory, or use one of "
            f"{', '.join(BY_NAME)}"
        )
    values = NUMBERS[type(utilities)](utilities)
    return {"kind": type(utilities).__name__, "values": values.tolist()}


def classes_of(utilities: Sequence[Any] | None, standard: bool) -> list[UtilityClass]:
    """Return the classes behind the argument `utilities`: those themselves, or `described` ones.

    Raises:
        InputError: one is neither, or there is nothing to calibrate to.
    """
    if isinstance(utilities, UtilityClass | str | Mapping):
        raise InputError("utilities: expected a list of utility classes; put brackets around it")
    found = [_class_of(one) for one in utilities or ()]
    if not (found or standard):
        raise InputError("utilities: none given and standard=False; give one, or standard=True")
    return found


def _class_of(one: Any) -> UtilityClass:
    if isinstance(one, UtilityClass):
        return one
    if isinstance(one, Mapping) and set(one) == {"kind", "values"} and one["kind"] in BY_NAME:
        utilities: UtilityClass = BY_NAME[one["kind"]](one["values"])
        return utilities
    raise InputError(
        f"utilities: a {type(one).__name__} is no utility class; give one such as metrics.Linear, "
        "or metrics.FunctionUtility(function)"
    )


@dataclass(frozen=True)
class WithOwn:
    """An auditor of the families of another one, if any, and of classes of one's own.

    All compete by their errors, each in its own unit: a payoff of 100 outweighs one of 1.
    """

    others: Auditor | None
    own: Sequence[UtilityClass]
    classes: int

    def __call__(self, state: PatchedForecast, number: int) -> list[Family]:
        families = [] if self.others is None else list(self.others(state, number))
        own = _numbered(self.own, self.classes)
        return [*families, *(Members(utilities, state, first) for first, utilities in own)]


def _numbered(own: Sequence[UtilityClass], classes: int) -> Iterator[tuple[int, UtilityClass]]:
    """Yield each class with the number of its first utility."""
    first = 0
    for utilities in own:
        yield first, utilities
        first += utilities.count(classes)


def member(own: Sequence[UtilityClass], index: int, classes: int) -> Member:
    """Return utility number `index` of all."""
    first, utilities = [pair for pair in _numbered(own, classes) if pair[0] <= index][-1]
    return Member(utilities, index, first)
