"""What every calibrator shares: input checks, scikit-learn's conventions, and files.

A calibrator is a scikit-learn classifier whose features are a model's logits [n, C], one column
per class, and whose labels are the class numbers 0 … C-1. Classes without a sample in the
calibration data are allowed: C comes from the columns.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from calibrators.storage import read_archive, write_archive
from metrics.kinds import Array, like
from metrics.validation import InputError, check_labels, check_logits, look_like_probabilities

NOT_STORED = ("tuning_log_",)


class Calibrator(ClassifierMixin, BaseEstimator):
    """Base of all calibrators: `fit(logits, labels)`, then `predict_proba(logits)`.

    Subclasses write `_fit` and `_predict_proba` on tensors. What `_fit` learns goes into NumPy
    arrays or numbers whose names end in an underscore; those, and the constructor's arguments, are
    what `save` stores.

    Attributes
    ----------
    classes_ : int64 [C], the class numbers 0 … C-1
    n_features_in_ : int, C
    tuning_log_ : list of dicts, one per tuning run (`parameters`, `score`, `seconds`); empty
        where nothing was tuned, and not stored by `save`
    """

    classes_: NDArray[np.int64]
    n_features_in_: int
    tuning_log_: list[dict[str, Any]]

    def fit(self, logits: Any, labels: Any) -> Self:
        """Fit on `logits` [n, C], C >= 2, and `labels` [n] in 0 … C-1, on the logits' device.

        NumPy arrays and torch tensors are accepted. `InputError` (one line) on NaN or infinite
        logits, on labels out of range, and on lengths that differ. A warning where the values look
        like probabilities: their softmax is not what they say.
        """
        z = _working_type(check_logits(logits))
        if look_like_probabilities(z):
            warnings.warn(
                "logits: values look like probabilities; give their logarithm: "
                "calibrators.from_probabilities(probabilities)",
                stacklevel=2,
            )
        y = check_labels(labels, z.shape[0], z.shape[1]).to(z.device).contiguous()
        self.tuning_log_ = []
        with torch.no_grad():
            self._fit(z, y)
        self.classes_ = np.arange(z.shape[1], dtype=np.int64)
        self.n_features_in_ = int(z.shape[1])
        return self

    def predict_proba(self, logits: Any) -> Any:
        """Return probabilities float64 [n, C] of the kind of `logits` [n, C], on their device.

        `NotFittedError` before `fit`; `InputError` if the number of classes differs from the fit's.
        """
        return like(self._probabilities(logits), logits)

    def predict(self, logits: Any) -> Any:
        """Return the most probable class of each row, int64 [n]; the first one among equals."""
        return like(self._probabilities(logits).argmax(dim=1), logits)

    def score(self, logits: Any, labels: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of `predict(logits)`, weighted by `sample_weight` [n] if given."""
        predicted = self.predict(logits)
        classes = int(self.n_features_in_)
        truth = check_labels(labels, len(predicted), classes).cpu().numpy()
        if isinstance(predicted, Tensor):
            predicted = predicted.cpu().numpy()
        return float(np.average(predicted == truth, weights=sample_weight))

    def to_module(self, dtype: torch.dtype = torch.float32) -> nn.Module:
        """Return what `predict_proba` computes as a torch module of fixed arrays: [n, C] -> [n, C].

        For deployment by `torch.export` or ONNX, which need nothing of this package. It computes in
        `dtype` throughout; float32 moves probabilities by rounding.
        """
        check_is_fitted(self)
        return self._to_module(dtype).eval()

    def save(self, path: str | Path) -> Path:
        """Write the fitted calibrator to `path` (.npz, no pickle), atomically; return the path."""
        check_is_fitted(self)
        fitted = {
            name: np.asarray(value)
            for name, value in vars(self).items()
            if name.endswith("_") and not name.startswith("_") and name not in NOT_STORED
        }
        return write_archive(path, type(self).__name__, self.get_params(deep=False), fitted)

    @classmethod
    def load(cls, path: str | Path | IO[bytes]) -> Self:
        """Return the calibrator that `save` wrote to `path`; its predictions are bitwise equal.

        `path` may also be the file, opened for reading bytes.

        `Calibrator.load` accepts every kind, a subclass only its own. `InputError` (one line) where
        the file is missing, damaged or of another kind.
        """
        kind, parameters, fitted = read_archive(path)
        everything = import_module("calibrators")
        for name in everything.__all__:  # each is loaded, and a subclass, once it is asked for
            getattr(everything, name)
        known = {subclass.__name__: subclass for subclass in _descendants(cls)}
        if kind not in known:
            raise InputError(
                f"{path}: holds a fitted {kind}, expected {' or '.join(sorted(known))}"
            )
        try:
            calibrator = known[kind](**parameters)
        except TypeError as error:
            raise InputError(
                f"{path}: parameters of another version ({error}); fit again"
            ) from error
        for name, value in fitted.items():
            setattr(calibrator, name, value)
        calibrator.tuning_log_ = []
        return calibrator

    def _probabilities(self, logits: Any) -> Tensor:
        check_is_fitted(self)
        z = _working_type(check_logits(logits))
        if z.shape[1] != self.n_features_in_:
            raise InputError(
                f"logits: {z.shape[1]} columns, but the {type(self).__name__} was fitted on "
                f"{self.n_features_in_} classes"
            )
        with torch.no_grad():
            return self._predict_proba(z)

    def _fit(self, logits: Tensor, labels: Tensor) -> None:
        """Learn from checked `logits` float32 or float64 [n, C] and `labels` int64 [n]."""
        raise TypeError(f"{type(self).__name__} must define _fit")

    def _predict_proba(self, logits: Tensor) -> Tensor:
        """Return float64 [n, C] for checked `logits` float32 or float64 [n, C]."""
        raise TypeError(f"{type(self).__name__} must define _predict_proba")

    def _to_module(self, dtype: torch.dtype) -> nn.Module:
        raise TypeError(f"{type(self).__name__} must define _to_module")


def _working_type(logits: Array) -> Tensor:
    """Half precision becomes float32; float32 and float64 stay as they are (no copy)."""
    tensor = torch.as_tensor(logits)
    return tensor if tensor.dtype in (torch.float32, torch.float64) else tensor.float()


def _descendants(cls: type[Calibrator]) -> list[type[Any]]:
    below = [leaf for subclass in cls.__subclasses__() for leaf in _descendants(subclass)]
    return [cls, *below] if cls is not Calibrator else below
