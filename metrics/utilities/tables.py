"""Utilities given by a table: decisions by their losses, and credit for related classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from metrics.forecast import Forecast, Outcomes
from metrics.utilities.base import Block, UtilityClass, check_classes, parameter_matrix
from metrics.validation import InputError


class Decision(UtilityClass):
    """U_dec,K (Example 3.7): users take the action of least expected loss, the first one on ties.

    u(p, y) = -l(y, δ(p)) with δ(p) = argmin_a E_{ŷ~p} l(ŷ, a).

    Args:
        losses: [m, C, K] (or [C, K]), the loss of each action under each outcome.
    """

    def __init__(self, losses: Any) -> None:
        self.losses = parameter_matrix(losses, "losses", ndim=3)

    def count(self, classes: int) -> int:
        check_classes("losses", self.losses.shape[1], classes)
        return self.losses.shape[0]

    def _act(self, forecast: Forecast, index: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return the loss [C, K], the chosen action's expected loss [n] and the action [n]."""
        self.count(forecast.classes)
        loss = self.losses[index].to(forecast.probabilities.device)
        expected = forecast.probabilities @ loss
        action = expected.argmin(dim=1)
        return loss, expected.gather(1, action[:, None])[:, 0], action

    def outcome_utilities(self, forecast: Forecast, index: int) -> Tensor:
        loss, _, action = self._act(forecast, index)
        return -loss[:, action].T

    def blocks(
        self, forecast: Forecast, outcomes: Outcomes, part: slice = slice(None)
    ) -> Iterator[Block]:
        """Yield one utility at a time; payoffs are the loss table, codes (outcome, action)."""
        actions = self.losses.shape[2]
        for index in range(self.count(forecast.classes))[part]:
            loss, expected, action = self._act(forecast, index)
            codes = outcomes.labels * actions + action
            yield Block(-expected[None], -loss.reshape(1, -1), codes)


class Similarity(UtilityClass):
    """U_w2v (app. C.3): one utility, partial credit for predicting a related class.

    It is the expected similarity to the outcome, u(p, e_j) = Σ_i p_i S_ij.

    Args:
        matrix: S, [C, C], in [-1, 1] with S_ii = 1, such as cosine similarities of class names.
    """

    def __init__(self, matrix: Any) -> None:
        self.matrix = parameter_matrix(matrix, "similarity matrix")
        if self.matrix.shape[0] != self.matrix.shape[1]:
            raise InputError(f"similarity matrix: not square, shape {list(self.matrix.shape)}")

    def count(self, classes: int) -> int:
        check_classes("similarity matrix", len(self.matrix), classes)
        return 1

    def outcome_utilities(self, forecast: Forecast, index: int) -> Tensor:
        self.count(forecast.classes)
        return forecast.probabilities @ self.matrix.to(forecast.probabilities.device)

    def spread(self, block: Block) -> Tensor:
        """Return the range of S, because u is a mean of its entries."""
        return (self.matrix.max() - self.matrix.min()).to(block.predicted.device)[None]
