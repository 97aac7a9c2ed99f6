"""Calibrators: logits and labels in, probabilities out. One file or folder per method.

A calibrator is imported when it is first used, because all of them need scikit-learn, which takes
longer to import than torch.
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calibrators.base import Calibrator as Calibrator
    from calibrators.calibrated_model import CalibratedModel as CalibratedModel
    from calibrators.dirichlet.calibrator import DirichletCalibration as DirichletCalibration
    from calibrators.inputs import from_probabilities as from_probabilities
    from calibrators.isotonic import IsotonicCalibration as IsotonicCalibration
    from calibrators.patching.calibrator import UtilityPatching as UtilityPatching
    from calibrators.patching.logit_shift import LogitShiftPatching as LogitShiftPatching
    from calibrators.peers import PeerCalibration as PeerCalibration
    from calibrators.structured import StructuredMatrixScaling as StructuredMatrixScaling
    from calibrators.structured import StructuredVectorScaling as StructuredVectorScaling
    from calibrators.temperature import TemperatureScaling as TemperatureScaling
    from calibrators.uncalibrated import Uncalibrated as Uncalibrated
    from calibrators.vector import VectorScaling as VectorScaling


def _modules() -> dict[str, str]:
    """Return the module of each public name, as the imports above say it to type checkers."""
    tree = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {name.asname: str(i.module) for i in imports for name in i.names if name.asname}


WHERE = _modules()
__all__ = list(WHERE)


def __getattr__(name: str) -> object:
    if name not in WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(WHERE[name]), name)


def __dir__() -> list[str]:
    return __all__
