"""The losses of decisions based on a forecast, and whether the forecast predicts these losses.

A decision maker with losses l(y, a) takes the action δ(p) = argmin_a Σ_j p_j l(j, a), the first one
on ties (Example 3.7). `Decision` is the utility -l(y, δ(p)), and its UC is the calibration error of
the chosen action's utility.

* `decide`: the expected and the realized loss of the chosen action. Under decision calibration
  their mean difference over the points of each action is zero (Zhao, Kim, Sahoo, Ma & Ermon,
  "Calibrating Predictions to Decisions", NeurIPS 2021, def. 2).
* `constant_losses`: the mean loss of always taking the same action. A useful forecast must have a
  smaller loss (the "default strategies" of Pauker & Kassirer, N. Engl. J. Med. 1980).
* `net_benefit`: the decision curve of a binary event (Vickers & Elkin, "Decision Curve Analysis",
  Med. Decis. Making 2006).
"""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Array
from .errors import InputError
from .kernels.threads import product
from .keywords import PointOptions
from .scores import checked
from .utilities.parameters import check_classes, parameter_matrix
from .validation import check_labels, check_numbers, check_weights


class Decisions(NamedTuple):
    """The chosen action of each point, int64 [n], its expected and its realized loss, [n] each."""

    actions: Array
    expected: Array
    realized: Array

    def mean_loss(self, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean of the realized losses."""
        return float((_shares(sample_weight, len(self.realized)) * self.realized).sum())

    def gaps(self, count: int, sample_weight: ArrayLike | None = None) -> Array:
        """Return mean((realized - expected) 1{action = a}) for each of `count` actions: [count]."""
        gaps = self.realized - self.expected
        shares = _shares(sample_weight, len(gaps))
        return np.bincount(self.actions, shares * gaps, minlength=count)


def decide(
    probabilities: Any,
    labels: Any,
    losses: ArrayLike,
    *,
    rows_sum_to_one: bool = True,
    **options: Unpack[PointOptions],
) -> tuple[Decisions, Array | None]:
    """Return the actions of who believes the forecast and their losses, and the points' weights.

    Args:
        probabilities, labels: [n, C] and [n], as in `accuracy`.
        **options: as in `accuracy`.
        losses: [C, K], the loss of action a under outcome y.
        rows_sum_to_one: False admits rows with other sums, as isotonic regression may give them.
    """
    forecast, outcomes = checked(probabilities, labels, rows_sum_to_one=rows_sum_to_one, **options)
    table = parameter_matrix(losses, "losses")
    check_classes("losses", len(table), forecast.classes)
    actions, chosen = actions_of(forecast.probabilities, table)
    realized = table[outcomes.labels[0], actions]
    weights = None if outcomes.weights is None else outcomes.weights[0]
    return Decisions(actions, chosen, realized), weights


def actions_of(p: Array, table: Array) -> tuple[Array, Array]:
    """Return the actions of least expected loss, int64 [n], and these losses, for p [n, C]."""
    expected = product(p, table)
    actions = expected.argmin(axis=1)
    return actions, np.take_along_axis(expected, actions[:, None], axis=1)[:, 0]


def constant_losses(
    labels: ArrayLike, losses: ArrayLike, sample_weight: ArrayLike | None = None
) -> Array:
    """Return for each action its mean loss if taken at all points, [K]; labels int64 [n]."""
    table = parameter_matrix(losses, "losses")
    y = check_labels(labels, check_numbers(labels, "labels").size, len(table))
    return product(_shares(sample_weight, len(y))[None], table[y])[0]


def _shares(sample_weight: ArrayLike | None, n: int) -> Array:
    """Return the shares of the points in a mean: [n], with sum one."""
    weights = np.ones(n) if sample_weight is None else check_weights(sample_weight, n)
    return weights.astype(np.float64, copy=False) / weights.sum()


def net_benefit(
    probability: ArrayLike,
    event: ArrayLike,
    thresholds: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> Array:
    """Return the net benefit of acting where `probability` >= t, for each threshold t: [T].

    Someone who acts if p >= t weighs a false alarm as t/(1 - t) hits, so it is TP/n - t/(1 - t)
    FP/n. The unit is shares of points: 0.05 is worth 5 hits in 100 points without a false alarm.
    Never acting has net benefit 0; always acting is `net_benefit` of probability 1.

    Args:
        probability: [n], the probability of the event.
        event: [n], 1 or True for points where it happened.
        thresholds: [T], in (0, 1).
        sample_weight: [n], >= 0; a weight of 3 counts as the point three times.
    """
    p = check_numbers(probability, "probability").astype(np.float64, copy=False)
    t = check_numbers(thresholds, "thresholds").astype(np.float64, copy=False)
    if p.ndim != 1 or not len(p) or not bool(((p >= 0) & (p <= 1)).all()):
        raise InputError("expected numbers from 0 to 1, [n]", field="probability")
    if t.ndim != 1 or not bool(((t > 0) & (t < 1)).all()):
        raise InputError("expected numbers between 0 and 1, [T]", field="thresholds")
    happened = check_labels(event, len(p), 2, name="event")
    shares = _shares(sample_weight, len(p))
    acts = p >= t[:, None]
    hits = (acts * (shares * (happened == 1))).sum(axis=1)
    false_alarms = (acts * (shares * (happened == 0))).sum(axis=1)
    return hits - t / (1 - t) * false_alarms


def acting_threshold(losses: ArrayLike) -> float | None:
    """Return the p(class 1) at which the action changes; None if it never does.

    For two classes and two actions it is t = harm / (harm + benefit) (Pauker & Kassirer 1980).
    """
    table = parameter_matrix(losses, "losses")
    if table.shape != (2, 2):
        raise InputError(
            f"shape {list(table.shape)}, expected two classes, two actions", field="losses"
        )
    first, second = table[:, 1] - table[:, 0]
    return float(first / (first - second)) if float(first * second) < 0 else None
