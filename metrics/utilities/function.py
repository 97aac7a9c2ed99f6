"""Utilities as a caller gives them: a utility class, or a function of the probabilities."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..arrays import Array, plain
from ..errors import InputError, reason_of
from ..forecast import Forecast
from .base import UtilityClass

FIELD = "utility function"
"""What messages call it."""
OF_TENSORS = re.compile(r"Tensor|'(dim|keepdim)'")
"""What messages of torch's functions have, and of NumPy's methods with torch's arguments."""


class FunctionUtility(UtilityClass):
    """One utility u(p, e_j) of your own (eq. 3.1), given as a function on NumPy arrays.

    Its error is in the unit of the values that the function returns.

    >>> p = [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.5, 0.4, 0.1], [0.1, 0.2, 0.7]]
    >>> first = FunctionUtility(lambda p: p * 0 + [1, 0, -1])
    >>> first.calibration_errors(p, labels=[0, 1, 2, 1]).round(3)
    array([0.375])

    Args:
        function: probabilities [n, C] -> u⃗ [n, C]; column j is what the outcome j pays. Each row of
            the result must depend only on the same row of the probabilities, because the function
            is also called with some of the rows.

    Raises:
        InputError: when it is called, the function returns no such array, or it calls a method
            that only tensors have.
    """

    def __init__(self, function: Callable[[Array], Array]) -> None:
        self.function = function

    def count(self, classes: int) -> int:
        return 1

    def outcome_utilities(self, forecast: Forecast, index: int) -> Array:
        p = forecast.probabilities
        try:
            vectors = plain(self.function(p.copy()), FIELD)  # which it may change
        except InputError:
            raise
        except Exception as error:
            if not self._takes_tensors(p, error):
                raise
            message = f"it is called with a NumPy array, not with a tensor ({reason_of(error)})"
            fixes = "write it with NumPy", "begin it with p = torch.from_numpy(p)"
            raise InputError(message, field=FIELD, fixes=fixes) from error
        if not isinstance(vectors, np.ndarray):
            message = f"returned {type(vectors).__name__} for an array of probabilities"
            raise InputError(message, field=FIELD, fixes="return an array")
        if vectors.shape != p.shape:
            shapes = f"{list(vectors.shape)} for probabilities of shape {list(p.shape)}"
            fix = "return u(p, e_j) for every outcome j"
            raise InputError(f"returned shape {shapes}", field=FIELD, fixes=fix)
        if not bool(np.isfinite(vectors).all()):
            raise InputError("returned NaN or infinite values", field=FIELD)
        return vectors

    def _takes_tensors(self, p: Array, error: Exception) -> bool:
        """Whether the function failed because it takes its array [n, C] for a torch tensor."""
        if isinstance(error, AttributeError) and isinstance(error.obj, np.ndarray):
            return True
        if OF_TENSORS.search(str(error)):
            return True
        torch: Any = sys.modules.get("torch")
        if torch is None:
            return False
        try:
            self.function(torch.from_numpy(p.copy()))
        except Exception:
            return False
        return True


Utility = UtilityClass | Callable[[Array], Array]
"""A utility class, or a function p [n, C] -> u⃗ [n, C] on NumPy arrays."""


def utilities_of(utilities: Utility | Iterable[Utility]) -> list[UtilityClass]:
    """Return one utility or several as classes; `InputError` if there is none."""
    if isinstance(utilities, UtilityClass) or callable(utilities):
        return [utility_of(utilities)]
    several = [utility_of(each) for each in utilities]
    if not several:
        raise InputError("none given", field="utilities", fixes="give at least one")
    return several


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
