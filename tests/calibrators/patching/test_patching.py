"""Iterative patching: what Algorithm 1 promises, and where it ends."""

import numpy as np
import pytest

from tests.calibrators.patching.patching_problems import (
    FITTED,
    over_confident,
    softmax,
    tied_u_comb,
)
from utility_calibration.calibrators import UtilityPatching
from utility_calibration.calibrators.patching.state import PatchedForecast
from utility_calibration.metrics import brier_score, utility_calibration
from utility_calibration.metrics.kernels.threads import set_threads

FIXED = {"step_size": 1.0, "steps": 30, "sampled": False}
SAMPLED = {**FIXED, "sampled": True, "sampled_count": 40}
THEORY = {**FIXED, "steps": 60, "line_search": "theory"}
RUNS = {"sampled": SAMPLED, "theory": THEORY}
"""Others are compared patch by patch with the paper's algorithm (test_reference.py)."""


@pytest.fixture(scope="module", params=RUNS)
def fitted(request):
    """(calibrator, logits, labels) with sampled utilities, and with theory's steps."""
    logits, labels = over_confident(600, 6, 0)
    return UtilityPatching(**RUNS[request.param]).fit(logits, labels), logits, labels


def test_every_patch_corrects_the_worst_interval_of_its_time(fitted):
    calibrator, logits, labels = fitted
    state = PatchedForecast(softmax(logits), labels)
    for t, patch in enumerate(calibrator.patches()):
        v, u = patch.utility.predicted_and_realized(state)
        inside = (v >= patch.low) & (v <= patch.high)
        signed = float((u - v)[inside].sum()) / len(labels)
        assert patch.error <= float(utility_calibration(v, u)) + 1e-12
        assert abs(signed) == pytest.approx(patch.error, abs=1e-12)
        assert np.sign(patch.shift) == np.sign(signed)  # towards what is realized
        p = state.probabilities
        assert patch.error >= tied_u_comb(p, labels) - 1e-9
        assert calibrator.losses_[t] == pytest.approx(brier_score(p, labels), abs=1e-12)
        patch.apply(state, calibrator._update())
    assert len(calibrator.losses_) == len(calibrator.shifts_) + 1 > 10
    assert (np.diff(calibrator.losses_) < 0).all()
    after = brier_score(calibrator.predict_proba(logits), labels)
    assert calibrator.losses_[-1] == pytest.approx(after, abs=1e-12)
    if calibrator.line_search == "theory":  # Proposition A.1: η = err / C, and what it promises
        np.testing.assert_allclose(np.abs(calibrator.shifts_), calibrator.errors_ / 6, rtol=1e-12)
        assert (-np.diff(calibrator.losses_) >= calibrator.errors_**2 / 6 - 1e-15).all()


def test_a_tolerance_ends_the_run():
    logits, labels = over_confident(600, 4, 3)
    assert len(UtilityPatching(**FIXED, tolerance=0.9).fit(logits, labels).shifts_) == 0
    some = UtilityPatching(**{**FIXED, "steps": 500}, tolerance=0.02).fit(logits, labels)
    assert 0 < len(some.shifts_) < 500
    assert (some.errors_ > 0.02).all()
    assert some.stopped_ == "calibrated"
    assert tied_u_comb(some.predict_proba(logits), labels) <= 0.02


@pytest.mark.parametrize("options", [FIXED, SAMPLED], ids=["fixed", "sampled"])
def test_the_same_seed_fits_the_same_bits_on_any_number_of_threads(options):
    logits, labels = over_confident(900, 60, 6)
    runs = []
    for threads in (1, 2, 1):
        set_threads(threads)
        runs.append(UtilityPatching(**{**options, "steps": 12}, seed=5).fit(logits, labels))
    for other in runs[1:]:
        for name in FITTED:
            np.testing.assert_array_equal(getattr(other, name), getattr(runs[0], name))
