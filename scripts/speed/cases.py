"""The cases of the speed table: contenders get the same arrays and must give the same answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.isotonic import IsotonicRegression

from utility_calibration import calibrators
from utility_calibration.calibrators import reference as plain_fits
from utility_calibration.metrics import (
    ClassWise,
    Linear,
    Rank,
    TopClass,
    TopK,
    binned_class_wise_error,
    binned_top_class_error,
)
from utility_calibration.metrics import reference as plain
from utility_calibration.metrics.kernels.grid import on_grid
from utility_calibration.metrics.kernels.softmax import softmax
from utility_calibration.metrics.measurement import Options
from utility_calibration.metrics.scoring import scorecard
from utility_calibration.pipeline.sources.synthetic import SyntheticClassifier

from . import peers

SEED = 0
PLAIN, OURS = "plain", "ours"
COMPARED = ("accuracy", "brier", "nll", "cwe_bin", "tce_bin", "u_cwe", "u_topk", "u_tce", "u_dcg")
LIKELIHOOD = 5e-7
"""A mean NLL may be worse than the reference's by this much, the resolution of float32 logits."""
SOURCE = Path(__file__).resolve().parents[2] / "conf" / "benchmark" / "synthetic_imagenet.yaml"


class Size(NamedTuple):
    """Points n, classes C and sampled utilities M (0: none)."""

    n: int
    classes: int
    utilities: int = 0

    def __str__(self) -> str:
        sampled = f", M={self.utilities:,}" if self.utilities else ""
        return f"n={self.n:,}, C={self.classes:,}{sampled}"


@dataclass(frozen=True)
class Data:
    """The inputs of one size, and what is drawn for them."""

    size: Size
    logits: NDArray[np.float32]  # [n, C]
    labels: NDArray[np.int64]  # [n]
    p: NDArray[np.float64]  # [n, C], softmax of the logits
    linear: Linear  # the sampled utilities

    @property
    def arrays(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Probabilities and labels, for other packages."""
        return self.p, self.labels

    @property
    def logit_arrays(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Logits and labels, for other packages."""
        return self.logits, self.labels


@lru_cache(maxsize=2)
def data(size: Size) -> Data:
    """Draw from a classifier that is as accurate and overconfident as `synthetic_imagenet`'s."""
    source = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))["source"]
    options = {key: source[key] for key in source if key not in ("_target_", "samples", "seed")}
    sample = SyntheticClassifier(**{**options, "classes": size.classes}).sample(size.n, SEED)
    users = Linear.sample(max(1, size.utilities), size.classes, SEED)
    return Data(size, sample.logits, sample.labels, softmax(sample.logits), users)


def _numbers(data: Data, result: Any) -> NDArray[Any]:
    return np.asarray(result, float)


@dataclass(frozen=True)
class Case:
    """A piece of work. The first contender is the reference.

    contenders: name -> the work that is timed; another package's name is the package's.
    sizes: those of the whole table; `--quick` has one of its own.
    tolerance: of our answers; those of other packages differ by design, such as bin edges.
    answer: data and result -> the numbers to compare; not timed.
    is_loss: an answer may be smaller than the reference's.
    others: contenders that answer another question, whose answers are not compared.
    """

    title: str
    contenders: Mapping[str, Callable[[Data], Any]]
    sizes: Sequence[Size]
    tolerance: float = 1e-9
    answer: Callable[[Data, Any], NDArray[Any]] = _numbers
    is_loss: bool = False
    note: str = ""
    others: Collection[str] = ()

    def difference(self, reference: NDArray[Any], answer: NDArray[Any]) -> float:
        """Return the largest difference; of a loss, by how much it exceeds the reference's."""
        gap = answer - reference
        return float(np.max(gap if self.is_loss else np.abs(gap)))


def _nll(data: Data, result: Any) -> NDArray[Any]:
    """The mean NLL on the points of the fit: of a calibrator, or of logits [n, C]."""
    probabilities, labels = data.arrays
    if isinstance(result, np.ndarray):
        return np.array(plain_fits.log_loss(result, labels))
    takes_logits = isinstance(result, calibrators.Calibrator | CalibratedClassifierCV)
    p = np.asarray(result.predict_proba(data.logits if takes_logits else probabilities), float)
    return np.array(plain.negative_log_likelihood(p, labels))


def _vector(data: Data) -> NDArray[Any]:
    scale, shift = plain_fits.vector_scaling(*data.logit_arrays)
    return data.logit_arrays[0] * scale + shift


def _penalties(size: Size) -> dict[str, float]:
    """As large as those that tuning finds, for any number of classes."""
    return {"odir": 0.01 * size.classes * (size.classes - 1), "l2": 0.001 * size.classes}


def _penalised(data: Data, result: Any) -> NDArray[Any]:
    """The objective of Dirichlet calibration at W, b [C, C + 1] or at a fitted calibrator."""
    if not isinstance(result, np.ndarray):
        result = np.column_stack([result.matrix_, result.intercept_])
    penalties = _penalties(data.size).values()
    return np.array(plain_fits.penalised_loss(*data.logit_arrays, result, *penalties))


def _fit(name: str, data: Data, **options: Any) -> Any:
    return getattr(calibrators, name)(**options).fit(data.logits, data.labels)


def _plain_isotonic(data: Data) -> NDArray[Any]:
    p, labels = data.arrays
    hits = np.eye(data.size.classes)[labels]
    scores = on_grid(p)  # as ours, so that the same scores tie
    fitted = map(IsotonicRegression().fit_transform, scores.T, hits.T)
    return np.column_stack(list(fitted))


