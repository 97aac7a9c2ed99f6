"""Calibrators: logits and labels in, probabilities out. One file per method."""

from calibrators.dirichlet import DirichletCalibration
from calibrators.isotonic import IsotonicCalibration
from calibrators.patching import UtilityPatching
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
