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
"""

from metrics.binned import binned_class_wise_error, binned_top_class_error
from metrics.certificate import CalibrationInterval, calibration_interval
from metrics.decisions import constant_losses, decisions, net_benefit
from metrics.ecdf import dkw_band, ecdf
from metrics.measurement import Noise, Options
from metrics.registry import METRICS, Metric, register, utility_metric
from metrics.resampling import NoiseFloor, noise_floor
from metrics.scorecard import Scorecard, scorecard
from metrics.scores import accuracy, brier_score, negative_log_likelihood
from metrics.utilities.base import FunctionUtility, UtilityClass
from metrics.utilities.gain_matrix import GainMatrix
from metrics.utilities.payoffs import (
    ClassWise,
    DiscountedCumulativeGain,
    Linear,
    Rank,
    TopClass,
    TopK,
)
from metrics.utilities.tables import Decision, Similarity
from metrics.utility_calibration import WorstInterval, utility_calibration, worst_interval
from metrics.validation import InputError

__all__ = [
    "METRICS",
    "CalibrationInterval",
    "ClassWise",
    "Decision",
    "DiscountedCumulativeGain",
    "FunctionUtility",
    "GainMatrix",
    "InputError",
    "Linear",
    "Metric",
    "Noise",
    "NoiseFloor",
    "Options",
    "Rank",
    "Scorecard",
    "Similarity",
    "TopClass",
    "TopK",
    "UtilityClass",
    "WorstInterval",
    "accuracy",
    "binned_class_wise_error",
    "binned_top_class_error",
    "brier_score",
    "calibration_interval",
    "constant_losses",
    "decisions",
    "dkw_band",
    "ecdf",
    "negative_log_likelihood",
    "net_benefit",
    "noise_floor",
    "register",
    "scorecard",
    "utility_calibration",
    "utility_metric",
    "worst_interval",
]
