"""What calibrators take: logits. Probabilities become logits here, in one place."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from metrics.kinds import like
from metrics.scores import LIKELIHOOD_FLOOR
from metrics.validation import check_numbers, check_probabilities


def from_probabilities(probabilities: Any, name: str = "probabilities") -> Any:
    """Return log max(p, 1e-12) of `probabilities` [n, C]: logits whose softmax they are.

    For a model that gives probabilities only: `TemperatureScaling().fit(from_probabilities(p), y)`.
    The floor is the one of the negative log-likelihood (`metrics.scores.LIKELIHOOD_FLOOR`): a zero
    would be minus infinity. A probability of one stands 27.6 above such a zero, and the softmax of
    the result differs from the row by less than C x 1e-12. Rows off one by rounding come back
    renormalised, because the softmax ignores a common factor.

    Args:
        probabilities: [n, C]; for two classes also [n] or [n, 1], the probability of class 1.
        name: what messages call them.

    Returns:
        float64 [n, C], of the same kind and on the same device.

    Raises:
        InputError: values outside [0, 1] or rows that do not sum to one.
    """
    matrix = check_probabilities(both_classes(probabilities, name), name)
    return like(matrix.clamp(min=LIKELIHOOD_FLOOR).log(), probabilities)


def both_classes(probabilities: Any, name: str = "probabilities") -> Tensor:
    """Return [1 - p, p], [n, 2], for `probabilities` [n] or [n, 1]; others as they are."""
    tensor = check_numbers(probabilities, name)
    if tensor.ndim == 2 and tensor.shape[1] == 1:
        tensor = tensor[:, 0]
    if tensor.ndim != 1:
        return tensor
    second = tensor.to(torch.float64)
    return torch.stack([1 - second, second], dim=1)
