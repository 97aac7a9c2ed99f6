"""Calibration metrics for probabilistic classifiers, measured against utilities instead of bins.

This is a map in the order of the paper; `metrics/reference.py` has its definitions in plain NumPy:

* scores: `accuracy`, `brier_score`, `negative_log_likelihood`
* binned errors (eq. 2.1, 2.2), that is ECE and classwise ECE: `binned_top_class_error`,
  `binned_class_wise_error`; reliability diagrams: `plots.UtilityDisplay`
* utility calibration of one utility (eq. 3.2): `utility_calibration`, `worst_interval`
* utility classes (Examples 3.4 - 3.7, appendix): `TopClass`, `ClassWise`, `TopK`, `Rank`, `Linear`,
  `DiscountedCumulativeGain`, `Similarity`, `Decision`, `GainMatrix`, and `FunctionUtility` for a
  utility of your own; each has `.calibration_errors(probabilities, labels)`
* distribution over a class (sec. 4): `ecdf`, `dkw_band`
* decisions by a forecast (Example 3.7): `decisions`, `constant_losses`, `net_benefit`
* errors made by chance alone, and bounds on the true error: `noise_floor`, `calibration_interval`
* any number of points in one pass: `StreamingCalibration`
* all of these at once: `scorecard`, with `Options`
* what another threshold would gain, and an error that the truth minimises: `acting_gain`,
  `two_bin_error`
* for scikit-learn's model selection: `calibration_scorer`
* every metric by its key: `METRICS`; `register` adds a metric of your own

Arrays of NumPy, torch, JAX and CuPy on any device are accepted, and so are lists and the frames of
pandas, polars and arrow. An answer is of the same kind and on the same device; for lists and frames
it is a NumPy array. Bad input raises `InputError`, a ValueError whose message is one line.

A name is imported when it is first used, because numba and SciPy take part of a second to import.
"""

from utility_calibration.imports import on_first_use

if __name__ != "utility_calibration.metrics":
    raise ImportError("metrics: its name is utility_calibration.metrics", name=__name__)

__getattr__, __dir__, __all__ = on_first_use(__name__, __file__)
