"""Fit one unit: a calibrator to the calibration points of one split."""

import hashlib
from dataclasses import asdict
from typing import Any

import numpy as np
from hydra.utils import instantiate

from ..harness.cache import Record, Save
from ..harness.settings import Settings
from ..harness.task import Progress
from ..harness.units import Unit
from .points import CachedLogits, find_logits, groups_at, indices_of, logits_at, weights_at

PREDICTED = 200  # number of test points whose predicted probabilities the record has a digest of


def fitted_on(settings: Settings, cached: CachedLogits, split: int | None) -> Any:
    """The calibrator, fitted to the calibration points of a split, or for None to all points."""
    points = np.arange(cached.n) if split is None else indices_of(settings, cached, split)[0]
    calibrator: Any = instantiate(settings.calibrator, _convert_="all")
    calibrator.inputs = cached.inputs
    calibrator.fit(
        logits_at(cached, points),
        cached.arrays()["labels"][points],
        sample_weight=weights_at(cached, points),
        **groups_at(cached, points, calibrator),
    )
    return calibrator


def fitted(unit: Unit, progress: Progress) -> tuple[Save, Record]:
    """Fit a unit's calibrator; return the function that writes its arrays, and its record."""
    cached = find_logits(unit.settings)
    calibrator = fitted_on(unit.settings, cached, unit.split)
    _, test = indices_of(unit.settings, cached, unit.split)
    if hasattr(calibrator, "cache_predictions"):  # another package's; a loaded one would fit again
        calibrator.cache_predictions(logits_at(cached, test))
    first = test[:PREDICTED]
    groups = groups_at(cached, first, calibrator)
    predicted = calibrator.predict_proba(logits_at(cached, first), **groups)
    runs = [dict(run) for run in getattr(calibrator, "tuning_log_", [])]
    for run in runs:
        run.pop("seconds", None)  # the same fit gives the same record
    return calibrator.save, {
        "benchmark": unit.benchmark,
        "calibrator": unit.calibrator,
        "split": unit.split,
        "config": unit.settings.calibrator,
        "splits": asdict(unit.settings.splits),
        "logits_sha256": cached.sha256,
        "predictions": hashlib.sha256(predicted.tobytes()).hexdigest(),
        "tuning_log": runs,
        "worse_than_temperature": bool(getattr(calibrator, "worse_than_temperature_", False)),
    }
