"""Utilities without parameters of a user: class-wise, top-K, top class, discounted gains."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from ..arrays import Array
from ..errors import InputError
from ..forecast import Forecast, Outcomes
from ..option_checks import is_whole
from .payoffs import PayoffClass


class ClassWise(PayoffClass):
    """U_CWE (Example 3.4): for each class c, v = p_c and u = 1{y = c}, errors in shares of points.

    >>> p = [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.5, 0.4, 0.1], [0.1, 0.2, 0.7]]
    >>> ClassWise().calibration_errors(p, labels=[0, 1, 2, 1]).round(3)
    array([0.2  , 0.2  , 0.175])

    Args:
        classes: [m], the numbers of the classes c; all C classes if not given.

    Raises:
        InputError: when it meets a forecast without such a class.
    """

    coordinate = "class"

    def __init__(self, classes: Iterable[int] | None = None) -> None:
        self.classes = None if classes is None else tuple(classes)

    def count(self, classes: int) -> int:
        """Return the number of the chosen classes; `InputError` if one is not below `classes`."""
        if self.classes is None:
            return classes
        if not self.classes or not all(is_whole(c) and 0 <= c < classes for c in self.classes):
            message = f"classes must be whole numbers in 0 … {classes - 1}, got {self.classes!r}"
            raise InputError(message, field="ClassWise")
        return len(self.classes)

    def payoffs(self, classes: int) -> Array:
        """Return one row per chosen class."""
        rows = np.arange(classes) if self.classes is None else np.array(self.classes)
        self.count(classes)
        return (rows[:, None] == np.arange(classes)).astype(np.float64)

    @property
    def is_short(self) -> bool:  # type: ignore[override]
        return self.classes is None

    def near(self, part: slice, classes: int, codes: Array) -> tuple[Array, Array]:
        if not self.is_short:
            return super().near(part, classes, codes)
        size = part.stop - part.start
        is_other = (codes < part.start) | (codes >= part.stop)
        return np.eye(size, size + 1), np.where(is_other, size, codes - part.start)

    def predicted(self, forecast: Forecast, payoffs: Array, part: slice) -> Array:
        """Return columns of the probabilities. Without a product, ties stay ties."""
        columns = part if self.classes is None else list(self.classes[part])
        return forecast.probabilities[:, columns].T


class TopK(PayoffClass):
    """U_topK (Example 3.6): for each K in 1 … C, u = 1{rank(p, y) <= K} and v its probability.

    Errors are shares of points. Of equally probable classes the first in the order of the columns
    has the better rank.

    >>> p = [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.5, 0.4, 0.1], [0.1, 0.2, 0.7]]
    >>> TopK(ks=(1, 2)).calibration_errors(p, labels=[0, 1, 2, 1]).round(3)
    array([0.125, 0.15 ])

    Args:
        ks: [m], the values of K; all of 1 … C if not given.

    Raises:
        InputError: `ks` is no sequence, or the forecast has fewer classes than some K.
    """

    coordinate = "rank"

    def __init__(self, ks: Iterable[int] | None = None) -> None:
        if ks is not None and not isinstance(ks, Iterable):
            message = f"{ks!r}, expected a sequence of K"
            raise InputError(message, field="ks", fixes=f"give ks=({ks!r},)")
        self.ks = None if ks is None else tuple(ks)

    def count(self, classes: int) -> int:
        """Return the number of the chosen K; `InputError` if one is not in 1 … `classes`."""
        ks = range(1, classes + 1) if self.ks is None else self.ks
        if not ks or not all(is_whole(k) and 1 <= k <= classes for k in ks):
            message = f"{self.ks!r}, expected whole numbers in 1 … {classes}"
            raise InputError(message, field="ks", fixes="give TopK such numbers, or none for all")
        return len(ks)

    def payoffs(self, classes: int) -> Array:
        """Return ones up to rank K, then zeros."""
        count = self.count(classes)
        ks = range(1, count + 1) if self.ks is None else self.ks
        return (np.arange(classes) < np.array(ks)[:, None]).astype(np.float64)

    @property
    def is_short(self) -> bool:  # type: ignore[override]
        return self.ks is None

    def near(self, part: slice, classes: int, codes: Array) -> tuple[Array, Array]:
        if not self.is_short:
            return super().near(part, classes, codes)
        size = part.stop - part.start
        columns = size + (part.stop < classes)  # all C pay for every rank
        return np.tri(size, columns), (codes - part.start).clip(0, size)

    def predicted(self, forecast: Forecast, payoffs: Array, part: slice) -> Array:
        """Return the sums of the K largest probabilities, without a copy if all K are used."""
        columns = part if self.is_short else payoffs.sum(axis=1).astype(np.int64, copy=False) - 1
        return forecast.joined(lambda rows: rows.top_sums[:, columns].T)


class TopClass(TopK):
    """U_TCE (Example 3.4): v = max p and u = 1{argmax p = y}, where the first class wins ties.

    It is one utility, m = 1, and its error is a share of points. It has no arguments.

    >>> p = [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.5, 0.4, 0.1], [0.1, 0.2, 0.7]]
    >>> TopClass().calibration_errors(p, labels=[0, 1, 2, 1]).round(3)
    array([0.125])
    """

    def __init__(self) -> None:
        super().__init__(ks=(1,))

    def predicted(self, forecast: Forecast, payoffs: Array, part: slice) -> Array:
        """Return the largest probability, which needs no ranking."""
        return forecast.top[0][None]

    def codes(self, outcomes: Outcomes) -> Array:
        """Return known ranks, else 0 for the most probable class and 1 for any other."""
        if outcomes.known_ranks is not None:
            return outcomes.known_ranks
        return (~outcomes.hits).astype(outcomes.labels.dtype)

    def alike(self, forecast: Forecast) -> Array | None:
        """Compare probabilities by class, because the largest one needs no ranking."""
        return forecast.alike


class DiscountedCumulativeGain(PayoffClass):
    """U_dcg (app. C.3): the rank r = 1 … C of the outcome pays log2(1 + r)^-γ, for each γ.

    Errors are in the unit of the pay, which is 1 for the first rank.

    >>> p = [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.5, 0.4, 0.1], [0.1, 0.2, 0.7]]
    >>> DiscountedCumulativeGain((1,)).calibration_errors(p, labels=[0, 1, 2, 1]).round(3)
    array([0.076])

    Args:
        exponents: [m], the grid of γ >= 0.

    Raises:
        InputError: no exponents, or one that is negative or not finite.
    """

    coordinate = "rank"

    def __init__(self, exponents: tuple[float, ...] = (0.5, 0.75, 1, 1.25, 1.5, 2)) -> None:
        if not exponents or not all(math.isfinite(g) and g >= 0 for g in exponents):
            raise InputError(f"expected numbers >= 0, got {list(exponents)}", field="exponents")
        self.exponents = tuple(float(g) for g in exponents)

    def payoffs(self, classes: int) -> Array:
        ranks = np.arange(1.0, classes + 1)
        return np.log2(1 + ranks) ** -np.array(self.exponents)[:, None]
