"""What is fuzzed: everything that reads a person's file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from calibrators import TemperatureScaling
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
