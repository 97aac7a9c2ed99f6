"""Utilities as a caller gives them: a utility class, or a function of the probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from ..arrays import Array, plain
from ..errors import InputError
from ..forecast import Forecast
from .base import UtilityClass


class FunctionUtility(UtilityClass):
    """One utility given as a function: probabilities [n, C] -> u⃗ [n, C], NumPy to NumPy.

    Each row of the result must depend only on the same row of the probabilities, because the
    function is also called with some of the rows.
    """

    def __init__(self, function: Callable[[Array], Array]) -> None:
        self.function = function

    def count(self, classes: int) -> int:
        return 1

    def outcome_utilities(self, forecast: Forecast, index: int) -> Array:
        p, wrong = forecast.probabilities, ""
        vectors = plain(self.function(p))
        if not isinstance(vectors, np.ndarray):
            kind = type(vectors).__name__
            fix = "return an array"
            wrong = f"{kind} for an array of probabilities; {fix}"
        elif vectors.shape != p.shape:
            shapes = f"shape {list(vectors.shape)} for probabilities of shape {list(p.shape)}"
            wrong = f"{shapes}; return u(p, e_j) for every outcome j"
        elif not bool(np.isfinite(vectors).all()):
            wrong = "NaN or infinite values"
        if wrong:
            raise InputError(f"returned {wrong}", field="utility function")
        return vectors


Utility = UtilityClass | Callable[[Array], Array]
"""A utility class, or a function p [n, C] -> u⃗ [n, C] from NumPy to NumPy."""


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
