"""What DVC tracks of stages whose files are committed, not cached: their checksums, in one file.

A receipt is written when all of a suite is done, and holds no times, so an unchanged result leaves
it unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipeline.harness.artifacts import write_json
from pipeline.harness.units import Request, Settings


def receipt_path(settings: Settings, suite: str, name: str) -> Path:
    """results/suites/<suite>/<name>.json"""
    return Path(settings["paths"]["results"]) / "suites" / suite / f"{name}.json"


def write_receipt(request: Request, settings: Settings, name: str, content: Any) -> None:
    """Write a receipt, unless the command line asked for less than the whole suite."""
    if request.whole_suite:
        write_json(receipt_path(settings, request.suite, name), content)


def two_standard_errors(values: Sequence[float] | NDArray[np.float64]) -> float:
    """2 x std(ddof=1) / sqrt(count), the spread of the paper's tables.

    NaN for a single split, or where a value is infinite.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.size < 2 or not np.isfinite(array).all():
        return float("nan")
    return float(2.0 * array.std(ddof=1) / np.sqrt(array.size))
