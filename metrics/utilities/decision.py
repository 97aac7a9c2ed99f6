"""Decision calibration (Example 3.7): users take the action of least expected loss."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from metrics.forecast import Forecast, Outcomes
from metrics.utilities.base import Block, UtilityClass, parameter_matrix
from metrics.validation import InputError


class Decision(UtilityClass):
    """U_dec,K: u(p, y) = -l(y, δ(p)), δ(p) = argmin_a E_{ŷ~p} l(ŷ, a), the first action on ties.

    Args:
        losses: [m, C, K] (or [C, K]), the loss of each action under each outcome.
    """

    def __init__(self, losses: Any) -> None:
        self.losses = parameter_matrix(losses, "losses", ndim=3)

    def count(self, classes: int) -> int:
        """Return the number of losses; `InputError` if they are for another number of classes."""
        if self.losses.shape[1] != classes:
            raise InputError(
                f"losses: {self.losses.shape[1]} outcomes, the forecast has {classes} classes; "
                "expected shape [m, classes, actions]"
            )
        return self.losses.shape[0]

    def _act(self, forecast: Forecast, index: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return the loss [C, K], the chosen action's expected loss [n] and the action [n]."""
        self.count(forecast.classes)
        loss = self.losses[index].to(forecast.probabilities.device)
        expected = forecast.probabilities @ loss
        action = expected.argmin(dim=1)
        return loss, expected.gather(1, action[:, None])[:, 0], action

    def outcome_utilities(self, forecast: Forecast, index: int) -> Tensor:
        """Return the negative loss of the chosen action under each outcome: [n, C]."""
        loss, _, action = self._act(forecast, index)
        return -loss[:, action].T

    def predicted_and_realized(
        self, forecast: Forecast, outcomes: Outcomes, index: int
    ) -> tuple[Tensor, Tensor]:
        """Return v and u as in `blocks`, so that the same expected losses are tied."""
        loss, expected, action = self._act(forecast, index)
        return -expected, -loss[outcomes.labels[0], action]

    def blocks(self, forecast: Forecast, outcomes: Outcomes) -> Iterator[Block]:
        """Yield one utility at a time; payoffs are the loss table, codes (outcome, action)."""
        actions = self.losses.shape[2]
        for index in range(self.count(forecast.classes)):
            loss, expected, action = self._act(forecast, index)
            codes = outcomes.labels * actions + action
            yield Block(-expected[None], -loss.reshape(1, -1), codes)
