"""Fit one unit: a calibrator to the calibration points of one split."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from typing import Any

import torch
from hydra.utils import instantiate

from calibrators.peers import PeerCalibration
from pipeline.harness.cache import Record, Save
from pipeline.harness.parallel import Progress
from pipeline.harness.units import Unit
from pipeline.scoring.cached_logits import find_logits, groups_at, rows_of, weights_at
from pipeline.scoring.splits import indices_of

PREDICTED = 200
"""Number of test points whose predicted probabilities the record has a digest of."""


def fitted(unit: Unit, device: str, progress: Progress) -> tuple[Save, Record]:
    """Fit a unit's calibrator; return the function that writes its arrays, and its record."""
    cached = find_logits(unit.settings)
    logits, labels = cached.arrays()["logits"], cached.arrays()["labels"]
    points, test = indices_of(unit.settings, cached, unit.split)
    calibrator: Any = instantiate(unit.settings.calibrator, _convert_="all")
    calibrator.fit(
        torch.from_numpy(rows_of(logits, points)).to(device),
        torch.from_numpy(labels[points]).to(device),
        sample_weight=weights_at(cached, points),
        **groups_at(cached, points, calibrator),
    )
    if isinstance(calibrator, PeerCalibration):  # a loaded one would have to fit again
        calibrator.cache_predictions(torch.from_numpy(rows_of(logits, test)).to(device))
    rows = torch.from_numpy(rows_of(logits, test[:PREDICTED])).to(device)
    groups = groups_at(cached, test[:PREDICTED], calibrator)
    predicted = calibrator.predict_proba(rows, **groups).cpu().numpy().tobytes()
    log = getattr(calibrator, "tuning_log_", [])
    return calibrator.save, {
        "benchmark": unit.benchmark,
        "calibrator": unit.calibrator,
        "split": unit.split,
        "config": unit.settings.calibrator,
        "splits": asdict(unit.settings.splits),
        "logits_sha256": cached.sha256,
        "predictions": hashlib.sha256(predicted).hexdigest(),
        "tuning_log": [{k: v for k, v in run.items() if k != "seconds"} for run in log],
        "worse_than_temperature": bool(getattr(calibrator, "worse_than_temperature_", False)),
    }
