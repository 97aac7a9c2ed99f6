"""The same work by other packages (requirements-peers.txt), each used as its documentation says.

Imported where they are used: none of these packages is a dependency, except scikit-learn.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from calibrators.reference import log_loss
from metrics import reference
from pipeline.sources.heavy_imports import require
from tests.peers.inputs import Arrays

Floats = NDArray[np.float64]
BINS = 15
SOLVER = 1e-4
"""How far other solvers may stop above the best likelihood: some work in float32."""
BIN_EDGE = 2e-3
"""Some put the edges of bins elsewhere by an ulp, or compute in float32: a point may change its
bin, which moves the error by up to 2 / n."""
ISOTONIC_POINTS = 500
"""Fitted isotonic maps are compared at the first points of the data."""


Answer = Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Contender:
    """One way to compute the answer.

    prepare: arrays and device -> what `run` takes.
    run: the work.
    answer: prepared data and result -> named arrays to compare.
    package: module that must be installed.
    tolerance: for its answer; None: that of the test.
    """

    name: str
    prepare: Callable[[Arrays, str], Any]
    run: Callable[[Any], Any]
    answer: Callable[[Any, Any], Answer]
    package: str | None = None
    tolerance: float | None = None

    @property
    def is_installed(self) -> bool:
        """Whether the contender's package can be imported."""
        return self.package is None or importlib.util.find_spec(self.package) is not None


def _as_they_are(inputs: Arrays, device: str) -> Arrays:
    return inputs


def _peer(
    name: str, prepare: Any, run: Any, answer: Any, tolerance: float | None = None
) -> Contender:
    package = {"scikit-learn": "sklearn"}.get(name, name)
    return Contender(name, prepare, run, answer, package=package, tolerance=tolerance)


def probmetrics_temperature() -> Contender:
    """`TemperatureScalingCalibrator`, bisection, its default."""

    def run(data: Any) -> Any:
        calibrator = require("probmetrics.calibrators").TemperatureScalingCalibrator()
        return calibrator.fit_torch(*_probmetrics_inputs(data))

    def answer(data: Arrays, fitted: Any) -> Answer:
        return _nll(data, data.logits * fitted.invtemp_)

    return _peer("probmetrics", _probmetrics_data, run, answer, SOLVER)


def probmetrics_vector() -> Contender:
    """`VectorScalingCalibrator`, BFGS."""

    def run(data: Any) -> Any:
        calibrator = require("probmetrics.calibrators").VectorScalingCalibrator()
        return calibrator.fit_torch(*_probmetrics_inputs(data))

    def answer(data: Arrays, fitted: Any) -> Answer:
        return _nll(data, data.logits / fitted.temp_.numpy() + fitted.bias_.numpy())

    return _peer("probmetrics", _probmetrics_data, run, answer, SOLVER)


def structured(name: str) -> Contender:
    """`SVSCalibrator` or `SMSCalibrator`: other methods, whose likelihood is only told."""

    def run(data: Arrays) -> Any:
        calibrator = getattr(require("probmetrics.calibrators"), name)()
        return calibrator.fit(data.probabilities, data.labels)

    def answer(data: Arrays, fitted: Any) -> Answer:
        p = np.asarray(fitted.predict_proba(data.probabilities), float)
        return {"nll": np.array(reference.negative_log_likelihood(p, data.labels))}

    label = f"probmetrics {name.removesuffix('Calibrator')}"
    return Contender(label, _probmetrics_data, run, answer, "probmetrics", tolerance=np.inf)


def _probmetrics_data(inputs: Arrays, device: str) -> Arrays:
    require("torchvision")  # torchmetrics, which it imports, needs it
    return inputs


def _probmetrics_inputs(data: Arrays) -> tuple[Any, Any]:
    logits, labels = torch.from_numpy(data.logits), torch.from_numpy(data.labels)
    return require("probmetrics.distributions").CategoricalLogits(logits), labels


def _nll(data: Arrays, logits: NDArray[Any]) -> Answer:
    return {"nll": np.array(log_loss(logits, data.labels))}


def sklearn_temperature() -> Contender:
    """`CalibratedClassifierCV(method="temperature")` around a classifier that passes logits on."""

    def run(data: Arrays) -> Any:
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.frozen import FrozenEstimator

        model = FrozenEstimator(_logits_classifier(data.logits.shape[1]))
        return CalibratedClassifierCV(model, method="temperature").fit(data.logits, data.labels)

    def answer(data: Arrays, fitted: Any) -> Answer:
        beta = fitted.calibrated_classifiers_[0].calibrators[0].beta_
        return _nll(data, data.logits * beta)

    return _peer("scikit-learn", _as_they_are, run, answer, SOLVER)


