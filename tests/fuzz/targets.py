"""What is fuzzed: everything that reads a person's file or array."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import metrics
from calibrators import IsotonicCalibration, TemperatureScaling, from_probabilities
from calibrators.base import Calibrator
from pipeline.own.deployed import read_points
from pipeline.sources.file import file_logits
from pipeline.sources.similarity_file import file_similarity

_CALIBRATOR = TemperatureScaling().fit(np.eye(3) + np.arange(3), np.arange(3))

READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "npz": (".npz", lambda path: file_logits(path=path)),
    "csv": (".csv", lambda path: file_logits(path=path)),
    "similarity": (".npz", lambda path: file_similarity(path=path)),
    "calibrator": (".npz", lambda path: Calibrator.load(path)),
    "points": (".npz", lambda path: read_points(path, _CALIBRATOR)),
    "table": (".csv", lambda path: read_points(path, _CALIBRATOR)),
}
"""Ending of the file, and the function that reads it."""

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "accuracy": metrics.accuracy,
    "brier_score": metrics.brier_score,
    "negative_log_likelihood": metrics.negative_log_likelihood,
    "binned_top_class_error": metrics.binned_top_class_error,
    "binned_class_wise_error": metrics.binned_class_wise_error,
    "utility_calibration": metrics.utility_calibration,
    "worst_interval": metrics.worst_interval,
    "ecdf": lambda errors, _: metrics.ecdf(errors),
    "from_probabilities": lambda p, _: from_probabilities(p),
    "TopK": lambda p, y: metrics.TopK().calibration_errors(p, y),
    "ClassWise": lambda p, y: metrics.ClassWise().worst(p, y),
    "Linear": lambda payoffs, y: metrics.Linear(payoffs).calibration_errors([[0.5, 0.5, 0]], y),
    "Rank": lambda values, y: metrics.Rank(values).calibration_errors([[0.5, 0.5, 0]], y),
    "Similarity": lambda s, y: metrics.Similarity(s).calibration_errors([[0.5, 0.5, 0]], y),
    "Decision": lambda loss, y: metrics.Decision(loss).calibration_errors([[0.5, 0.5, 0]], y),
    "TemperatureScaling": lambda z, y: TemperatureScaling().fit(z, y).predict_proba(z),
    "IsotonicCalibration": lambda z, y: IsotonicCalibration().fit(z, y).predict_proba(z),
}
"""Public functions of two arguments."""
