"""The start of patching: the probabilities of another calibrator.

Patches are fitted on the same calibration points as that calibrator. One parameter (temperature)
fits these points hardly better than new points. With more parameters the residuals would be too
small, so such starts are cross-fitted: each fifth of the points is predicted by a fit on the rest.
"""

from collections.abc import Mapping
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from ..base import Calibrator
from ..dirichlet.calibrator import DirichletCalibration
from ..pooled.pool import PooledScaling
from ..structured import StructuredMatrixScaling
from ..temperature import TemperatureScaling
from ..uncalibrated import Uncalibrated
from ..vector import VectorScaling
from .tuning import folds_of

PaperStart = Literal["softmax", "temperature"]
Start = Literal["pooled", "softmax", "temperature", "vector", "structured", "dirichlet"]
STARTS: dict[str, type[Calibrator]] = {
    "pooled": PooledScaling,
    "softmax": Uncalibrated,
    "temperature": TemperatureScaling,
    "vector": VectorScaling,
    "structured": StructuredMatrixScaling,
    "dirichlet": DirichletCalibration,
}
PREFIX = "start_"
KIND = "start_kind_"


def fit_start(start: Start, logits: Tensor, labels: Tensor, seed: int) -> tuple[Calibrator, Tensor]:
    """Return the start, fitted on all points, and the probabilities to patch, float64 [n, C].

    Dirichlet's penalties are tuned once, on all points. `seed` determines this and the fifths.
    """
    calibrator = STARTS[start]()
    if isinstance(calibrator, DirichletCalibration | PooledScaling):
        calibrator.seed = seed
    calibrator._fit(logits, labels)
    if isinstance(calibrator, PooledScaling):
        return calibrator, calibrator.cross_fitted
    if start in get_args(PaperStart):
        return calibrator, calibrator._predict_proba(logits)
    again = STARTS[start]()
    if isinstance(calibrator, DirichletCalibration):
        again.set_params(odir=calibrator.odir_, l2=calibrator.l2_)
    probabilities = logits.new_empty(logits.shape, dtype=torch.float64)
    for kept, held in folds_of(labels, seed):
        again._learn(logits[kept], labels[kept])
        probabilities[held] = again._predicted(logits[held])
    return calibrator, probabilities


def stored(start: Calibrator) -> dict[str, Any]:
    """Return the start's class and learned values, under names that begin with `start_`."""
    learned = {name: value for name, value in vars(start).items() if name.endswith("_")}
    learned.pop("tuning_log_", None)  # no array; files have none of it
    return {KIND: type(start).__name__} | {PREFIX + name: v for name, v in learned.items()}


def restored(attributes: Mapping[str, Any]) -> Calibrator:
    """Return the start whose `stored` values are among `attributes`."""
    by_name = {kind.__name__: kind for kind in STARTS.values()}
    calibrator = by_name[str(attributes[KIND])]()
    for name, value in attributes.items():
        if name.startswith(PREFIX) and name != KIND:
            setattr(calibrator, name.removeprefix(PREFIX), value)
    return calibrator
