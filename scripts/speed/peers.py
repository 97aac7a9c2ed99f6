"""Calls of other packages for the cases of the speed table, as their users would write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

from utility_calibration import calibrators
from utility_calibration.calibrators.heavy_imports import require

if TYPE_CHECKING:
    from .cases import Data

PEERS = ("probmetrics", "torchmetrics", "netcal", "mcgrad", "relplot")
"""Packages of requirements-peers.txt; a contender with such a name needs the package."""
BINS = 15
GROUPS = 4


class LogitsAsScores(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose features are the logits, so that scikit-learn's time is its own."""

    def __init__(self, classes: int = 2) -> None:
        self.classes = classes
        self.classes_ = np.arange(classes)

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> LogitsAsScores:
        """Do nothing."""
        return self

    def decision_function(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the logits [n, C]."""
        return X

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return the most probable classes [n]."""
        return X.argmax(axis=1)


def sklearn_temperature(data: Data) -> CalibratedClassifierCV:
    """Fit scikit-learn's temperature scaling to float64 logits of a frozen classifier."""
    frozen = FrozenEstimator(LogitsAsScores(data.size.classes))
    calibrator = CalibratedClassifierCV(frozen, method="temperature")
    return calibrator.fit(data.logits.astype(np.float64), data.labels)


def probmetrics_fit(name: str, data: Data) -> Any:
    """Fit a calibrator of probmetrics with its defaults to probabilities, as its users do."""
    return getattr(require("probmetrics.calibrators"), f"{name}Calibrator")().fit(*data.arrays)


def torchmetrics_error(name: str, *arguments: Any, **options: Any) -> float:
    """A binned error of torchmetrics."""
    require("torchvision")  # which torchmetrics imports; its own way of importing it may fail
    error = getattr(require("torchmetrics.functional.classification"), name)
    as_tensor = require("torch").as_tensor
    return float(error(*map(as_tensor, arguments), n_bins=BINS, norm="l1", **options))


def torchmetrics_class_wise(data: Data) -> float:
    """The mean over the classes of the error of one class against all others."""
    columns = ((data.p[:, c], data.labels == c) for c in range(data.size.classes))
    return float(
        np.mean([torchmetrics_error("binary_calibration_error", *pair) for pair in columns])
    )


def torchmetrics_top_class(data: Data) -> float:
    """The binned error of the most probable class."""
    name, classes = "multiclass_calibration_error", data.size.classes
    return torchmetrics_error(name, data.p, data.labels, num_classes=classes)


def netcal_top_class(data: Data) -> float:
    """The same by netcal."""
    return float(require("netcal.metrics").ECE(BINS).measure(*data.arrays))


def smooth_error(data: Data) -> float:
    """relplot's SmoothECE of the most probable class, which has no bins."""
    hits = data.p.argmax(axis=1) == data.labels
    return float(require("relplot").smECE(data.p.max(axis=1), hits.astype(float)))


def groups_of(data: Data) -> NDArray[np.int64]:
    """A group for each point, [n]."""
    return np.arange(data.size.n) % GROUPS


def binary(data: Data) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The first class against the others: its probability [n], and 1 at its points, else 0 [n]."""
    return data.p[:, 0].clip(1e-6, 1 - 1e-6), (data.labels == 0).astype(np.int64)


def repaired_by_us(data: Data) -> NDArray[np.float64]:
    """Fit logit-shift patching with groups; return its probabilities for the same points, [n]."""
    p, hits = binary(data)
    logits = np.column_stack([np.zeros_like(p), np.log(p / (1 - p))])
    fitted = calibrators.LogitShiftPatching().fit(logits, hits, groups=groups_of(data))
    return np.asarray(fitted.predict_proba(logits, groups=groups_of(data)))[:, 1]


def repaired_by_mcgrad(data: Data) -> NDArray[np.float64]:
    """The same with MCGrad's boosted trees over the groups."""
    p, hits = binary(data)
    columns = {"p": p, "hit": hits, "group": groups_of(data).astype(str)}
    table = require("pandas").DataFrame(columns)
    named = {"prediction_column_name": "p", "categorical_feature_column_names": ["group"]}
    model = require("mcgrad.methods").MCGrad()
    model.fit(table, label_column_name="hit", **named)
    return np.asarray(model.predict(table, **named))
