"""Calibrators: logits and labels in, probabilities out. One file or folder per method.

A calibrator is imported when it is first used, because all of them need scikit-learn, which takes
longer to import than torch.
"""

import lazy_loader

if __name__ != "utility_calibration.calibrators":
    raise ImportError("calibrators: its name is utility_calibration.calibrators", name=__name__)

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
