"""The last bit of a number decides nothing: what `UtilityPatching` guarantees."""

import numpy as np
import pytest

from calibrators import UtilityPatching
from tests.calibrators.patching.patching_problems import over_confident

TUNED = {"tuning_runs": 6, "max_steps": 20, "sampled_count": 20}
SAMPLED = {"step_size": 1.0, "steps": 25, "sampled": True, "sampled_count": 40}
FIXED = {"step_size": 1.0, "steps": 40, "sampled": False}
CASES = {"made up": FIXED, "cifar10_resnet56": SAMPLED, "cifar100_resnet56": TUNED}


def one_ulp(logits, seed):
    """Up or down at random, every number, in float64."""
    up = np.random.default_rng(seed).random(logits.shape) < 0.5
    return np.nextafter(logits.astype(np.float64), np.where(up, np.inf, -np.inf))


def decisions(calibrator):
    tried = [run["parameters"] for run in calibrator.tuning_log_]
    chosen = calibrator.step_size_, calibrator.step_limit_, calibrator.sampled_
    patches = (calibrator.kinds_, calibrator.indices_, calibrator.shifts_)
    return [tried, chosen, [part.tolist() for part in patches], calibrator.stopped_]


@pytest.fixture(scope="module", params=CASES)
def case(request):
    return request.param


@pytest.fixture(scope="module")
def problem(request, case):
    """Logits and labels to fit on, and logits to predict."""
    if case == "made up":
        logits, labels = over_confident(3900, 40, 5)
        return logits[:900], labels[:900], logits[900:]
    shared = request.getfixturevalue("shared_dir")
    with np.load(shared / "logits" / f"{case}.npz") as archive:
        logits, labels = archive["logits"], archive["labels"]
    order = np.random.default_rng(1).permutation(len(labels))
    fit, test = order[:1500], order[1500:4500]
    return logits[fit], labels[fit], logits[test]


@pytest.fixture(scope="module")
def fitted(case, problem):
    logits, labels, _ = problem
    return UtilityPatching(**CASES[case]).fit(logits.astype(np.float64), labels)


def test_the_last_bit_of_test_logits_changes_no_probability(fitted, problem):
    p, moved = (fitted.predict_proba(z) for z in (problem[2], one_ulp(problem[2], 1)))
    np.testing.assert_allclose(moved, p, rtol=0, atol=1e-9)


def test_the_last_bit_of_calibration_logits_changes_no_decision(fitted, problem):
    logits, labels, test = problem
    again = UtilityPatching(**fitted.get_params()).fit(one_ulp(logits, 2), labels)
    assert decisions(again) == decisions(fitted)
    expected = fitted.predict_proba(test)
    np.testing.assert_allclose(again.predict_proba(test), expected, rtol=0, atol=1e-6)
