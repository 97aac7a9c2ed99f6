"""Accuracy and the two proper scores: Brier and negative log-likelihood."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Array
from .class_order import class_codes
from .forecast import Forecast, Outcomes
from .kernels.threads import row_blocks
from .keywords import PointOptions, check_keywords
from .layout import points_of
from .shown import LIKELIHOOD_FLOOR
from .validation import check_weights, checked_probabilities
from .weights import counted


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


def tied_points(forecast: Forecast) -> int:
    """Return the number of points whose largest probability several classes have."""
    p, largest = forecast.probabilities, forecast.top[0]
    count = 0
    for start, stop in row_blocks(*p.shape):
        is_largest = p[start:stop] == largest[start:stop, None]
        if np.count_nonzero(is_largest) > stop - start:  # seldom, and faster than counts by row
            count += int((np.count_nonzero(is_largest, axis=1) > 1).sum())
    return count


def checked(
    probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    rows_sum_to_one: bool = True,
    **options: Unpack[PointOptions],
) -> tuple[Forecast, Outcomes]:
    """Return forecast and outcomes of a user's arrays; `InputError` if these are wrong.

    Points of weight 0 are left out, and equal weights are none (metrics/weights.py).
    """
    check_keywords(options, PointOptions)
    weights = options.get("sample_weight")
    points = points_of(probabilities, labels, options.get("ignore_index"), sample_weight=weights)
    forecast, labels, weights = checked_points(
        *points, classes=options.get("classes"), rows_sum_to_one=rows_sum_to_one
    )
    if weights is not None:
        rows, weights = counted(weights)
        if rows is not None:
            forecast, labels = Forecast(forecast.probabilities[rows]), labels[rows]
    return forecast, forecast.outcomes(labels, weights)


def checked_points(
    probabilities: Any, labels: Any, weights: Any, *, classes: Any, rows_sum_to_one: bool
) -> tuple[Forecast, Array, Array | None]:
    """Return the forecast, int64 labels [n] and the weights [n] of points (`points_of`)."""
    p, top = checked_probabilities(probabilities, rows_sum_to_one=rows_sum_to_one)
    y = class_codes(labels, probabilities, p.shape, classes)
    weights = None if weights is None else check_weights(weights, len(y))
    return Forecast(p, known_top=top), y, weights


def accuracy(probabilities: ArrayLike, labels: ArrayLike, **options: Unpack[PointOptions]) -> float:
    """Return the share of points whose most probable class is the label, in [0, 1] (section 4).

    Of equally probable classes, the first in the order of the columns counts as the most probable.

    >>> accuracy([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]], labels=[0, 1, 1, 0])
    0.75

    Args:
        probabilities: [n, C], rows that sum to one; array, frame or list (metrics/arrays.py).
        labels: [n] class numbers in [0, C). Labels [B, …] go with probabilities [B, …, C] or
            [B, C, …] (metrics/layout.py).
        **options: those of `PointOptions`: `sample_weight` [n], >= 0, where a weight of 3 counts as
            the point three times; `classes` [C], the names of the columns in their order, if labels
            are names and the columns of a data frame do not say so; `ignore_index`, a label whose
            points are left out, such as -100 for padded tokens.

    Raises:
        InputError: rows that are no probabilities, labels out of range, lengths that differ,
            negative weights.
    """
    _, outcomes = checked(probabilities, labels, **options)
    return float(accuracies(outcomes)[0])


def brier_score(
    probabilities: ArrayLike, labels: ArrayLike, **options: Unpack[PointOptions]
) -> float:
    """Return the mean over points of Σ_c (p_c - y_c)², in [0, 2] (Brier 1950).

    >>> round(brier_score([[0.9, 0.1], [0.8, 0.2]], labels=[0, 1]), 4)
    0.65

    Args:
        probabilities, labels: [n, C] and [n], as in `accuracy`, with the same errors.
        **options: as in `accuracy`.
    """
    return float(brier_scores(*checked(probabilities, labels, **options))[0])


def negative_log_likelihood(
    probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    floor: float = LIKELIHOOD_FLOOR,
    **options: Unpack[PointOptions],
) -> float:
    """Return the mean over points of -log max(p_y, floor), in nats (section 4).

    >>> round(negative_log_likelihood([[0.5, 0.5], [0.25, 0.75]], labels=[0, 1]), 4)
    0.4904

    Args:
        probabilities, labels: [n, C] and [n], as in `accuracy`, with the same errors.
        **options: as in `accuracy`.
        floor: smaller probabilities are raised to it, so that a zero costs 27.6 nats.
    """
    return float(log_losses(*checked(probabilities, labels, **options), floor)[0])
