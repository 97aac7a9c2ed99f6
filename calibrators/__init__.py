"""Calibrators: logits and labels in, probabilities out. One file per method."""

import metrics  # noqa: F401  (before torch: it says how torch's threads are to wait)
from calibrators.dirichlet.calibrator import DirichletCalibration
from calibrators.isotonic import IsotonicCalibration
from calibrators.patching.calibrator import UtilityPatching
from calibrators.temperature import TemperatureScaling
from calibrators.uncalibrated import Uncalibrated
from calibrators.vector import VectorScaling

__all__ = [
    "DirichletCalibration",
    "IsotonicCalibration",
    "TemperatureScaling",
    "Uncalibrated",
    "UtilityPatching",
    "VectorScaling",
]
