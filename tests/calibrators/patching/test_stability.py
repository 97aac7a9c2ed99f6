"""The last bit of a number decides nothing."""

import numpy as np
import pytest
from sklearn.base import clone

from tests.calibrators.patching.patching_problems import over_confident
from utility_calibration.calibrators import LogitShiftPatching, UtilityPatching

TUNED = UtilityPatching(tuning_runs=6, max_steps=20, sampled_count=20)
SAMPLED = UtilityPatching(step_size=1.0, steps=25, sampled=True, sampled_count=40)
FIXED = UtilityPatching(step_size=1.0, steps=40, sampled=False)
POOLED = LogitShiftPatching(max_steps=40)
CASES = {
    "fixed": ("made up", FIXED),
    "sampled": ("cifar10_resnet56", SAMPLED),
    "tuned": ("cifar100_resnet56", TUNED),
    "pooled": ("cifar10_resnet56", POOLED),
}


def one_ulp(logits, seed):
    """Up or down at random, every number, in float64."""
    up = np.random.default_rng(seed).random(logits.shape) < 0.5
    return np.nextafter(logits.astype(np.float64), np.where(up, np.inf, -np.inf))


def decisions(calibrator):
    tried = [run["parameters"] for run in calibrator.tuning_log_]
    names = ("step_size_", "step_limit_", "sampled_", "stopped_")
    chosen = [getattr(calibrator, name, None) for name in names]
    patches = (calibrator.kinds_, calibrator.indices_, calibrator.shifts_.round(9))
    return [tried, chosen, [part.tolist() for part in patches]]


@pytest.mark.parametrize("case", CASES)
def test_the_last_bit_of_logits_changes_no_decision_and_no_probability(case, request):
    name, method = CASES[case]
    if name == "made up":
        logits, labels = over_confident(3900, 40, 5)
        fit, test = np.arange(900), np.arange(900, 3900)
    else:
        logits, labels = request.getfixturevalue("real_split")(name)[0]
        fit, test = np.arange(1500), np.arange(1500, 4500)
    fitted = clone(method).fit(logits[fit].astype(np.float64), labels[fit])
    p = fitted.predict_proba(logits[test])
    moved = fitted.predict_proba(one_ulp(logits[test], 1))
    np.testing.assert_allclose(moved, p, rtol=0, atol=1e-9)
    again = clone(method).fit(one_ulp(logits[fit], 2), labels[fit])
    assert decisions(again) == decisions(fitted)
    np.testing.assert_allclose(again.predict_proba(logits[test]), p, rtol=0, atol=1e-6)
