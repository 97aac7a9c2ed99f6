"""Weights of the calibration points: the same as so many points, where a method takes them."""

import numpy as np
import pytest

from tests.calibrators.test_conventions import METHODS
from tests.refusals import refuses
from utility_calibration.calibrators import (
    DirichletCalibration,
    LogitShiftPatching,
    StructuredMatrixScaling,
    TemperatureScaling,
    VectorScaling,
)
from utility_calibration.calibrators.dirichlet.calibrator import TuningFits
from utility_calibration.metrics.kernels.softmax import softmax

WEIGHTED = {
    **{name: method for name, method in METHODS.items() if method.takes_weights},
    "temperature_brier": TemperatureScaling(loss="brier"),
    "vector_brier": VectorScaling(loss="brier"),
    "dirichlet_brier": DirichletCalibration(odir=1.0, l2=0.1, loss="brier"),
}
del WEIGHTED["Uncalibrated"]  # it takes weights, and has no use for them
del WEIGHTED["PooledScaling"]  # its folds are of rows; test_pooled.py puts copies into one fold


@pytest.mark.parametrize("method", WEIGHTED.values(), ids=list(WEIGHTED))
def test_a_weight_counts_like_so_many_points(method, made_up):
    logits, labels = made_up(n=150)
    counts = np.random.default_rng(0).integers(0, 4, 150)
    weighted = method.fit(logits, labels, counts).predict_proba(logits)
    repeated = method.fit(np.repeat(logits, counts, axis=0), np.repeat(labels, counts))
    # Dirichlet's solver ends within 1e-9 nats of the optimum, where p is off by the root of that.
    atol = 1e-4 if isinstance(method, DirichletCalibration | StructuredMatrixScaling) else 1e-6
    np.testing.assert_allclose(weighted, repeated.predict_proba(logits), rtol=0, atol=atol)
    plain = method.fit(logits, labels).predict_proba(logits)
    assert abs(plain - weighted).max() > 1e-3
    ones = method.fit(logits, labels, np.ones(150)).predict_proba(logits)
    np.testing.assert_array_equal(plain, ones)


def test_the_hold_out_of_dirichlets_tuning_is_weighted(made_up):
    logits, labels = made_up(n=300)
    weights = np.random.default_rng(3).exponential(size=300)
    data = logits.astype(np.float64), labels, weights
    runs = TuningFits(DirichletCalibration(on="logits"), *data)
    score = runs.score(odir=20.0, l2=5.0)
    held = np.random.default_rng(0).permutation(300)[:90]
    found = runs.earlier[-1][1]  # the map that was scored
    p = softmax(logits[held] @ found[:, :5].T + found[:, 5])
    losses = -np.log(p[np.arange(90), labels[held]])
    assert score == pytest.approx(np.average(losses, weights=weights[held]), rel=1e-12)
    assert abs(losses.mean() - score) > 1e-2  # without weights it is another number


@pytest.mark.parametrize("weights", [np.ones(39), -np.ones(40), np.zeros(40), np.full(40, np.nan)])
def test_weights_that_are_none_are_refused(weights, made_up):
    with refuses("sample_weight"):
        TemperatureScaling().fit(*made_up(n=40), weights)
    with refuses("sample_weight", fix="draw points"):
        LogitShiftPatching().fit(*made_up(n=40), np.ones(40))
