"""The start of patching: the probabilities of another calibrator.

Patches are fitted on the same calibration points as that calibrator. One parameter (temperature)
fits these points hardly better than new points. With more parameters the residuals would be too
small, so the pool of maps is cross-fitted: a fit on the rest predicts each fifth of the points.
"""

from collections.abc import Mapping
from typing import Any, Literal

from utility_calibration.metrics.arrays import Array

from ..base import Calibrator
from ..pooled.pool import PooledScaling
from ..temperature import TemperatureScaling
from ..uncalibrated import Uncalibrated

PaperStart = Literal["softmax", "temperature"]
Start = Literal["pooled", "softmax", "temperature"]
STARTS: dict[str, type[Calibrator]] = {
    "pooled": PooledScaling,
    "softmax": Uncalibrated,
    "temperature": TemperatureScaling,
}
PREFIX = "start_"
KIND = "start_kind_"


def fit_start(
    start: Start, logits: Array, labels: Array, weights: Array | None, seed: int
) -> tuple[Calibrator, Array]:
    """Return the start, fitted on all points, and the probabilities to patch, float64 [n, C].

    `seed` determines the fifths.
    """
    calibrator: Any = STARTS[start]()
    is_pooled = isinstance(calibrator, PooledScaling)
    if is_pooled:
        calibrator.seed = seed
    calibrator._fit(logits, labels, weights)
    return calibrator, calibrator.cross_fitted if is_pooled else calibrator._predict_proba(logits)


def stored(start: Calibrator) -> dict[str, Any]:
    """Return the start's class and learned values, under names that begin with `start_`."""
    learned = {PREFIX + name: v for name, v in vars(start).items() if name.endswith("_")}
    return {KIND: type(start).__name__} | learned


def restored(attributes: Mapping[str, Any]) -> Calibrator:
    """Return the start whose `stored` values are among `attributes`."""
    by_name = {kind.__name__: kind for kind in STARTS.values()}
    calibrator = by_name[str(attributes[KIND])]()
    for name, value in attributes.items():
        if name.startswith(PREFIX) and name != KIND:
            setattr(calibrator, name.removeprefix(PREFIX), value)
    return calibrator
