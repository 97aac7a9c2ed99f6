"""Compile the kernels as the first fits and scores would; later runs find them compiled.

python -m utility_calibration.scripts.maintain.compile_kernels
"""

from __future__ import annotations

import warnings

import numpy as np

from utility_calibration import calibrators
from utility_calibration.metrics import scorecard

CLASSES, POINTS = 4, 2400
"""Of so many points a temperature first takes every fourth. Numba compiles a kernel of its own for
their labels, because these are not side by side in memory."""


def main() -> None:
    """Fit every calibrator to few points that follow their labels, and score one."""
    warnings.simplefilter("ignore")  # what they say of these random points is of no use
    rng = np.random.default_rng(0)
    labels = rng.integers(0, CLASSES, POINTS)
    logits = (rng.normal(size=(POINTS, CLASSES)) + 2 * np.eye(CLASSES)[labels]).astype(np.float32)
    for calibrator in (
        calibrators.TemperatureScaling(),
        calibrators.VectorScaling(),
        calibrators.IsotonicCalibration(),
        calibrators.StructuredMatrixScaling(max_iterations=2),
        calibrators.DirichletCalibration(tuning_runs=1, fallback=False),
        calibrators.UtilityPatching(tuning_runs=4),
        calibrators.LogitShiftPatching(max_steps=3),
    ):
        probabilities = calibrator.fit(logits, labels).predict_proba(logits)
    scorecard(probabilities, labels, utilities=8, floor_repetitions=8, bootstrap_repetitions=8)


if __name__ == "__main__":
    main()
