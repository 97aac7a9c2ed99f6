"""Accuracy and the two proper scores: Brier and negative log-likelihood."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Array
from .class_order import class_codes
from .forecast import Forecast, Outcomes
from .kernels.threads import row_blocks
from .layout import points_of
from .shown import LIKELIHOOD_FLOOR
from .validation import check_probabilities, check_weights


def accuracies(outcomes: Outcomes) -> Array:
    """Return the share of points whose class has rank 0, per draw: [R]."""
    return outcomes.mean(outcomes.hits.astype(np.float64, copy=False))


def _of_outcome(forecast: Forecast, outcomes: Outcomes) -> Array:
    return np.take_along_axis(forecast.probabilities, outcomes.labels.T, axis=1).T


def brier_scores(forecast: Forecast, outcomes: Outcomes) -> Array:
    """Return the mean over points of Σ_c (p_c - y_c)², per draw: [R], in [0, 2]."""
    p = forecast.probabilities
    squares = np.concatenate([np.square(p[a:b]).sum(axis=1) for a, b in row_blocks(*p.shape)])
    return outcomes.mean(squares - 2 * _of_outcome(forecast, outcomes) + 1)


def log_losses(forecast: Forecast, outcomes: Outcomes, floor: float = LIKELIHOOD_FLOOR) -> Array:
    """Return the mean of -log max(p_y, floor), per draw: [R], in nats."""
    return -outcomes.mean(np.log(np.maximum(_of_outcome(forecast, outcomes), floor)))


def zero_likelihoods(forecast: Forecast, outcomes: Outcomes) -> Array:
    """Return the number of points whose outcome had probability 0, per draw: [R]."""
    return (_of_outcome(forecast, outcomes) == 0).sum(axis=1)


def checked(
    probabilities: ArrayLike,
    labels: ArrayLike,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    rows_sum_to_one: bool = True,
    ignore_index: int | str | None = None,
) -> tuple[Forecast, Outcomes]:
    """Return forecast and outcomes of a user's arrays; `InputError` if these are wrong."""
    given = points_of(probabilities, labels, ignore_index, sample_weight=sample_weight)
    probabilities, labels, sample_weight = given
    p = check_probabilities(probabilities, rows_sum_to_one=rows_sum_to_one)
    y = class_codes(labels, probabilities, p.shape, classes)
    weights = None if sample_weight is None else check_weights(sample_weight, len(y))
    forecast = Forecast(p)
    return forecast, forecast.outcomes(y, weights)


def accuracy(
    probabilities: ArrayLike,
    labels: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    classes: ArrayLike | None = None,
    ignore_index: int | str | None = None,
) -> float:
    """Return the share of points whose most probable class (the first on ties) is the label.

    Args:
        probabilities: [n, C], rows that sum to one; array, frame or list (metrics/arrays.py).
        labels: [n] class numbers in [0, C).
        sample_weight: [n], >= 0; a weight of 3 counts as the point three times.
        classes: [C], names of the columns in their order, if labels are names and the columns
            of a data frame do not say so.
        ignore_index: points of this label are left out, such as -100 for padded tokens.

    Labels [B, …] go with probabilities [B, …, C] or [B, C, …] (metrics/layout.py).
    """
    given = probabilities, labels, sample_weight, classes
    _, outcomes = checked(*given, ignore_index=ignore_index)
    return float(accuracies(outcomes)[0])


def brier_score(
    probabilities: ArrayLike,
    labels: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    classes: ArrayLike | None = None,
    ignore_index: int | str | None = None,
) -> float:
    """Return the mean over points of Σ_c (p_c - y_c)², in [0, 2]. Arguments as `accuracy`."""
    given = probabilities, labels, sample_weight, classes
    return float(brier_scores(*checked(*given, ignore_index=ignore_index))[0])


def negative_log_likelihood(
    probabilities: ArrayLike,
    labels: ArrayLike,
    floor: float = LIKELIHOOD_FLOOR,
    sample_weight: ArrayLike | None = None,
    *,
    classes: ArrayLike | None = None,
    ignore_index: int | str | None = None,
) -> float:
    """Return the mean of -log max(p_y, floor) in nats. Arguments as `accuracy`."""
    given = probabilities, labels, sample_weight, classes
    return float(log_losses(*checked(*given, ignore_index=ignore_index), floor)[0])
