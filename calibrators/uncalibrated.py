"""No calibration: the row that every method is compared with."""

from dataclasses import dataclass
from typing import Any

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.kernels.softmax import softmax

from .base import Calibrator


@dataclass(eq=False, repr=False)
class Uncalibrated(Calibrator):
    """Leave the classifier as it is: softmax of the logits, in float64. Nothing is learned.

    >>> logits, labels = [[4.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 0.0]], [0, 0, 1, 1]
    >>> Uncalibrated().fit(logits, labels).predict_proba([[4.0, 0.0]]).round(3)
    array([[0.982, 0.018]])
    """

    takes_weights = True
    needs_little_memory = True
    is_learned = False

    def _fit(self, logits: Array, labels: Array, weights: Array | None = None) -> None:
        pass

    def _predict_proba(self, logits: Array) -> Array:
        return softmax(logits)

    def _to_module(self, dtype: Any) -> Any:
        from .export.affine import AffineSoftmax

        return AffineSoftmax(1.0, 0.0, dtype)
