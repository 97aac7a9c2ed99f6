"""The update of logit-shift patching: exact in one dimension, and what it guarantees."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from tests.calibrators.patching.patching_problems import over_confident, softmax
from tests.calibrators.patching.test_state import vectors_of
from utility_calibration.calibrators.patching.audit import witness_of
from utility_calibration.calibrators.patching.state import PatchedForecast
from utility_calibration.calibrators.patching.update import LARGEST_SHIFT, ExponentialTilting
from utility_calibration.calibrators.patching.utilities import Utility
from utility_calibration.metrics import Decision

CLASSES = 5
RANDOM = np.random.default_rng(3)
PAYOFF = RANDOM.uniform(-1, 1, CLASSES)
UTILITIES = {
    "class": Utility.standard("class", 2),
    "top-K": Utility.standard("top_k", 1),
    "linear": Utility.standard("linear", 0, PAYOFF),
    "rank": Utility.standard("rank", 0, -np.sort(-PAYOFF)),
    "decision": Utility("own", 0, Decision(RANDOM.uniform(0, 3, (1, CLASSES, 3))), 0),
}


@pytest.fixture
def state():
    logits, labels = over_confident(400, CLASSES, seed=1)
    return PatchedForecast(softmax(logits), labels)


def one_patch(state, utility, shrinkage=1.0):
    """Apply one patch; return its witness, its vectors, its signed step and what it predicted."""
    update, witness = ExponentialTilting(shrinkage), witness_of(state, utility)
    vectors = utility.vectors(state, witness.rows)
    step = update.step(state, witness, vectors)
    signed = -witness.sign * step.size
    moved = update.moved(state, witness.rows, vectors, signed)
    return witness, moved, signed, step.change


@pytest.mark.parametrize("utility", UTILITIES.values(), ids=UTILITIES)
def test_the_step_minimises_the_nll_of_the_patched_points(state, utility):
    witness, _, signed, _ = one_patch(state, utility)
    u, p = vectors_of(state, utility)[witness.rows], state.probabilities[witness.rows]
    of_label = np.arange(len(p)), state.labels[witness.rows]

    def nll(delta):
        total = np.log((p * np.exp(delta * u)).sum(axis=1))
        return float((total - delta * u[of_label]).sum())

    found = minimize_scalar(nll, bounds=(-5, 5), method="bounded", options={"xatol": 1e-9})
    assert signed == pytest.approx(found.x, abs=1e-5)


@pytest.mark.parametrize("shrinkage", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("utility", UTILITIES.values(), ids=UTILITIES)
def test_the_nll_falls_by_what_the_step_says_and_by_no_less_than_the_guarantee(
    state, utility, shrinkage
):
    witness, moved, _, change = one_patch(state, utility, shrinkage)
    of_label = np.arange(len(moved)), state.labels[witness.rows]
    before = np.log(state.probabilities[witness.rows][of_label]).sum()
    after = np.log(moved[of_label]).sum()
    assert float(before - after) == pytest.approx(change, rel=1e-9)
    u = vectors_of(state, utility)[witness.rows]
    span = float((u.max(axis=1) - u.min(axis=1)).max())
    assert -change / len(state.labels) >= 2 * shrinkage * (witness.error / span) ** 2 > 0


def test_an_event_that_always_happens_is_shifted_by_the_bound():
    state = PatchedForecast(np.tile([0.3, 0.7], (20, 1)), np.zeros(20, np.int64))
    _, moved, signed, change = one_patch(state, Utility.standard("class", 0))
    assert signed == pytest.approx(LARGEST_SHIFT)
    assert bool(((moved > 0) & (moved < 1)).all())
    assert change < 0


def test_a_payoff_that_is_the_same_for_all_classes_is_no_reason_to_move(state):
    same = Utility.standard("linear", 0, np.full(CLASSES, 0.7))
    witness = witness_of(state, same)
    vectors = same.vectors(state, witness.rows)
    assert witness.error == pytest.approx(0, abs=1e-12)
    assert ExponentialTilting(1.0).step(state, witness, vectors) is None
