"""Calibrators: logits and labels in, probabilities out. One file or folder per method.

* temperature scaling, vector scaling: `TemperatureScaling`, `VectorScaling`
* matrix scaling, Dirichlet calibration, beta calibration: `DirichletCalibration`
* structured matrix and vector scaling: `StructuredMatrixScaling`, `StructuredVectorScaling`
* isotonic regression: `IsotonicCalibration`
* patching (Algorithm 1 of the paper), and ours by shifts of logits: `UtilityPatching`,
  `LogitShiftPatching`, and the pool of maps at which the latter starts: `PooledScaling`
* a calibrator of another package: `Wrapped`; none: `Uncalibrated`
* a classifier with its calibrator, for scikit-learn: `CalibratedModel`
* probabilities as inputs: `from_probabilities`; what remains to be gained: `recalibration_gain`
* other shares of the classes: `reweight`, `estimate_prior`

A calibrator is imported when it is first used: some need compiled loops or scikit-learn, which take
long to import.
"""

from utility_calibration.imports import on_first_use

if __name__ != "utility_calibration.calibrators":
    raise ImportError("calibrators: its name is utility_calibration.calibrators", name=__name__)

__getattr__, __dir__, __all__ = on_first_use(__name__, __file__)
