"""Similarities of classes (app. C.3): users gain more, the nearer the prediction is."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array
from ..errors import InputError
from ..forecast import Forecast
from ..kernels.threads import product
from .base import UtilityClass
from .blocks import Block
from .parameters import check_classes, parameter_matrix


class Similarity(UtilityClass):
    """U_w2v (app. C.3): one utility, partial credit for predicting a related class.

    It is the expected similarity to the outcome, u(p, e_j) = Σ_i p_i S_ij, and so is the unit of
    the error.

    >>> p = [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.5, 0.4, 0.1], [0.1, 0.2, 0.7]]
    >>> matrix = [[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]]
    >>> Similarity(matrix).calibration_errors(p, labels=[0, 1, 2, 1]).round(3)
    array([0.208])

    Args:
        matrix: S, [C, C], in [-1, 1] with S_ii = 1, such as cosine similarities of class names.

    Raises:
        InputError: a matrix that is not square or not finite, or of another number of classes.
    """

    def __init__(self, matrix: ArrayLike) -> None:
        self.matrix = parameter_matrix(matrix, "similarity matrix")
        if self.matrix.shape[0] != self.matrix.shape[1]:
            raise InputError(
                f"not square, shape {list(self.matrix.shape)}", field="similarity matrix"
            )

    def count(self, classes: int) -> int:
        check_classes("similarity matrix", len(self.matrix), classes)
        return 1

    def outcome_utilities(self, forecast: Forecast, index: int) -> Array:
        self.count(forecast.classes)
        return product(forecast.probabilities, self.matrix)

    def bounds(self, classes: int) -> Array:
        return np.array([[self.matrix.min(), self.matrix.max()]])

    def spread(self, block: Block) -> Array:
        """Return the range of S, because u is a mean of its entries."""
        return (self.matrix.max() - self.matrix.min())[None]
