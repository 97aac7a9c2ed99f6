"""The losses of decisions based on a forecast, and whether the forecast predicts these losses.

A decision maker with losses l(y, a) takes the action δ(p) = argmin_a Σ_j p_j l(j, a), the first one
on ties (Example 3.7). `Decision` is the utility -l(y, δ(p)), and its UC is the calibration error of
the chosen action's utility.

* `decisions`: the expected and the realized loss of the chosen action. Under decision calibration
  their mean difference over the points of each action is zero (Zhao, Kim, Sahoo, Ma & Ermon,
  "Calibrating Predictions to Decisions", NeurIPS 2021, def. 2).
* `constant_losses`: the mean loss of always taking the same action. A useful forecast must have a
  smaller loss (the "default strategies" of Pauker & Kassirer, N. Engl. J. Med. 1980).
* `net_benefit`: the decision curve of a binary event (Vickers & Elkin, "Decision Curve Analysis",
  Med. Decis. Making 2006).
"""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .arrays import Array, OtherArray, as_array, like
from .class_order import column_numbers
from .kernels.threads import product
from .layout import check_same_order
from .utilities.base import check_classes, parameter_matrix
from .validation import (
    InputError,
    check_labels,
    check_numbers,
    check_probabilities,
    check_weights,
)

AnyArray = TypeVar("AnyArray")
"""NumPy's arrays, or those of another library."""


class Decisions(NamedTuple, Generic[AnyArray]):
    """The chosen action of each point, int64 [n], its expected and its realized loss, [n] each."""

    actions: AnyArray
    expected: AnyArray
    realized: AnyArray

    def gaps(self, count: int, sample_weight: ArrayLike | None = None) -> AnyArray:
        """Return mean((realized - expected) 1{action = a}) for each of `count` actions: [count]."""
        gaps = as_array(self.realized) - as_array(self.expected)
        shares = _shares(sample_weight, len(gaps))
        sums = np.bincount(as_array(self.actions), shares * gaps, minlength=count)
        means: Any = like(sums, self.realized)
        return means


@overload
def decisions(
    losses: ArrayLike,
    probabilities: OtherArray,
    labels: ArrayLike | OtherArray,
    *,
    rows_sum_to_one: bool = True,
) -> Decisions[OtherArray]: ...
@overload
def decisions(
    losses: ArrayLike, probabilities: ArrayLike, labels: ArrayLike, *, rows_sum_to_one: bool = True
) -> Decisions[NDArray[Any]]: ...
def decisions(
    losses: ArrayLike, probabilities: Any, labels: Any, *, rows_sum_to_one: bool = True
) -> Any:
    """Return the actions of a decision maker who believes the forecast, and their losses.

    The results are of the kind of `probabilities`, losses in the unit of `losses`.

    >>> losses = [[0, 1], [10, 1]]  # a missed alarm costs 10, an alarm 1
    >>> decisions(losses, probabilities=[[0.95, 0.05], [0.75, 0.25]], labels=[0, 0])
    Decisions(actions=array([0, 1]), expected=array([0.5, 1. ]), realized=array([0., 1.]))

    Args:
        losses: [C, K], the loss of action a under outcome y.
        probabilities, labels: [n, C] and [n].
        rows_sum_to_one: False admits rows with other sums, as isotonic regression may give them.
    """
    shapes = [len(getattr(given, "shape", ())) for given in (probabilities, labels)]
    if shapes == [1, 2]:  # labels, then losses, as metrics take their arguments
        told = "the losses come first, then probabilities [n, C] and labels [n]"
        raise InputError(told, field="decisions", fixes="decisions(losses, probabilities, labels)")
    p = check_probabilities(probabilities, rows_sum_to_one=rows_sum_to_one)
    table = parameter_matrix(losses, "losses")
    check_classes("losses", len(table), p.shape[1])
    check_same_order({"probabilities": probabilities, "labels": labels})
    y = column_numbers(labels, probabilities, p.shape)
    expected = product(p, table)
    actions = expected.argmin(axis=1)
    chosen = np.take_along_axis(expected, actions[:, None], axis=1)[:, 0]
    return Decisions(*(like(x, probabilities) for x in (actions, chosen, table[y, actions])))


@overload
def constant_losses(
    losses: ArrayLike, labels: OtherArray, sample_weight: ArrayLike | OtherArray | None = None
) -> OtherArray: ...
@overload
def constant_losses(
    losses: ArrayLike, labels: ArrayLike, sample_weight: ArrayLike | None = None
) -> NDArray[np.float64]: ...
def constant_losses(losses: ArrayLike, labels: Any, sample_weight: Any = None) -> Any:
    """Return for each action its mean loss if taken at all points: [K], of the kind of `labels`."""
    check_same_order({"labels": labels, "sample_weight": sample_weight})
    table = parameter_matrix(losses, "losses")
    y = check_labels(labels, check_numbers(labels, "labels").size, len(table))
    shares = _shares(sample_weight, len(y))
    return like(product(shares[None], table[y])[0], labels)


def _shares(sample_weight: ArrayLike | None, n: int) -> Array:
    """Return the shares of the points in a mean: [n], with sum one."""
    weights = np.ones(n) if sample_weight is None else check_weights(sample_weight, n)
    return weights.astype(np.float64, copy=False) / weights.sum()


@overload
def net_benefit(
    probability: OtherArray,
    event: ArrayLike | OtherArray,
    thresholds: ArrayLike,
    sample_weight: ArrayLike | OtherArray | None = None,
) -> OtherArray: ...
@overload
def net_benefit(
    probability: ArrayLike,
    event: ArrayLike,
    thresholds: ArrayLike,
    sample_weight: ArrayLike | None = None,
) -> NDArray[np.float64]: ...
def net_benefit(
    probability: Any, event: Any, thresholds: ArrayLike, sample_weight: Any = None
) -> Any:
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
    check_same_order({"probability": probability, "event": event, "sample_weight": sample_weight})
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
    return like(hits - t / (1 - t) * false_alarms, probability)


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
