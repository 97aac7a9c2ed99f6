"""Semantic similarity (app. C.3): partial credit for predicting a related class."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from metrics.forecast import Forecast
from metrics.utilities.base import Block, UtilityClass, parameter_matrix
from metrics.validation import InputError


class Similarity(UtilityClass):
    """U_w2v: one utility, the expected similarity to the outcome, u(p, e_j) = Σ_i p_i S_ij.

    Args:
        matrix: S, [C, C], in [-1, 1] with S_ii = 1, such as cosine similarities of class names.
    """

    def __init__(self, matrix: Any) -> None:
        self.matrix = parameter_matrix(matrix, "similarity matrix")
        if self.matrix.shape[0] != self.matrix.shape[1]:
            raise InputError(f"similarity matrix: not square, shape {list(self.matrix.shape)}")

    def count(self, classes: int) -> int:
        """Return 1; `InputError` if the matrix is for another number of classes."""
        if self.matrix.shape[0] != classes:
            raise InputError(
                f"similarity matrix: {self.matrix.shape[0]} classes, the forecast has {classes}"
            )
        return 1

    def outcome_utilities(self, forecast: Forecast, index: int) -> Tensor:
        """Return p S: [n, C]."""
        self.count(forecast.classes)
        p = forecast.probabilities
        return p @ self.matrix.to(p.device)

    def spread(self, block: Block) -> Tensor:
        """Return the range of S, because u is a mean of its entries."""
        return (self.matrix.max() - self.matrix.min()).to(block.predicted.device)[None]
