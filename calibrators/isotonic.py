"""Isotonic regression (Zadrozny and Elkan 2002), one-vs-all or global.

One-vs-all fits, for each class c, the non-decreasing map of p_c that is closest to 1{y = c} in
least squares. Global fits one map to all n · C pairs (p_c, 1{y = c}). scikit-learn makes the maps.
They are linear between the ends of their constant pieces and constant beyond them. It takes
probabilities as equal that differ by less than 1e-15, which rounding may decide near 1; so they are
rounded to multiples of 2^-32 first.
"""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.kernels.grid import on_grid
from utility_calibration.metrics.kernels.softmax import softmax

from .base import Calibrator
from .stored import Learned, Stored


@dataclass(eq=False, repr=False)
class IsotonicCalibration(Calibrator):
    """Isotonic regression of the softmax probabilities (Zadrozny and Elkan 2002).

    >>> logits, labels = [[4.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 0.0]], [0, 0, 1, 1]
    >>> IsotonicCalibration().fit(logits, labels).predict_proba([[4.0, 0.0]]).round(3)
    array([[0.667, 0.333]])

    Args:
        mode: "one_vs_all", a map per class, or "global", one map for all.
        normalize: divide rows by their sum; a row of zeros becomes uniform. If False,
            `predict_proba` returns the mapped values as they are: rows sum to any number (0.3 to
            2.5 on the paper's benchmarks) and may be all zero.
        tie_break: this number >= 0 times the softmax probability is added to each mapped value, so
            that classes of equal value keep their order. The maps' constant pieces make many such
            ties. With 0 they stay ties; the baseline code of the paper adds 1e-9.
        inputs: what X is.

    Attributes:
        thresholds_, values_: float64, the maps' points and values, one map after the other.
        offsets_: int64 [maps + 1], where each map starts; there is one map if global, else C.
    """

    learned: ClassVar[Learned] = {
        "thresholds_": Stored(("K",), low=0.0, high=1.0),
        "values_": Stored(("K",), low=0.0, high=1.0),
        "offsets_": Stored(("maps",), low=0, kinds="i", rises=True),
    }

    takes_weights = True
    takes_zeros = True
    mode: Literal["one_vs_all", "global"] = "one_vs_all"
    normalize: bool = True
    tie_break: float = 0.0

    def _fit(self, logits: Array, labels: Array, weights: Array | None = None) -> None:
        from sklearn import config_context  # it takes long to import
        from sklearn.isotonic import IsotonicRegression

        self._check_options()
        scores = on_grid(softmax(logits))
        n_classes = scores.shape[1]
        hits = (labels[:, None] == np.arange(n_classes)).astype(np.float64)
        if self.mode == "global":
            repeated = None if weights is None else weights.repeat(n_classes)
            data = [(scores.ravel(), hits.ravel(), repeated)]
        else:
            data = [(scores[:, c], hits[:, c], weights) for c in range(n_classes)]
        thresholds, values, offsets = [], [], [0]
        with config_context(assume_finite=True, skip_parameter_validation=True):
            for points in data:
                fitted = IsotonicRegression(out_of_bounds="clip").fit(*points)
                thresholds.append(fitted.X_thresholds_)
                values.append(fitted.y_thresholds_)
                offsets.append(offsets[-1] + len(fitted.X_thresholds_))
        self.thresholds_ = np.concatenate(thresholds)
        self.values_ = np.concatenate(values)
        self.offsets_ = np.array(offsets, dtype=np.int64)

    def _check_options(self) -> None:
        if not (isinstance(self.tie_break, Real) and 0 <= self.tie_break < math.inf):
            raise InputError(
                f"{self.tie_break!r}", field="tie_break", fixes="give a number >= 0, such as 1e-9"
            )
        # On a command line `no` is text, which Python takes for true.
        if not isinstance(self.normalize, (bool, np.bool_)):
            raise InputError(f"{self.normalize!r}", field="normalize", fixes="give true or false")

    def _predict_proba(self, logits: Array) -> Array:
        self._check_options()
        scores = on_grid(softmax(logits))
        mapped = np.empty_like(scores)
        maps = list(map(slice, self.offsets_[:-1], self.offsets_[1:]))
        for c in range(scores.shape[1]):
            points = maps[0] if len(maps) == 1 else maps[c]  # one map may be for all classes
            mapped[:, c] = np.interp(scores[:, c], self.thresholds_[points], self.values_[points])
        mapped += self.tie_break * scores
        if self.normalize:
            total = mapped.sum(axis=1, keepdims=True)
            evenly = np.full_like(mapped, 1 / mapped.shape[1])
            mapped = np.divide(mapped, total, out=evenly, where=total > 0)
        return mapped

    def _trial(self, z: Array) -> Array:
        maps = list(map(slice, self.offsets_[:-1], self.offsets_[1:]))
        if self.offsets_[0] != 0 or self.offsets_[-1] != len(self.values_):
            raise InputError("offsets_ do not divide the maps")
        expected = 1
        if self.mode != "global":
            expected = len(getattr(self, "present_", self.classes_))
        if len(maps) != expected:
            raise InputError("there is not a map for each class with calibration points")
        for points in maps:
            x, level = self.thresholds_[points], self.values_[points]
            if (np.diff(x) <= 0).any() or (np.diff(level) < 0).any() or level[-1] <= 0:
                raise InputError("a map does not rise")
        return super()._trial(z)

    def _to_module(self, dtype: Any) -> Any:
        from .export.isotonic import IsotonicModule

        return IsotonicModule(self, dtype)
