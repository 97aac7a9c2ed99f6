"""Losses of actions (Example 3.7): users take the action of least expected loss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Array, OtherArray, like
from ..class_order import class_codes
from ..decision_losses import (
    Decisions,
    acting_threshold,
    actions_of,
    constant_losses,
    decide,
    net_benefit,
)
from ..errors import InputError
from ..forecast import Forecast, Outcomes
from ..keywords import PointOptions, check_keywords
from ..layout import points_of
from ..scores import checked
from ..validation import check_probabilities, check_weights
from .base import UtilityClass
from .blocks import Block
from .parameters import check_classes, parameter_matrix


class Decision(UtilityClass):
    """U_dec,K (Example 3.7): users take the action of least expected loss, the first one on ties.

    u(p, y) = -l(y, δ(p)) with δ(p) = argmin_a E_{ŷ~p} l(ŷ, a).

    >>> alarm = Decision([[0, 1], [10, 1]], actions=["wait", "alarm"])  # a miss costs 10
    >>> p, labels = [[0.95, 0.05], [0.75, 0.25]], [0, 0]
    >>> alarm.decide(p), alarm.mean_loss(p, labels)
    (array([0, 1]), 0.5)

    Args:
        losses: [m, C, K] (or [C, K]), the loss of each action under each outcome.
        actions: [K], what a report calls each action.

    Methods about single decisions take the number of the table of losses as `index`, which may be
    left out if there is one table.

    Raises:
        InputError: losses of another shape, not finite, or another number of actions.
    """

    actions: Sequence[str] = ()
    """What a report calls each action."""

    def __init__(self, losses: ArrayLike, actions: Sequence[str] = ()) -> None:
        self.losses = parameter_matrix(losses, "losses", ndim=3)
        if len(actions):
            self.actions = list(actions)
        if len(actions) not in (0, self.losses.shape[2]):
            message = f"{len(actions)} names of {self.losses.shape[2]} actions"
            raise InputError(message, field="actions", fixes="give one per column of the losses")

    @overload
    def decide(self, probabilities: OtherArray, *, index: int | None = None) -> OtherArray: ...
    @overload
    def decide(
        self, probabilities: ArrayLike, *, index: int | None = None
    ) -> NDArray[np.int64]: ...
    def decide(self, probabilities: Any, *, index: int | None = None) -> Any:
        """Return the number of each point's action: int64 [n], of the kind of `probabilities`.

        Args:
            probabilities: [n, C].
            index: number of the table of losses.
        """
        p, table = check_probabilities(probabilities), self._table(index)
        check_classes("losses", len(table), p.shape[1])
        return like(actions_of(p, table)[0], probabilities)

    def mean_loss(
        self,
        probabilities: ArrayLike,
        labels: ArrayLike,
        *,
        index: int | None = None,
        **options: Unpack[PointOptions],
    ) -> float:
        """Return the mean loss of the actions that the forecast proposes, in the losses' unit.

        A useful forecast has a smaller one than every entry of `constant_losses`.

        Args:
            probabilities, labels: as in `accuracy`, with the same errors.
            **options: as in `accuracy`.
            index: number of the table of losses.
        """
        decisions, weights = self._decided(probabilities, labels, index, options)
        return decisions.mean_loss(weights)

    def gaps(
        self,
        probabilities: ArrayLike,
        labels: ArrayLike,
        *,
        index: int | None = None,
        **options: Unpack[PointOptions],
    ) -> NDArray[np.float64]:
        """Return for each action the mean of its realized minus its expected losses: [K].

        The mean is over all points, with 0 where another action was taken. All are zero under
        decision calibration (Zhao et al. 2021, def. 2).

        Args:
            probabilities, labels: as in `accuracy`, with the same errors.
            **options: as in `accuracy`.
            index: number of the table of losses.
        """
        decisions, weights = self._decided(probabilities, labels, index, options)
        return decisions.gaps(self.losses.shape[2], weights)

    def constant_losses(
        self,
        labels: ArrayLike,
        *,
        index: int | None = None,
        **options: Unpack[PointOptions],
    ) -> NDArray[np.float64]:
        """Return for each action its mean loss if it is taken at all points: [K].

        Args:
            labels: [n], as in `accuracy`.
            **options: as in `accuracy`.
            index: number of the table of losses.
        """
        check_keywords(options, PointOptions)
        table, ignored = self._table(index), options.get("ignore_index")
        weights = options.get("sample_weight")
        nothing = np.broadcast_to(0.0, (*np.shape(labels), len(table)))  # scores, which none reads
        _, labels, weights = points_of(nothing, labels, ignored, sample_weight=weights)
        n = int(np.shape(labels)[0])
        y = class_codes(labels, None, (n, len(table)), options.get("classes"))
        weights = None if weights is None else check_weights(weights, len(y))
        return constant_losses(y, table, weights)

    def net_benefit(
        self,
        probabilities: ArrayLike,
        labels: ArrayLike,
        *,
        thresholds: ArrayLike | None = None,
        event: int = 1,
        **options: Unpack[PointOptions],
    ) -> NDArray[np.float64]:
        """Return the net benefit of acting where p(event) >= t, for each threshold t: [T].

        >>> alarm = Decision([[0, 1], [10, 1]])  # it acts from p = 0.1 on
        >>> alarm.net_benefit([[0.95, 0.05], [0.75, 0.25]], labels=[0, 1]).round(3)
        array([0.5])

        TP/n - t/(1 - t) FP/n (Vickers & Elkin 2006): the unit is shares of points, and 0.05 is
        worth 5 hits in 100 points without a false alarm. Never acting has net benefit 0.

        Args:
            probabilities, labels: as in `accuracy`, with the same errors.
            **options: as in `accuracy`.
            thresholds: [T], in (0, 1); if not given, the probability of class 1 at which the action
                of these losses changes, which needs two classes and two actions.
            event: the number of the class on whose probability one acts.

        Raises:
            InputError: also if no threshold is given and the losses have none.
        """
        forecast, outcomes = checked(probabilities, labels, **options)
        if not 0 <= event < forecast.classes:
            message = f"{event}, expected a class from 0 to {forecast.classes - 1}"
            raise InputError(message, field="event")
        if thresholds is None:
            threshold = acting_threshold(self._table(None))
            if threshold is None:
                message = "these losses have the same best action at every probability"
                raise InputError(message, field="thresholds", fixes="give thresholds=[…]")
            thresholds = [threshold]
        p, happened = forecast.probabilities[:, event].clip(0, 1), outcomes.labels[0] == event
        weights = None if outcomes.weights is None else outcomes.weights[0]
        return net_benefit(p, happened, thresholds, weights)

    def _table(self, index: int | None) -> Array:
        """Return the losses [C, K] of one table."""
        count = len(self.losses)
        if index is None and count > 1:
            message = f"there are {count} tables of losses"
            raise InputError(message, field="index", fixes=f"give one from 0 to {count - 1}")
        return self.losses[index or 0]

    def _decided(
        self, probabilities: ArrayLike, labels: ArrayLike, index: int | None, options: PointOptions
    ) -> tuple[Decisions, Array | None]:
        return decide(probabilities, labels, self._table(index), **options)

    def count(self, classes: int) -> int:
        check_classes("losses", self.losses.shape[1], classes)
        return self.losses.shape[0]

    def bounds(self, classes: int) -> Array:
        self.count(classes)
        return np.stack([-self.losses.max(axis=(1, 2)), -self.losses.min(axis=(1, 2))], axis=1)

    def _act(self, forecast: Forecast, index: int) -> tuple[Array, Array, Array]:
        """Return the loss [C, K], the chosen action's expected loss [n] and the action [n]."""
        self.count(forecast.classes)
        action, expected = actions_of(forecast.probabilities, self.losses[index])
        return self.losses[index], expected, action

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
            codes = outcomes.labels.astype(np.int64, copy=False) * actions + action
            yield Block(-expected[None], -loss.reshape(1, -1), codes)
