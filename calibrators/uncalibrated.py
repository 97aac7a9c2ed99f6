"""The classifier's own probabilities: softmax of its logits."""

from __future__ import annotations

import torch
from torch import Tensor

from calibrators.base import Calibrator
from calibrators.inputs import Inputs
from calibrators.modules import ScaledSoftmax, constant
from metrics.kernels.softmax import softmax


class Uncalibrated(Calibrator):
    """Leave the classifier as it is: softmax of the logits, in float64. Nothing is learned."""

    takes_weights = True

    def __init__(self, inputs: Inputs = "logits") -> None:
        self.inputs = inputs

    def _fit(self, logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> None:
        pass

    def _predict_proba(self, logits: Tensor) -> Tensor:
        return softmax(logits)

    def _to_module(self, dtype: torch.dtype) -> ScaledSoftmax:
        return ScaledSoftmax(constant(1.0, dtype), constant(0.0, dtype))
