"""Utility calibration of multiclass classifiers: metrics, calibrators and the paper's benchmarks.

    from utility_calibration.calibrators import LogitShiftPatching, from_probabilities
    from utility_calibration.metrics import TopK, scorecard

The packages of this one are folders at the top of the repository. Here are links to them, so that
a module has the same name in a clone and where the wheel is installed.
"""

import time
from pathlib import Path

try:
    import lazy_loader
except ModuleNotFoundError as error:
    message = "this Python lacks the project's packages; run 'make setup' once, then "
    message += "'source .venv/bin/activate'"
    raise ImportError(message, name=__name__) from error

__version__ = "0.4.0"
BEGAN = time.monotonic()
"""When this process began, within some hundredths of a second: NumPy is imported later."""

if not (Path(__file__).parent / "metrics").is_dir():
    raise ImportError(
        "utility_calibration/metrics is not a link to a folder: this clone lies on a file system "
        "without symbolic links; clone elsewhere, or install the wheel"
    )

PACKAGES = ["metrics", "calibrators", "pipeline", "scripts"]
__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, PACKAGES)
