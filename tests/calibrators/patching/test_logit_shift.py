"""Logit-shift patching as a calibrator."""

import numpy as np
import pytest
from sklearn.base import clone

from calibrators import (
    DirichletCalibration,
    LogitShiftPatching,
    StructuredMatrixScaling,
    TemperatureScaling,
    Uncalibrated,
    VectorScaling,
)
from calibrators.pooled.pool import PooledScaling
from metrics import negative_log_likelihood
from metrics.validation import InputError
from tests.calibrators.patching.patching_problems import over_confident

CLASSES = 6
STARTS = {
    "pooled": PooledScaling(),
    "softmax": Uncalibrated(),
    "temperature": TemperatureScaling(),
    "vector": VectorScaling(),
    "structured": StructuredMatrixScaling(),
    "dirichlet": DirichletCalibration(seed=0),
}


@pytest.fixture(scope="module")
def problem():
    return over_confident(1200, CLASSES, seed=5)


@pytest.fixture(scope="module")
def fitted(problem):
    return LogitShiftPatching(max_steps=40).fit(*problem)


def test_the_calibration_nll_falls_with_every_patch_down_to_that_of_the_predictions(
    problem, fitted
):
    logits, labels = problem
    before = TemperatureScaling().fit(logits, labels).predict_proba(logits)
    assert len(fitted.steps_) > 5
    assert fitted.losses_[0] == pytest.approx(negative_log_likelihood(before, labels), abs=1e-12)
    assert (np.diff(fitted.losses_) < 0).all()
    after = negative_log_likelihood(fitted.predict_proba(logits), labels)
    assert fitted.losses_[-1] == pytest.approx(after, abs=1e-12)


@pytest.mark.parametrize("start", STARTS)
def test_without_patches_the_start_predicts(problem, start):
    logits, labels = problem
    calibrator = LogitShiftPatching(start=start, steps=0).fit(logits, labels)
    expected = clone(STARTS[start]).fit(logits, labels).predict_proba(logits)
    np.testing.assert_allclose(calibrator.predict_proba(logits), expected, rtol=1e-14)


@pytest.mark.parametrize("start", ["temperature", "pooled"])
def test_the_last_bit_of_the_logits_changes_no_patch(problem, start):
    logits, labels = problem
    calibrator = LogitShiftPatching(start, max_steps=40)
    fitted = clone(calibrator).fit(logits, labels)
    logits = logits.astype(np.float64)
    signs = np.random.default_rng(0).choice([-np.inf, np.inf], logits.shape)
    moved = calibrator.fit(np.nextafter(logits, signs), labels)
    np.testing.assert_array_equal(moved.kinds_, fitted.kinds_)
    np.testing.assert_array_equal(moved.indices_, fitted.indices_)
    np.testing.assert_allclose(
        moved.predict_proba(logits), fitted.predict_proba(logits), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": "isotonic"}, "start: 'isotonic', expected pooled, softmax, temperature, vector"),
        ({"objective": "u_comb"}, "objective: 'u_comb', expected nll or brier"),
        ({"shrinkage": 0}, "shrinkage: 0, expected a number above 0, at most 1"),
    ],
)
def test_options_out_of_range_are_refused_in_one_line(problem, options, message):
    with pytest.raises(InputError, match=message):
        LogitShiftPatching(**options).fit(*problem)
