"""No calibration: the row that every method is compared with."""

from dataclasses import dataclass

import torch
from torch import Tensor

from utility_calibration.metrics.kernels.softmax import softmax

from .base import Calibrator
from .modules import AffineSoftmax


@dataclass(eq=False, repr=False)
class Uncalibrated(Calibrator):
    """Leave the classifier as it is: softmax of the logits, in float64. Nothing is learned."""

    takes_weights = True
    needs_little_memory = True
    is_learned = False

    def _fit(self, logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> None:
        pass

    def _predict_proba(self, logits: Tensor) -> Tensor:
        return softmax(logits)

    def _to_module(self, dtype: torch.dtype) -> AffineSoftmax:
        return AffineSoftmax(1.0, 0.0, dtype)
