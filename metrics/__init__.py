"""Calibration metrics for probabilistic classifiers, measured against utilities instead of bins.

This is a map in the order of the paper; `metrics/reference.py` has its definitions in plain NumPy:

* scores: `accuracy`, `brier_score`, `negative_log_likelihood`
* binned errors (eq. 2.1, 2.2), that is ECE and classwise ECE: `binned_top_class_error`,
  `binned_class_wise_error`; reliability diagrams: `plots.UtilityDisplay`
* utility calibration of one utility (eq. 3.2): `utility_calibration`, `worst_interval`
* utility classes (Examples 3.4 - 3.7, appendix): `TopClass`, `ClassWise`, `TopK`, `Rank`, `Linear`,
  `DiscountedCumulativeGain`, `Similarity`, `Decision`, `GainMatrix`, and `FunctionUtility` for a
  utility of your own
* of each class `.calibration_errors(probabilities, labels)`, the bare numbers, and
  `.evaluate(probabilities, labels)`: the largest error, where it is, what chance alone makes,
  bounds on the true error, and what a user gains by another threshold (metrics/result.py)
* decisions by a forecast (Example 3.7): `Decision.decide`, `.mean_loss`, `.net_benefit`
* an error that the truth minimises: `two_bin_error`
* all of these at once: `scorecard`, a `Scorecard`; any number of points in one pass:
  `StreamingCalibration`
* for scikit-learn's model selection: `calibration_scorer`
* every metric by its key: `METRICS`; `register` adds a utility of your own

The probabilities come first and the labels second; all else goes by its name. Every function takes
`sample_weight`, `classes` and `ignore_index` (metrics/keywords.py).

Arrays of NumPy, torch, JAX and CuPy on any device are accepted, and so are lists and the frames of
pandas, polars and arrow. An answer is of the same kind and on the same device; for lists and frames
it is a NumPy array. Bad input raises `InputError`, a ValueError whose message is one line.

A name is imported when it is first used, because numba and SciPy take part of a second to import.
"""

from utility_calibration.imports import on_first_use

if __name__ != "utility_calibration.metrics":
    raise ImportError("metrics: its name is utility_calibration.metrics", name=__name__)

__getattr__, __dir__, __all__ = on_first_use(__name__, __file__)
