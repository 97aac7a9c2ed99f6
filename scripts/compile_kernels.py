"""Compile the kernels as the first fits and scores would, on two cores; later runs find them done.

python scripts/compile_kernels.py
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

CLASSES, POINTS = 4, 600


def made_up() -> tuple[Any, Any]:
    """Logits float32 [n, C] and labels [n] that follow them."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, CLASSES, POINTS)
    logits = rng.normal(size=(POINTS, CLASSES)) + 2 * np.eye(CLASSES)[labels]
    return 2 * logits.astype(np.float32), labels


def fit_patchings() -> None:
    """The kernels of both patchings."""
    from calibrators import LogitShiftPatching, UtilityPatching

    for calibrator in (UtilityPatching(tuning_runs=4), LogitShiftPatching(max_steps=3)):
        calibrator.fit(*made_up()).predict_proba(made_up()[0])


def fit_others_and_score() -> None:
    """Those of the other calibrators and of the metrics."""
    from calibrators import (
        DirichletCalibration,
        IsotonicCalibration,
        TemperatureScaling,
        VectorScaling,
    )
    from metrics import scorecard

    logits, labels = made_up()
    simple = [TemperatureScaling(), VectorScaling(), IsotonicCalibration()]
    for calibrator in (*simple, DirichletCalibration(tuning_runs=1)):
        probabilities = calibrator.fit(logits, labels).predict_proba(logits)
    scorecard(probabilities, labels, utilities=8, floor_repetitions=8, bootstrap_repetitions=8)


def main() -> None:
    """Compile both halves at once."""
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        for done in (pool.submit(fit_patchings), pool.submit(fit_others_and_score)):
            done.result()


if __name__ == "__main__":
    main()
