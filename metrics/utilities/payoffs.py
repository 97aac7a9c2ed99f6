"""Utilities given by a payoff for each class or each rank.

Payoffs of the outcome's class or rank are u(p, e_j) = a[j] or θ[rank(p, j)]. Their predictions are
linear in the probabilities (class coordinates) or in the sorted probabilities (rank coordinates).
So the predicted utilities of a block of utilities are one matrix product.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array
from ..errors import InputError
from ..forecast import Forecast, Outcomes
from ..kernels.draws import Draws
from ..kernels.threads import product
from ..option_checks import is_whole
from .base import UtilityClass
from .blocks import FEWEST_ROWS, Block, equal_blocks
from .parameters import check_classes, check_sample, parameter_matrix


class PayoffClass(UtilityClass):
    """Utilities given by a payoff per coordinate, where a coordinate is a class or a rank."""

    coordinate: Literal["class", "rank"]
    is_short = False
    """Whether `near` returns a table of b + 1 columns: one per utility of the block and one for
    all other outcomes. All C columns for C utilities would be C² numbers."""

    def near(self, part: slice, classes: int, codes: Array) -> tuple[Array, Array]:
        """Return payoffs [b, L] of the utilities in `part`, and the outcomes' codes in them."""
        return self.payoffs(classes)[part], codes

    @abstractmethod
    def payoffs(self, classes: int) -> Array:
        """Return the payoff vectors of the utilities: float64 [m, C]."""

    def count(self, classes: int) -> int:
        return len(self.payoffs(classes))

    def bounds(self, classes: int) -> Array:
        bounds = []
        for part in equal_blocks(range(self.count(classes)), classes):
            table, _ = self.near(part, classes, np.arange(1))
            bounds.append(np.stack([table.min(axis=1), table.max(axis=1)], axis=1))
        return np.concatenate(bounds).astype(np.float64, copy=False)

    def predicted(self, forecast: Forecast, payoffs: Array, part: slice) -> Array:
        """Return v of the utilities in `part`, [b, n], for their `payoffs` [b, C]."""
        if self.coordinate == "class":
            return product(payoffs, forecast.probabilities.T)
        return forecast.joined(lambda rows: product(payoffs, rows.ranked.T))

    def codes(self, outcomes: Outcomes) -> Array:
        """Return the coordinate of each outcome: [R, n]."""
        return outcomes.labels if self.coordinate == "class" else outcomes.ranks

    def payoff(self, index: int, classes: int) -> Array:
        """Return the payoff vector of utility `index`: float64 [C]."""
        table, columns = self.near(slice(index, index + 1), classes, np.arange(classes))
        return table[0, columns].astype(np.float64, copy=False)

    def outcome_utilities(self, forecast: Forecast, index: int) -> Array:
        p = forecast.probabilities
        payoff = self.payoff(index, forecast.classes)
        if self.coordinate == "class":
            return np.broadcast_to(payoff, p.shape)
        vectors = np.empty_like(p)
        np.put_along_axis(vectors, forecast.order, np.broadcast_to(payoff, p.shape), axis=1)
        return vectors

    def alike(self, forecast: Forecast) -> Array | None:
        """Compare probabilities by class, or in descending order if payoffs are by rank."""
        return forecast.alike if self.coordinate == "class" else forecast.ranked_alike

    def blocks(
        self, forecast: Forecast, outcomes: Outcomes, part: slice = slice(None)
    ) -> Iterator[Block]:
        """Yield blocks whose predictions fill `BLOCK_BYTES`."""
        codes, classes = self.codes(outcomes), forecast.classes
        # Payoffs of so many utilities are not larger than their predictions.
        most = max(FEWEST_ROWS, forecast.n) if self.is_short else None
        for block in equal_blocks(range(self.count(classes))[part], forecast.n, most):
            table, columns = self.near(block, classes, codes)
            table = table.astype(np.float64, copy=False)
            key = self, block.start, block.stop
            is_tied = key in forecast.kept or outcomes.draws > 1
            if key in forecast.kept:
                predicted, orders = forecast.kept[key]
            else:
                predicted, orders = self.predicted(forecast, table, block), []
                if is_tied:  # several draws share them, and their rounding
                    predicted = self.tied(forecast, np.ascontiguousarray(predicted), table)
                    forecast.keep(key, predicted, orders)
            yield Block(predicted, table, columns, orders, is_tied)


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


