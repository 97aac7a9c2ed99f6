"""Calibrators: logits and labels in, probabilities out. One file or folder per method.

A calibrator is imported when it is first used, because scikit-learn, on which all are built, takes
longer to import than torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calibrators.base import Calibrator, Uncalibrated
    from calibrators.calibrated_model import CalibratedModel
    from calibrators.dirichlet.calibrator import DirichletCalibration
    from calibrators.inputs import from_probabilities
    from calibrators.isotonic import IsotonicCalibration
    from calibrators.patching.calibrator import UtilityPatching
    from calibrators.patching.logit_shift import LogitShiftPatching
    from calibrators.structured import StructuredMatrixScaling
    from calibrators.temperature import TemperatureScaling
    from calibrators.vector import VectorScaling

__all__ = [
    "CalibratedModel",
    "Calibrator",
    "DirichletCalibration",
    "IsotonicCalibration",
    "LogitShiftPatching",
    "StructuredMatrixScaling",
    "TemperatureScaling",
    "Uncalibrated",
    "UtilityPatching",
    "VectorScaling",
    "from_probabilities",
]

WHERE = {
    "Calibrator": "base",
    "CalibratedModel": "calibrated_model",
    "DirichletCalibration": "dirichlet.calibrator",
    "IsotonicCalibration": "isotonic",
    "LogitShiftPatching": "patching.logit_shift",
    "StructuredMatrixScaling": "structured",
    "TemperatureScaling": "temperature",
    "Uncalibrated": "base",
    "UtilityPatching": "patching.calibrator",
    "VectorScaling": "vector",
    "from_probabilities": "inputs",
}


def __getattr__(name: str) -> object:
    if name not in WHERE:
        raise AttributeError(f"module 'calibrators' has no attribute {name!r}")
    return getattr(import_module(f"calibrators.{WHERE[name]}"), name)


def __dir__() -> list[str]:
    return __all__
