"""Rows that walk through all patches by themselves end where forecasts moved patch by patch do."""

import numpy as np
import pytest
import torch

from calibrators import LogitShiftPatching, UtilityPatching
from calibrators.patching.start import predicted
from calibrators.patching.state import PatchedForecast
from tests.calibrators.patching.patching_problems import over_confident

PROJECTED = {"step_size": 1.0, "steps": 25}
CALIBRATORS = {
    "projected": UtilityPatching(**PROJECTED, sampled=False),
    "projected, sampled": UtilityPatching(**PROJECTED, sampled=True, sampled_count=30),
    "tilted": LogitShiftPatching(steps=25, shrinkage=1.0),
    "tilted, sampled": LogitShiftPatching(steps=25, sampled_count=30),
    "none": UtilityPatching(step_size=1.0, steps=0, sampled=False),
}


def patch_by_patch(calibrator, logits):
    state = PatchedForecast(predicted(calibrator.start, vars(calibrator), torch.tensor(logits)))
    for patch in calibrator.patches():
        patch.apply(state, calibrator._update())
    return state.probabilities.numpy()


@pytest.fixture(scope="module", params=CALIBRATORS)
def fitted(request):
    return CALIBRATORS[request.param]


@pytest.mark.parametrize("classes", [2, 9, 40, 200])
def test_rows_end_where_patched_forecasts_do(fitted, classes):
    logits, labels = over_confident(1500, classes, classes)
    fitted.fit(logits[:500], labels[:500])
    expected = patch_by_patch(fitted, logits)
    found = fitted.predict_proba(logits)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    alone = [fitted.predict_proba(row[None])[0] for row in logits[:20]]
    np.testing.assert_array_equal(alone, found[:20])


def test_all_kinds_of_payoffs_are_replayed():
    """The test above sees each of them."""
    kinds = set()
    for calibrator in CALIBRATORS.values():
        logits, labels = over_confident(500, 9, 9)
        kinds |= set(calibrator.fit(logits, labels).kinds_.tolist())
    assert kinds == {0, 1, 2, 3}