def _isotonic(data: Data, result: Any) -> NDArray[Any]:
    if not isinstance(result, np.ndarray):
        result = result.set_params(normalize=False).predict_proba(data.logits)
    return np.asarray(result, float)


def _plain_top_class(data: Data) -> float:
    p, labels = data.arrays
    return plain.utility_calibration(p.max(axis=1), p.argmax(axis=1) == labels)


def _plain_scorecard(data: Data) -> Any:
    rank = Rank.sample(data.size.utilities, data.size.classes, SEED + 1)
    users = data.linear.matrix, rank.matrix
    return plain.scorecard(*data.arrays, *users, Options().exponents)


def _compared(data: Data, result: Any) -> NDArray[Any]:
    return np.array([getattr(result, "metrics", result)[key] for key in COMPARED])


def _scorecard(data: Data, floor: int, bootstrap: int) -> Any:
    options = Options(data.size.utilities, floor_repetitions=floor, bootstrap_repetitions=bootstrap)
    return scorecard(data.p, data.labels, options=options)


KERNELS = Size(3000, 100), Size(15_000, 1000)
SAMPLED = Size(3000, 100, 1500), Size(15_000, 1000, 1500)
BINARY = Size(7000, 2), Size(35_000, 2)
FITS = Size(7000, 10), Size(7000, 100), Size(35_000, 1000)


def _metric(title: str, plain: Any, ours: Any, sizes: Any, note: str = "", **more: Any) -> Case:
    """A metric by its definition, by ours, and by other packages."""
    contenders = {PLAIN: lambda d: plain(*d.arrays), OURS: lambda d: ours(d.p, d.labels), **more}
    return Case(title, contenders, sizes, note=note)


def _fits(
    title: str, ours: str, plain: Any, peer: str, sizes: Any, note: str = "", **more: Any
) -> Case:
    """A calibrator by SciPy (plain), by ours, by probmetrics and by other packages."""
    contenders = {} if plain is None else {PLAIN: plain}
    contenders |= {OURS: partial(_fit, ours), "probmetrics": partial(peers.probmetrics_fit, peer)}
    return Case(title, contenders | more, sizes, LIKELIHOOD, _nll, True, note)


_WIDTH: dict[str, Any] = {"bins": peers.BINS, "scheme": "equal_width"}
_CHECKS = "15 bins of equal width; ours checks all probabilities first"
_SOLVER = "plain: SciPy's L-BFGS-B"
CASES = (
    _metric("U_CWE", plain.class_wise_errors, ClassWise().calibration_errors, KERNELS),
    _metric("U_topK", plain.top_k_errors, TopK().calibration_errors, KERNELS, "rows are ranked"),
    _metric("ECE by class", partial(plain.binned_class_wise_error, **_WIDTH),
            partial(binned_class_wise_error, **_WIDTH), FITS, _CHECKS,
            torchmetrics=peers.torchmetrics_class_wise),
    _metric("ECE of the top class", partial(plain.binned_top_class_error, **_WIDTH),
            partial(binned_top_class_error, **_WIDTH), FITS, _CHECKS,
            torchmetrics=peers.torchmetrics_top_class, netcal=peers.netcal_top_class),
    Case("Error of the top class",
         {PLAIN: _plain_top_class, OURS: lambda d: TopClass().calibration_errors(d.p, d.labels),
          "relplot": peers.smooth_error}, FITS, others=("relplot",),
         note="relplot's SmoothECE is another error, also without bins"),
    Case("eCDF of U_lin",
         {PLAIN: lambda d: plain.linear_errors(*d.arrays, d.linear.matrix),
          OURS: lambda d: d.linear.calibration_errors(d.p, d.labels)}, SAMPLED),
    Case("scorecard",
         {PLAIN: _plain_scorecard, OURS: partial(_scorecard, floor=0, bootstrap=0),
          "ours, whole evaluation": partial(_scorecard, floor=400, bootstrap=200)},
         SAMPLED, answer=_compared, note="ours has the two-bin error, too; "
         "whole: with 400 draws of the labels and 200 resamplings"),
    _fits("temperature", "TemperatureScaling",
          lambda d: d.logit_arrays[0] * plain_fits.temperature(*d.logit_arrays),
          "TemperatureScaling", FITS,
          "plain: SciPy's Brent; CalibratedClassifierCV: of scikit-learn, its fit alone",
          CalibratedClassifierCV=peers.sklearn_temperature),
    _fits("vector", "VectorScaling", _vector, "VectorScaling", FITS[:2], _SOLVER),
    _fits("structured matrix", "StructuredMatrixScaling", None, "SMS", FITS[:2]),
    Case("isotonic", {"scikit-learn": _plain_isotonic, OURS: partial(_fit, "IsotonicCalibration")},
         FITS, answer=_isotonic),
    Case("Dirichlet",
         {PLAIN: lambda d: plain_fits.dirichlet(*d.logit_arrays, *_penalties(d.size).values()),
          OURS: lambda d: _fit("DirichletCalibration", d, **_penalties(d.size))},
         FITS[:1], LIKELIHOOD, _penalised, True,
         "with given penalties, of the penalised NLL; " + _SOLVER),
    Case("repair of groups", {OURS: peers.repaired_by_us, "mcgrad": peers.repaired_by_mcgrad},
         BINARY, others=("mcgrad",),
         note=f"two classes, {peers.GROUPS} groups, fit and prediction by default settings"),
)  # fmt: skip
