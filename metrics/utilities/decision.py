"""Losses of actions (Example 3.7): users take the action of least expected loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array
from ..forecast import Forecast, Outcomes
from ..kernels.threads import product
from .base import Block, UtilityClass, check_classes, parameter_matrix


class Decision(UtilityClass):
    """U_dec,K (Example 3.7): users take the action of least expected loss, the first one on ties.

    u(p, y) = -l(y, δ(p)) with δ(p) = argmin_a E_{ŷ~p} l(ŷ, a).

    Args:
        losses: [m, C, K] (or [C, K]), the loss of each action under each outcome.
    """

    actions: Sequence[str] = ()
    """What a report calls each action."""

    def __init__(self, losses: ArrayLike) -> None:
        self.losses = parameter_matrix(losses, "losses", ndim=3)

    def count(self, classes: int) -> int:
        check_classes("losses", self.losses.shape[1], classes)
        return self.losses.shape[0]

    def bounds(self, classes: int) -> Array:
        self.count(classes)
        return np.stack([-self.losses.max(axis=(1, 2)), -self.losses.min(axis=(1, 2))], axis=1)

    def _act(self, forecast: Forecast, index: int) -> tuple[Array, Array, Array]:
        """Return the loss [C, K], the chosen action's expected loss [n] and the action [n]."""
        self.count(forecast.classes)
        loss = self.losses[index]
        expected = product(forecast.probabilities, loss)
        action = expected.argmin(axis=1)
        return loss, np.take_along_axis(expected, action[:, None], axis=1)[:, 0], action

    def outcome_utilities(self, forecast: Forecast, index: int) -> Array:
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
