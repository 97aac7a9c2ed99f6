"""Utilities as a caller gives them: a utility class, or a function of the probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from ..errors import InputError
from ..forecast import Forecast
from .base import UtilityClass


class FunctionUtility(UtilityClass):
    """One utility given as a function: probabilities [n, C] -> u⃗ [n, C], torch to torch.

    Each row of the result must depend only on the same row of the probabilities, because the
    function is also called with some of the rows.
    """

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self.function = function

    def count(self, classes: int) -> int:
        return 1

    def outcome_utilities(self, forecast: Forecast, index: int) -> Tensor:
        p, wrong = forecast.probabilities, ""
        vectors = self.function(p)
        if not isinstance(vectors, Tensor):
            kind = type(vectors).__name__
            fix = "return a tensor, written with torch's functions"
            wrong = f"{kind} for a torch tensor of probabilities; {fix}"
        elif vectors.shape != p.shape:
            shapes = f"shape {list(vectors.shape)} for probabilities of shape {list(p.shape)}"
            wrong = f"{shapes}; return u(p, e_j) for every outcome j"
        elif not bool(torch.isfinite(vectors).all()):
            wrong = "NaN or infinite values"
        if wrong:
            raise InputError(f"returned {wrong}", field="utility function")
        return vectors.detach()


Utility = UtilityClass | Callable[[Tensor], Tensor]
"""A utility class, or a function p [n, C] -> u⃗ [n, C] from torch to torch."""


def utilities_of(utilities: Utility | Iterable[Utility]) -> list[UtilityClass]:
    """Return one utility or several as classes; `InputError` if there is none."""
    if isinstance(utilities, UtilityClass) or callable(utilities):
        return [utility_of(utilities)]
    if several := [utility_of(each) for each in utilities]:
        return several
    raise InputError("none given", field="utilities", fixes="give at least one")


def utility_of(utility: Utility) -> UtilityClass:
    """Return a utility class unchanged, and a function p [n, C] -> u⃗ [n, C] as a utility class.

    `InputError` for a Python class in place of an object, and for what is neither.
    """
    if isinstance(utility, UtilityClass):
        return utility
    if isinstance(utility, type):
        name = utility.__name__
        raise InputError(
            f"{name} is a Python class", field="utility", fixes=f"give an object of it: {name}(…)"
        )
    if not callable(utility):
        raise InputError(
            f"a {type(utility).__name__} is no utility",
            field="utility",
            fixes="give an object such as TopK(), or a function of the probabilities [n, C]",
        )
    return FunctionUtility(utility)
