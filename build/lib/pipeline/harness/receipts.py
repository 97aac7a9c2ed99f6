"""What DVC tracks: one small file per stage, suite and calibrator, the same for the same results.

A stage's real output is spread over many unit folders, which DVC would copy and hash one by one. A
receipt names them with their checksums; it is written when all of a suite's units are done, and
holds no times, so an unchanged result leaves it unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from pipeline.harness.artifacts import write_json
from pipeline.harness.units import Request, Settings


def receipt_path(settings: Settings, suite: str, name: str) -> Path:
    """results/suites/<suite>/<name>.json"""
    return Path(settings["paths"]["results"]) / "suites" / suite / f"{name}.json"


def write_receipt(request: Request, settings: Settings, name: str, content: Any) -> None:
    """Write a receipt, unless the command line asked for less than the whole suite."""
    if request.whole_suite:
        write_json(receipt_path(settings, request.suite, name), content)


def mean_and_spread(values: Sequence[float]) -> dict[str, float | None]:
    """Mean over splits and two standard errors (null for a single split)."""
    from pipeline.reporting.collect import two_standard_errors

    spread = two_standard_errors(values) if len(values) > 1 else None
    return {"mean": fmean(values), "two_se": spread}