class GivenPayoffs(PayoffClass):
    """Payoff vectors from a user's matrix [m, C], which messages call `name`."""

    name: str
    matrix: Array

    def payoffs(self, classes: int) -> Array:
        check_classes(self.name, self.matrix.shape[1], classes)
        return self.matrix

    def near(self, part: slice, classes: int, codes: Array) -> tuple[Array, Array]:
        # Kernels would be compiled once more for the read-only matrix.
        return self.payoffs(classes)[part].copy(), codes


class Linear(GivenPayoffs):
    """U_lin (Example 3.5): u(p, e_j) = a_j, v = <p, a>.

    >>> p = [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.5, 0.4, 0.1], [0.1, 0.2, 0.7]]
    >>> Linear([1, 0, -1]).calibration_errors(p, labels=[0, 1, 2, 1]).round(3)
    array([0.375])

    Args:
        payoffs: [m, C] (or [C]), one payoff vector a per row. Errors are in their unit.

    Raises:
        InputError: payoffs of another shape or not finite; a forecast of another number of classes.
    """

    coordinate, name = "class", "payoffs"

    def __init__(self, payoffs: ArrayLike) -> None:
        self.matrix = parameter_matrix(payoffs, self.name)

    @classmethod
    def sample(cls, count: int, classes: int, seed: int) -> Linear:
        """Draw `count` payoff vectors uniformly from {‖a‖_∞ = 1} (sec. 4); errors in [0, 2].

        InputError: `count` is less than 1, or `classes` less than 2.
        """
        return cls(sample_unit_sphere_infinity(count, classes, seed))


class Rank(GivenPayoffs):
    """U_rank (Example 3.6): u(p, e_j) = θ_rank(p, j), v = Σ_i p_i θ_rank(p, i).

    >>> p = [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.5, 0.4, 0.1], [0.1, 0.2, 0.7]]
    >>> Rank([1, 0.5, 0]).calibration_errors(p, labels=[0, 1, 2, 1]).round(3)
    array([0.175])

    Args:
        valuations: [m, C] (or [C]), the value θ of each rank, best rank first. Errors are in their
            unit.

    Raises:
        InputError: valuations of another shape or not finite; a forecast of another number of
            classes.
    """

    coordinate, name = "rank", "valuations"

    def __init__(self, valuations: ArrayLike) -> None:
        self.matrix = parameter_matrix(valuations, self.name)

    @classmethod
    def sample(cls, count: int, classes: int, seed: int) -> Rank:
        """Draw `count` valuations uniformly from {‖θ‖_∞ = 1, θ_1 >= … >= θ_C} (sec. 4).

        InputError: `count` is less than 1, or `classes` less than 2.
        """
        return cls(-np.sort(-sample_unit_sphere_infinity(count, classes, seed), axis=1))


def sample_unit_sphere_infinity(count: int, classes: int, seed: int) -> Array:
    """Return `count` vectors uniform on {a in R^C : ‖a‖_∞ = 1}: float64 [count, C] (sec. 4).

    A coordinate chosen at random is ±1, the others are uniform in [-1, 1].
    """
    check_sample(count, classes)
    draws = Draws(seed)
    vectors = draws.uniforms(count, classes) * 2 - 1
    face = draws.below(classes, count, 1)
    sign = draws.below(2, count, 1) * 2.0 - 1
    np.put_along_axis(vectors, face, sign, axis=1)
    return vectors
