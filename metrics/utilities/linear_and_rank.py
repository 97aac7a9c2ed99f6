"""Utilities by a user's own payoffs for each class or each rank, and samples of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array
from ..kernels.draws import Draws
from .parameters import check_classes, check_sample, parameter_matrix
from .payoffs import PayoffClass


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
