"""Accuracy and the two proper scores: Brier and negative log-likelihood."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from metrics.forecast import Forecast, Outcomes
from metrics.validation import check_labels, check_probabilities

LIKELIHOOD_FLOOR = 1e-12
"""Probabilities below this count as this in the NLL: isotonic regression gives exact zeros, which
would make one point's loss infinite. A floored point contributes 27.6 nats."""


def accuracies(outcomes: Outcomes) -> Tensor:
    """Return the share of points whose class has rank 0, per draw: [R]."""
    return (outcomes.ranks == 0).to(torch.float64).mean(dim=1)


def _of_outcome(forecast: Forecast, outcomes: Outcomes) -> Tensor:
    return forecast.probabilities.gather(1, outcomes.labels.T).T


def brier_scores(forecast: Forecast, outcomes: Outcomes) -> Tensor:
    """Return the mean over points of Σ_c (p_c - y_c)², per draw: [R], in [0, 2]."""
    squares = forecast.probabilities.square().sum(dim=1)
    return (squares - 2 * _of_outcome(forecast, outcomes) + 1).mean(dim=1)


def log_losses(forecast: Forecast, outcomes: Outcomes, floor: float = LIKELIHOOD_FLOOR) -> Tensor:
    """Return the mean of -log max(p_y, floor), per draw: [R], in nats."""
    return -_of_outcome(forecast, outcomes).clamp(min=floor).log().mean(dim=1)


def _checked(probabilities: Any, labels: Any) -> tuple[Forecast, Outcomes]:
    p = check_probabilities(probabilities)
    forecast = Forecast(p)
    return forecast, forecast.outcomes(check_labels(labels, *p.shape).to(p.device))


def accuracy(probabilities: Any, labels: Any) -> float:
    """Return the share of points whose most probable class (the first on ties) is the label.

    Args:
        probabilities: [n, C], rows that sum to one, NumPy or torch.
        labels: [n] class numbers in [0, C).

    Raises:
        InputError: shapes, ranges or row sums are off.
    """
    _, outcomes = _checked(probabilities, labels)
    return float(accuracies(outcomes)[0])


def brier_score(probabilities: Any, labels: Any) -> float:
    """Return the mean over points of Σ_c (p_c - y_c)², in [0, 2]. Arguments as `accuracy`."""
    return float(brier_scores(*_checked(probabilities, labels))[0])


def negative_log_likelihood(
    probabilities: Any, labels: Any, floor: float = LIKELIHOOD_FLOOR
) -> float:
    """Return the mean of -log max(p_y, floor) in nats. Arguments as `accuracy`."""
    return float(log_losses(*_checked(probabilities, labels), floor)[0])
