"""The cases of the speed table: contenders get the same arrays and must give the same answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import calibrators
import metrics
from calibrators import reference as plain_fits
from calibrators.heavy_imports import require
from metrics import Linear, Rank, reference
from metrics.forecast import Forecast
from metrics.measurement import Noise, Options
from pipeline.sources.synthetic import SyntheticClassifier

SEED, DRAWS, BINS = 0, 20, 15
PLAIN, OURS = "plain", "ours"
EXPONENTS = (0.5, 0.75, 1, 1.25, 1.5, 2)
COMPARED = ("accuracy", "brier", "nll", "cwe_bin", "tce_bin", "u_cwe", "u_topk", "u_tce", "u_dcg")
LIKELIHOOD = 5e-7
"""A mean NLL may be worse than the reference's by this much, the resolution of float32 logits."""
PEER_LIKELIHOOD = 1e-4
BIN_EDGE = 2e-3
"""Bin edges of other packages differ by an ulp, which may move a point to another bin."""


@dataclass(frozen=True)
class Size:
    """Points n, classes C and sampled utilities M (0: none)."""

    n: int
    classes: int
    utilities: int = 0

    def __str__(self) -> str:
        sampled = f", M={self.utilities:,}" if self.utilities else ""
        return f"n={self.n:,}, C={self.classes:,}{sampled}"


