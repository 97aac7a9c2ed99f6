"""Utilities that pay by the outcome's class or by its rank: u(p, e_j) = a[j] or θ[rank(p, j)].

Both are linear forms, in the probabilities (class coordinates) or in the sorted probabilities
(rank coordinates): predicted utilities of a block of utilities are one matrix product.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Literal

import torch
from torch import Tensor

from metrics.forecast import Forecast, Outcomes
from metrics.utilities.base import Block, UtilityClass, equal_blocks, parameter_matrix
from metrics.validation import InputError


class PayoffClass(UtilityClass):
    """Utilities given by a payoff per coordinate, where a coordinate is a class or a rank."""

    coordinate: Literal["class", "rank"]

    @abstractmethod
    def payoffs(self, classes: int, part: slice) -> Tensor:
        """Return the payoff vectors of the utilities in `part`: float64 [b, C]."""

    def predicted(self, forecast: Forecast, part: slice, spare: Tensor | None = None) -> Tensor:
        """Return v of the utilities in `part`: [b, n], in the memory of `spare` [>= b, n] if given.

        Fresh memory is slow: the system hands it out page by page.
        """
        p = forecast.probabilities
        payoffs = self.payoffs(forecast.classes, part).to(p.device)
        out = None if spare is None else spare[: len(payoffs)]
        if self.coordinate == "class":
            return torch.matmul(payoffs, p.T, out=out)
        if forecast.is_large:
            return forecast.joined(lambda some: payoffs @ some.ranked.T, len(payoffs), spare)
        return torch.matmul(payoffs, forecast.ranked.T, out=out)

    def codes(self, outcomes: Outcomes) -> Tensor:
        """Return the coordinate of each outcome: [R, n]."""
        return outcomes.labels if self.coordinate == "class" else outcomes.ranks

    def outcome_utilities(self, forecast: Forecast, index: int) -> Tensor:
        """Return u⃗: the payoffs themselves, or those of the classes' ranks: [n, C]."""
        p = forecast.probabilities
        payoff = self.payoffs(forecast.classes, slice(index, index + 1))[0].to(p.device)
        if self.coordinate == "class":
            return payoff.expand_as(p)
        order = forecast.order.to(torch.int64)
        return torch.empty_like(p).scatter_(1, order, payoff.expand_as(p))

    def alike(self, forecast: Forecast) -> Tensor | None:
        """Equal probabilities by class or, where ranks are paid, in descending order."""
        return forecast.alike if self.coordinate == "class" else forecast.ranked_alike

    def predicted_and_realized(
        self, forecast: Forecast, outcomes: Outcomes, index: int
    ) -> tuple[Tensor, Tensor]:
        """As in `blocks`, so that sums by rank are tied here where they are tied there."""
        part = slice(index, index + 1)
        payoff = self.payoffs(forecast.classes, part)[0].to(outcomes.labels.device)
        return self.predicted(forecast, part)[0], payoff[self.codes(outcomes)[0]]

    def blocks(self, forecast: Forecast, outcomes: Outcomes) -> Iterator[Block]:
        """Yield blocks whose predictions fill `BLOCK_BYTES`, each in the memory of the last."""
        codes = self.codes(outcomes)
        predicted: Tensor | None = None
        for part in equal_blocks(self.count(forecast.classes), forecast.n):
            payoffs = self.payoffs(forecast.classes, part).to(forecast.probabilities.device)
            predicted = self.predicted(forecast, part, predicted)
            yield Block(predicted, payoffs, codes)


class GivenPayoffs(PayoffClass):
    """Payoff vectors given as a matrix [m, C]."""

    def __init__(self, matrix: Any, name: str) -> None:
        self.matrix = parameter_matrix(matrix, name)
        self.name = name

    def count(self, classes: int) -> int:
        """The number of rows; `InputError` if the rows are for another number of classes."""
        if self.matrix.shape[1] != classes:
            raise InputError(
                f"{self.name}: {self.matrix.shape[1]} columns for a forecast over {classes} classes"
            )
        return self.matrix.shape[0]

    def payoffs(self, classes: int, part: slice) -> Tensor:
        """Rows of the matrix."""
        self.count(classes)
        return self.matrix[part]
