"""Algorithm 1 as the paper prints it beside the fast one: the same patches, on real logits."""

from types import MappingProxyType

import numpy as np
import pytest

from tests.calibrators.patching.patching_problems import over_confident, softmax
from utility_calibration.calibrators import UtilityPatching
from utility_calibration.calibrators import reference as plain
from utility_calibration.calibrators.patching.audit import StandardFamilies, find_worst
from utility_calibration.calibrators.patching.state import PatchedForecast
from utility_calibration.calibrators.patching.utilities import Utility
from utility_calibration.metrics import brier_score
from utility_calibration.metrics.reference import utility_calibration

FIXED = {"step_size": 1.0, "steps": 30, "sampled": False}


JAXOPT = {
    "armijo": 1e-4,
    "decrease": 0.8,
    "capped": False,
    "trials": 30,
}  # as the plain version says it


def assert_same_patches(
    logits, labels, steps=30, line_search="capped", search=MappingProxyType({})
):
    present, labels = np.unique(labels, return_inverse=True)
    logits, classes = logits[:, present], len(present)
    options = {**FIXED, "steps": steps, "line_search": line_search}
    calibrator = UtilityPatching(**options).fit(logits, labels)
    p, patches = plain.algorithm_1(softmax(logits), labels, steps, **search)
    # Kinds are 0 by class and 1 by rank.
    utilities = calibrator.indices_ + classes * calibrator.kinds_
    assert [patch.utility for patch in patches] == utilities.tolist()
    np.testing.assert_array_equal([-patch.xi * patch.eta for patch in patches], calibrator.shifts_)
    for name, found in (("low", "lows_"), ("high", "highs_"), ("error", "errors_")):
        expected = [getattr(patch, name) for patch in patches]
        np.testing.assert_allclose(getattr(calibrator, found), expected, rtol=0, atol=1e-6)
    # The fast version rounds what it moves to multiples of 2^-32, the plain one does not.
    np.testing.assert_allclose(calibrator.predict_proba(logits), p, rtol=0, atol=1e-6)
    assert calibrator.losses_[-1] == pytest.approx(brier_score(p, labels), abs=1e-8)
    return patches


@pytest.mark.parametrize("search", [("capped", {}), ("jaxopt", JAXOPT)], ids=["capped", "jaxopt"])
@pytest.mark.parametrize("name", ["cifar10_resnet56", "cifar100_resnet56"])
def test_thirty_patches_on_real_logits_are_those_of_the_paper(name, search, real_split):
    (logits, labels), _ = real_split(name)
    points = slice(0, 30_000 // logits.shape[1])
    assert len(assert_same_patches(logits[points], labels[points], 30, *search)) == 30


@pytest.mark.parametrize(("n", "classes"), [(40, 2), (300, 5), (60, 10)])
def test_patches_on_made_up_logits_are_those_of_the_paper(n, classes):
    assert_same_patches(*over_confident(n, classes, 3), steps=12)


@pytest.mark.parametrize(("n", "classes"), [(1, 2), (200, 3), (80, 40)])
def test_the_audit_finds_the_largest_error_of_all_utilities_sorted_one_by_one(n, classes):
    logits, labels = over_confident(n, classes, 5)
    state = PatchedForecast(softmax(logits), labels)
    auditor = StandardFamilies(30, seed=2)
    utilities = [Utility.standard(kind, k) for kind in ("class", "top_k") for k in range(classes)]
    for kind, payoffs in zip(("linear", "rank"), auditor.draw(7, classes), strict=True):
        utilities += [Utility.standard(kind, 0, payoff) for payoff in payoffs]
    pairs = [utility.predicted_and_realized(state) for utility in utilities]
    largest = max(utility_calibration(v, u, plain.TIED) for v, u in pairs)
    assert find_worst(auditor(state, 7))[2] == pytest.approx(largest, abs=1e-12)
