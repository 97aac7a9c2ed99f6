"""What calibrators take: logits. Probabilities become logits here, in one place."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from metrics.kinds import as_tensor, like

SMALLEST_PROBABILITY = 1e-12
"""Smaller probabilities, zero among them, count as this much: a logarithm has to be finite."""


def from_probabilities(probabilities: Any) -> Any:
    """Return logits [n, C] whose softmax is `probabilities` [n, C]: log max(p, 1e-12).

    NumPy or torch in, float64 of the same kind out.
    """
    p: Tensor = as_tensor(probabilities).double()
    return like(p.clamp(min=SMALLEST_PROBABILITY).log(), probabilities)