@dataclass(frozen=True)
class Data:
    """The inputs of one size on one device, and what is drawn for them."""

    size: Size
    logits: Tensor  # float32 [n, C]
    labels: Tensor  # int64 [n]
    p: Tensor  # float64 [n, C], softmax of the logits
    uniforms: Tensor  # float64 [DRAWS, n]
    linear: Linear  # the sampled utilities

    @property
    def plain(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Probabilities and labels as NumPy arrays."""
        return self.p.cpu().numpy(), self.labels.cpu().numpy()

    @property
    def plain_logits(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Logits and labels as NumPy arrays."""
        return self.logits.cpu().numpy(), self.labels.cpu().numpy()


@lru_cache(maxsize=2)
def data(size: Size, device: str) -> Data:
    """Draw from a classifier that is as accurate and overconfident as `synthetic_imagenet`'s."""
    truth: dict[str, Any] = {"margin_mean": 7.5, "margin_std": 4.0, "background_std": 1.5}
    truth |= {"group_size": 5, "rival_gap": 14.0}
    distortion: dict[str, Any] = {"temperature": 0.75, "class_bias": 0.3, "noise": 0.3}
    classifier = SyntheticClassifier(size.classes, **truth, **distortion)
    sample = classifier.sample(size.n, SEED)
    logits = torch.from_numpy(sample.logits).to(device)
    uniforms = np.random.default_rng(SEED).random((DRAWS, size.n))
    return Data(
        size,
        logits,
        torch.from_numpy(sample.labels).to(device),
        logits.double().softmax(dim=1),
        torch.from_numpy(uniforms).to(device),
        Linear.sample(max(1, size.utilities), size.classes, SEED),
    )


def _numbers(data: Data, result: Any) -> NDArray[Any]:
    return np.asarray(result.cpu() if isinstance(result, Tensor) else result, float)


@dataclass(frozen=True)
class Case:
    """A piece of work. The first contender is the reference; "ours" runs on the GPU, too.

    contenders: name -> the work that is timed; another package's name is the package's.
    sizes: those of the whole table; `--quick` has one of its own.
    answer: data and result -> the numbers to compare; not timed.
    is_loss: an answer may be smaller than the reference's.
    """

    key: str
    title: str
    contenders: Mapping[str, Callable[[Data], Any]]
    sizes: Sequence[Size]
    tolerance: float = 1e-9
    peer_tolerance: float = BIN_EDGE
    answer: Callable[[Data, Any], NDArray[Any]] = _numbers
    is_loss: bool = False
    note: str = ""

    def difference(self, reference: NDArray[Any], answer: NDArray[Any]) -> float:
        """Return the largest difference; of a loss, by how much it exceeds the reference's."""
        gap = answer - reference
        return float(np.max(gap if self.is_loss else np.abs(gap)))


def _nll(data: Data, result: Any) -> NDArray[Any]:
    """The mean NLL on the points of the fit: of a calibrator, or of logits [n, C]."""
    labels = data.plain[1]
    if isinstance(result, np.ndarray):
        return np.array(plain_fits.log_loss(result, labels))
    p = result.predict_proba(data.logits)
    return np.array(reference.negative_log_likelihood(torch.as_tensor(p).cpu().numpy(), labels))


def _scaled(data: Data) -> NDArray[Any]:
    return data.plain_logits[0] * plain_fits.temperature(*data.plain_logits)


def _vector(data: Data) -> NDArray[Any]:
    scale, shift = plain_fits.vector_scaling(*data.plain_logits)
    return data.plain_logits[0] * scale + shift


def _penalties(size: Size) -> dict[str, float]:
    """As large as those that tuning finds, for any number of classes."""
    return {"odir": 0.01 * size.classes * (size.classes - 1), "l2": 0.001 * size.classes}


def _penalised(data: Data, result: Any) -> NDArray[Any]:
    """The objective of Dirichlet calibration at W, b [C, C + 1] or at a fitted calibrator."""
    if not isinstance(result, np.ndarray):
        result = np.column_stack([result.matrix_, result.intercept_])
    penalties = _penalties(data.size).values()
    return np.array(plain_fits.penalised_loss(*data.plain_logits, result, *penalties))


def _fit(name: str, data: Data, **options: Any) -> Any:
    return getattr(calibrators, name)(**options).fit(data.logits, data.labels)


def _peer(name: str, data: Data) -> Any:
    """Fit a calibrator of probmetrics with its defaults, as its users do: to probabilities."""
    fitted = getattr(require("probmetrics.calibrators"), name)().fit(*data.plain)
    fitted.predict_proba = partial(_predicted, fitted.predict_proba, data.plain[0])
    return fitted


def _predicted(predict: Callable[..., Any], p: NDArray[Any], _: Tensor) -> NDArray[Any]:
    return np.asarray(predict(p), float)


def _plain_isotonic(data: Data) -> NDArray[Any]:
    from sklearn.isotonic import IsotonicRegression

    p, labels = data.plain
    columns = [
        IsotonicRegression().fit_transform(p[:, c], 1.0 * (labels == c)) for c in range(p.shape[1])
    ]
    return np.column_stack(columns)


def _isotonic(data: Data, result: Any) -> NDArray[Any]:
    if not isinstance(result, np.ndarray):
        result = result.set_params(normalize=False).predict_proba(data.logits)
    return np.asarray(result, float)


def _torchmetrics(data: Data) -> Any:
    require("torchvision")  # which torchmetrics imports; its own way of importing it may fail
    error = require("torchmetrics.functional.classification").multiclass_calibration_error
    return error(data.p, data.labels, num_classes=data.size.classes, n_bins=BINS, norm="l1")


def _plain_scorecard(data: Data) -> Any:
    rank = Rank.sample(data.size.utilities, data.size.classes, SEED + 1)
    return reference.scorecard(
        *data.plain, data.linear.matrix.numpy(), rank.matrix.numpy(), EXPONENTS
    )


def _scorecard(data: Data, floor: int, bootstrap: int) -> Any:
    noise = Noise(floor_repetitions=floor, bootstrap_repetitions=bootstrap)
    return metrics.scorecard(data.p, data.labels, Options(data.size.utilities), noise)


def _metrics(data: Data, result: Any) -> NDArray[Any]:
    values = result if isinstance(result, dict) else result.metrics
    return np.array([values[key] for key in COMPARED])


def _floor(data: Data) -> Tensor:
    forecast = Forecast(data.p)
    return metrics.ClassWise().errors(forecast, forecast.redraw(data.uniforms)).amax(dim=1)


KERNELS = Size(3000, 100), Size(15_000, 1000)
SAMPLED = Size(3000, 100, 1500), Size(15_000, 1000, 1500)
FITS = Size(7000, 10), Size(7000, 100), Size(35_000, 1000)


def _metric(key: str, title: str, plain: Any, ours: Any, note: str = "") -> Case:
    def run(data: Data) -> Any:
        return ours(data.p, data.labels)

    return Case(key, title, {PLAIN: lambda d: plain(*d.plain), OURS: run}, KERNELS, note=note)


def _fits(key: str, ours: str, plain: Any, peer: str, sizes: Any, note: str) -> Case:
    contenders = {OURS: partial(_fit, ours), "probmetrics": partial(_peer, peer)}
    if plain is not None:
        contenders = {PLAIN: plain, **contenders}
    limits = LIKELIHOOD, PEER_LIKELIHOOD
    return Case(key, ours, contenders, sizes, *limits, answer=_nll, is_loss=True, note=note)


Contenders = dict[str, Callable[[Data], Any]]
_ECDF: Contenders = {
    PLAIN: lambda d: reference.linear_errors(d.plain[0], d.plain[1], d.linear.matrix.numpy()),
    OURS: lambda d: d.linear.calibration_errors(d.p, d.labels),
}
_ECE: Contenders = {
    PLAIN: lambda d: reference.binned_top_class_error(*d.plain, BINS, "equal_width"),
    OURS: lambda d: metrics.binned_top_class_error(d.p, d.labels, scheme="equal_width"),
    "torchmetrics": _torchmetrics,
    "netcal": lambda d: require("netcal.metrics").ECE(BINS).measure(*d.plain),
}
_FLOOR: Contenders = {
    PLAIN: lambda d: reference.noise_floor(d.plain[0], d.uniforms.cpu().numpy()),
    OURS: _floor,
}
_SCORECARD: Contenders = {
    PLAIN: _plain_scorecard,
    OURS: lambda d: _scorecard(d, 0, 0),
    "ours, whole evaluation": lambda d: _scorecard(d, 400, 200),
}
_ISOTONIC: Contenders = {
    "scikit-learn": _plain_isotonic,
    OURS: partial(_fit, "IsotonicCalibration"),
}
_DIRICHLET: Contenders = {
    PLAIN: lambda d: plain_fits.dirichlet(*d.plain_logits, *_penalties(d.size).values()),
    OURS: lambda d: _fit("DirichletCalibration", d, **_penalties(d.size)),
}
_CWE, _TOPK = metrics.ClassWise().calibration_errors, metrics.TopK().calibration_errors
_BINNED = reference.binned_class_wise_error, metrics.binned_class_wise_error
_WHOLE = (
    "whole evaluation: with 400 draws of the labels and 200 resamplings, as the stage does it; "
    "plain: metrics and eCDFs alone"
)
_SOLVER = "plain: SciPy's L-BFGS-B"
_CHECKS = "15 bins of equal width; ours checks all probabilities first"

CASES = (
    _metric("u_cwe", "U_CWE", reference.class_wise_errors, _CWE),
    _metric("u_topk", "U_topK", reference.top_k_errors, _TOPK, "both rank the rows first"),
    _metric("cwe_bin", "CWE, binned", *_BINNED, "15 bins of equal weight"),
    Case("ecdf", "eCDF of U_lin", _ECDF, SAMPLED),
    Case("tce_width", "ECE of the top class", _ECE, KERNELS[:1], note=_CHECKS),
    Case("floor", "Noise floor of U_CWE", _FLOOR, KERNELS[:1], note="20 draws of the labels"),
    Case("scorecard", "Scorecard", _SCORECARD, SAMPLED[:1], answer=_metrics, note=_WHOLE),
    _fits(
        "temperature",
        "TemperatureScaling",
        _scaled,
        "TemperatureScalingCalibrator",
        FITS,
        "plain: SciPy's Brent",
    ),
    _fits("vector", "VectorScaling", _vector, "VectorScalingCalibrator", FITS[:2], _SOLVER),
    _fits("structured", "StructuredMatrixScaling", None, "SMSCalibrator", FITS[:2], ""),
    Case("isotonic", "IsotonicCalibration", _ISOTONIC, FITS, answer=_isotonic),
    Case(
        "dirichlet",
        "DirichletCalibration, one fit",
        _DIRICHLET,
        FITS[:1],
        LIKELIHOOD,
        answer=_penalised,
        is_loss=True,
        note="the answer is the penalised NLL; " + _SOLVER,
    ),
)
