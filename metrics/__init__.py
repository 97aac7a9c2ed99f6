"""Calibration metrics for probabilistic classifiers, measured against utilities instead of bins.

This is a map in the order of the paper; `metrics.reference` has its definitions in plain NumPy:

* scores: `accuracy`, `brier_score`, `negative_log_likelihood`
* binned errors (eq. 2.1, 2.2): `binned_top_class_error`, `binned_class_wise_error`
* utility calibration of one utility (eq. 3.2): `utility_calibration`, `worst_interval`
* utility classes (Examples 3.4 - 3.7, appendix): `TopClass`, `ClassWise`, `TopK`, `Rank`, `Linear`,
  `DiscountedCumulativeGain`, `Similarity`, `Decision`, `GainMatrix`, and `FunctionUtility` for a
  utility of your own; each has `.calibration_errors(probabilities, labels)`
* distribution over a class (sec. 4): `ecdf`, `dkw_band`
* decisions by a forecast (Example 3.7): `decisions`, `constant_losses`, `net_benefit`
* errors made by chance alone, and bounds on the true error: `noise_floor`, `calibration_interval`
* all of these at once: `scorecard`, with `Options` and `Noise`
* every metric by its key: `METRICS`; `register` adds a metric of your own

NumPy arrays and torch tensors on any device are accepted; the result is of the same kind. Bad input
raises `InputError`, a ValueError whose message is one line.

A name is imported when it is first used, because torch and numba take seconds to import.
"""

import ast
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from metrics.binned import binned_class_wise_error as binned_class_wise_error
    from metrics.binned import binned_top_class_error as binned_top_class_error
    from metrics.certificate import CalibrationInterval as CalibrationInterval
    from metrics.certificate import calibration_interval as calibration_interval
    from metrics.decisions import constant_losses as constant_losses
    from metrics.decisions import decisions as decisions
    from metrics.decisions import net_benefit as net_benefit
    from metrics.errors import InputError as InputError
    from metrics.measurement import Noise as Noise
    from metrics.measurement import Options as Options
    from metrics.registry import METRICS as METRICS
    from metrics.registry import Metric as Metric
    from metrics.registry import register as register
    from metrics.registry import utility_metric as utility_metric
    from metrics.resampling import NoiseFloor as NoiseFloor
    from metrics.resampling import noise_floor as noise_floor
    from metrics.scorecard import Scorecard as Scorecard
    from metrics.scorecard import scorecard as scorecard
    from metrics.scores import accuracy as accuracy
    from metrics.scores import brier_score as brier_score
    from metrics.scores import negative_log_likelihood as negative_log_likelihood
    from metrics.utilities.base import FunctionUtility as FunctionUtility
    from metrics.utilities.base import UtilityClass as UtilityClass
    from metrics.utilities.gain_matrix import GainMatrix as GainMatrix
    from metrics.utilities.payoffs import ClassWise as ClassWise
    from metrics.utilities.payoffs import Decision as Decision
    from metrics.utilities.payoffs import DiscountedCumulativeGain as DiscountedCumulativeGain
    from metrics.utilities.payoffs import Linear as Linear
    from metrics.utilities.payoffs import Rank as Rank
    from metrics.utilities.payoffs import Similarity as Similarity
    from metrics.utilities.payoffs import TopClass as TopClass
    from metrics.utilities.payoffs import TopK as TopK
    from metrics.utility_calibration import WorstInterval as WorstInterval
    from metrics.utility_calibration import dkw_band as dkw_band
    from metrics.utility_calibration import ecdf as ecdf
    from metrics.utility_calibration import utility_calibration as utility_calibration
    from metrics.utility_calibration import worst_interval as worst_interval


def _modules() -> dict[str, str]:
    """Return the module of each public name, as the imports above say it to type checkers."""
    tree = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {name.asname: str(i.module) for i in imports for name in i.names if name.asname}


WHERE = _modules()
__all__ = sorted(WHERE)


def __getattr__(name: str) -> object:
    if name not in WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(WHERE[name]), name)


def __dir__() -> list[str]:
    return __all__


class _Package(ModuleType):
    """Keeps `metrics.scorecard` the function: importing the file of that name would replace it."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in WHERE and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
