"""The same bits for any number of threads, also where there are several blocks of rows."""

import numpy as np
import pytest

from utility_calibration.calibrators import (
    DirichletCalibration,
    StructuredMatrixScaling,
    TemperatureScaling,
    VectorScaling,
)
from utility_calibration.calibrators.pooled.pool import PooledScaling
from utility_calibration.metrics.kernels import threads

METHODS = [
    TemperatureScaling(),
    VectorScaling(max_iterations=5),
    StructuredMatrixScaling(max_iterations=5),
    DirichletCalibration(odir=1e3, l2=1.0, max_iterations=4),
    PooledScaling(),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_every_method_fits_and_predicts_the_same_bits_on_one_thread_and_on_three(
    method, made_up, monkeypatch
):
    monkeypatch.setattr(type(method), "one_thread_up_to", 0)
    monkeypatch.setattr("utility_calibration.calibrators.dirichlet.linear_map.ONE_THREAD_WORK", 0)
    n = 4500 if isinstance(method, PooledScaling) else 20_000  # two blocks of rows or more
    logits, labels = made_up(n=n, classes=60)
    answers = []
    for count in (1, 3):
        monkeypatch.setattr(threads, "THREADS", [count])
        answers.append(method.fit(logits, labels).predict_proba(logits[:8000]))
    np.testing.assert_array_equal(*answers)
