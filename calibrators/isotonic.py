"""Isotonic regression (Zadrozny and Elkan 2002), one-vs-all or global.

One-vs-all fits, for each class c, the non-decreasing map of p_c that is closest to 1{y = c} in
least squares. Global fits one map to all n · C pairs (p_c, 1{y = c}). scikit-learn makes the maps.
They are linear between the ends of their constant pieces and constant beyond them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression
from torch import Tensor

from calibrators.base import Calibrator
from calibrators.modules import PiecewiseLinearMaps
from metrics.kernels.softmax import softmax
from metrics.validation import InputError

Map = tuple[NDArray[np.float64], NDArray[np.float64]]
"""The thresholds of a map and its values there."""


def _isotonic_map(scores: NDArray[Any], hits: NDArray[Any], weights: NDArray[Any]) -> Map:
    """Return the isotonic map of `scores` [n] to `hits` [n], each weighing `weights` [n]."""
    fitted = IsotonicRegression(out_of_bounds="clip").fit(scores, hits, sample_weight=weights)
    return fitted.X_thresholds_, fitted.y_thresholds_


@dataclass(eq=False, repr=False)
class IsotonicCalibration(Calibrator):
    """Isotonic regression of the softmax probabilities.

    It runs on the CPU even if the logits are on another device.

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

    takes_weights = True
    takes_zeros = True
    mode: Literal["one_vs_all", "global"] = "one_vs_all"
    normalize: bool = True
    tie_break: float = 0.0

    def _fit(self, logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> None:
        self._check_options()
        scores = softmax(logits).cpu().numpy()
        n, classes = scores.shape
        hits = labels.cpu().numpy()[:, None] == np.arange(classes)
        rows = np.ones(n) if weights is None else weights.cpu().numpy()
        if self.mode == "global":
            maps = [_isotonic_map(scores.ravel(), hits.ravel(), rows.repeat(classes))]
        else:
            maps = [_isotonic_map(scores[:, c], hits[:, c], rows) for c in range(classes)]
        self.thresholds_, self.values_ = map(np.concatenate, zip(*maps, strict=True))
        sizes = [len(thresholds) for thresholds, _ in maps]
        self.offsets_ = np.cumsum([0, *sizes], dtype=np.int64)

    def _check_options(self) -> None:
        if not (isinstance(self.tie_break, Real) and 0 <= self.tie_break < math.inf):
            raise InputError(f"tie_break: {self.tie_break!r}; give a number >= 0, such as 1e-9")
        # On a command line `no` is text, which Python takes for true.
        if not isinstance(self.normalize, (bool, np.bool_)):
            raise InputError(f"normalize: {self.normalize!r}; give true or false")

    def _predict_proba(self, logits: Tensor) -> Tensor:
        self._check_options()
        scores = softmax(logits).cpu().numpy()
        mapped = np.empty_like(scores)
        maps = list(zip(self.offsets_[:-1], self.offsets_[1:], strict=True))
        for c in range(scores.shape[1]):
            points = slice(*maps[c if len(maps) > 1 else 0])
            mapped[:, c] = np.interp(scores[:, c], self.thresholds_[points], self.values_[points])
        mapped += self.tie_break * scores
        if self.normalize:
            total = mapped.sum(axis=1, keepdims=True)
            evenly = np.full_like(mapped, 1 / mapped.shape[1])
            mapped = np.divide(mapped, total, out=evenly, where=total > 0)
        return torch.from_numpy(mapped).to(logits.device)

    def _to_module(self, dtype: torch.dtype) -> PiecewiseLinearMaps:
        maps = self.thresholds_, self.values_, self.offsets_
        return PiecewiseLinearMaps(*maps, bool(self.normalize), float(self.tie_break), dtype)
