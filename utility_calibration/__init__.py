"""Utility calibration of multiclass classifiers: metrics, calibrators and the paper's benchmarks.

    from utility_calibration.calibrators import LogitShiftPatching, from_probabilities
    from utility_calibration.metrics import TopK, noise_floor

In a wheel, the folders `metrics`, `calibrators`, `pipeline`, `scripts` and `conf` are inside this
package. In a clone they lie beside it, and both names lead to the same modules (clone.py).
"""

from importlib import import_module
from pathlib import Path
from types import ModuleType

__version__ = "0.4.0"

if not (Path(__file__).parent / "metrics").is_dir():
    from utility_calibration import clone

    clone.join()


def __getattr__(name: str) -> ModuleType:
    """Import a folder when it is first used, so that `import utility_calibration` is enough."""
    if name not in ("metrics", "calibrators", "pipeline"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
