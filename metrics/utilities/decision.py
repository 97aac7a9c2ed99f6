"""Losses of actions (Example 3.7): users take the action of least expected loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ..forecast import Forecast, Outcomes
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

    def bounds(self, classes: int) -> Tensor:
        self.count(classes)
        return torch.stack(torch.aminmax(-self.losses.flatten(1), dim=1), dim=1)

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