def _logits_classifier(classes: int) -> Any:
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Logits(ClassifierMixin, BaseEstimator):
        """A fitted classifier whose features are its decision values."""

        def __init__(self) -> None:
            self.classes_ = np.arange(classes)

        def fit(self, x: Any, y: Any) -> Any:
            return self

        def decision_function(self, x: Any) -> Any:
            return x

        def predict(self, x: Any) -> Any:
            return x.argmax(axis=1)

    return Logits()


def netcal_temperature() -> Contender:
    """`netcal.scaling.TemperatureScaling`, maximum likelihood."""

    def run(data: Arrays) -> Any:
        calibrator = require("netcal.scaling").TemperatureScaling()
        with contextlib.redirect_stderr(io.StringIO()):  # its progress bars
            return calibrator.fit(data.probabilities, data.labels)

    def answer(data: Arrays, fitted: Any) -> Answer:
        return _nll(data, data.logits * float(np.ravel(fitted.temperature)[0]))

    return _peer("netcal", _as_they_are, run, answer, SOLVER)


def sklearn_isotonic() -> Contender:
    """One `IsotonicRegression` per class, in a loop, after the softmax: the reference."""

    def run(data: Arrays) -> Any:
        from scipy.special import softmax
        from sklearn.isotonic import IsotonicRegression

        p = softmax(data.logits.astype(np.float64), axis=1)
        return [
            IsotonicRegression(out_of_bounds="clip").fit(p[:, c], 1.0 * (data.labels == c))
            for c in range(p.shape[1])
        ]

    def answer(data: Arrays, maps: Any) -> Answer:
        p = data.probabilities[:ISOTONIC_POINTS]
        mapped = np.column_stack([each.predict(p[:, c]) for c, each in enumerate(maps)])
        return {"mapped": mapped, "normalized": mapped / mapped.sum(axis=1, keepdims=True)}

    return _peer("scikit-learn", _as_they_are, run, answer)


def netcal_isotonic() -> Contender:
    """`netcal.binning.IsotonicRegression`, one against all; rows are compared normalised."""

    def run(data: Arrays) -> Any:
        calibrator = require("netcal.binning").IsotonicRegression()
        return calibrator.fit(data.probabilities, data.labels)

    def answer(data: Arrays, fitted: Any) -> Answer:
        mapped = fitted.transform(data.probabilities[:ISOTONIC_POINTS])
        return {"normalized": np.asarray(mapped, float)}

    return _peer("netcal", _as_they_are, run, answer)


def torchmetrics_top_class() -> Contender:
    """`multiclass_calibration_error`, l1 norm, bins of equal width."""

    def run(data: Any) -> Any:
        error = require("torchmetrics.functional.classification").multiclass_calibration_error
        p, labels, classes = data
        return error(p, labels, num_classes=classes, n_bins=BINS, norm="l1")

    return _torchmetrics(run)


def torchmetrics_class_wise() -> Contender:
    """`binary_calibration_error` of every class against the rest, averaged."""

    def run(data: Any) -> Any:
        error = require("torchmetrics.functional.classification").binary_calibration_error
        p, labels, classes = data
        errors = [
            error(p[:, c], (labels == c).long(), n_bins=BINS, norm="l1") for c in range(classes)
        ]
        return torch.stack(errors).mean()

    return _torchmetrics(run)


def _torchmetrics(run: Any) -> Contender:
    def prepare(inputs: Arrays, device: str) -> Any:
        require("torchvision")  # which it imports; its own way of importing it may fail
        p = torch.from_numpy(inputs.probabilities)
        return p, torch.from_numpy(inputs.labels), inputs.size.classes

    def answer(data: Any, result: Any) -> Answer:
        return {"error": np.array(float(result))}

    return _peer("torchmetrics", prepare, run, answer, BIN_EDGE)


def netcal_top_class() -> Contender:
    """`ECE(15)`."""

    def run(data: Arrays) -> Any:
        return require("netcal.metrics").ECE(BINS).measure(data.probabilities, data.labels)

    def answer(data: Arrays, result: Any) -> Answer:
        return {"error": np.array(float(result))}

    return _peer("netcal", _as_they_are, run, answer, BIN_EDGE)
