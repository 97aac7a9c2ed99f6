"""Patching to a person's own utilities."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import clone

from tests.calibrators.patching.patching_problems import FITTED, over_confident
from tests.refusals import refuses
from utility_calibration import metrics as m
from utility_calibration.calibrators import LogitShiftPatching, UtilityPatching
from utility_calibration.calibrators.base import Calibrator
from utility_calibration.calibrators.patching.utilities import KINDS
from utility_calibration.metrics import brier_score as brier
from utility_calibration.metrics import negative_log_likelihood as nll

CLASSES = 4
RANDOM = np.random.default_rng(3)
GAINS = np.maximum(RANDOM.uniform(0, 0.4, (2, CLASSES, CLASSES)), np.eye(CLASSES))
OWN = {
    "payoffs": m.Linear(RANDOM.uniform(-1, 1, (3, CLASSES))),
    "in another unit": m.Linear([100.0, -50, 0, 20]),
    "valuations": m.Rank([[1, 0.5, 0.2, 0], [1, 1, 0, 0]]),
    "decision": m.Decision(RANDOM.uniform(0, 2, (CLASSES, 3))),
    "gains": m.GainMatrix(GAINS),
    "similarity": m.Similarity(np.eye(CLASSES) * 0.5 + 0.5),
    "function": m.FunctionUtility(lambda p: np.sqrt(p) - 0.5),
}
METHODS = {
    "projected": UtilityPatching(step_size=1.0, steps=25, sampled=False),
    "tilted": LogitShiftPatching(steps=25, start="softmax"),
}


@pytest.fixture(scope="module")
def problem():
    return over_confident(600, CLASSES, seed=2)


def alone(method, *own):
    return clone(METHODS[method]).set_params(utilities=list(own), standard=False)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", OWN)
def test_patches_lower_the_error_of_ones_own_utilities(problem, method, name):
    own, (logits, labels) = OWN[name], problem
    before = softmax(logits.astype(float), axis=1)
    fitted = alone(method, own).fit(logits, labels)
    after = fitted.predict_proba(logits)
    assert own.calibration_errors(after, labels).max() < 0.6 * (
        own.calibration_errors(before, labels).max()
    )
    assert set(fitted.kinds_) == {KINDS.index("own")}
    loss = brier if method == "projected" else nll
    assert fitted.losses_[-1] == pytest.approx(loss(after, labels), abs=1e-12)  # replayed alike
    if name == "payoffs":  # they compete with the standard ones
        kinds = set(clone(METHODS[method]).set_params(utilities=[own]).fit(*problem).kinds_)
        assert KINDS.index("own") in kinds and len(kinds) > 1


@pytest.mark.parametrize("method", METHODS)
def test_numbers_are_saved_and_loaded_and_a_clone_fits_the_same(problem, method, tmp_path):
    given = [own for name, own in OWN.items() if name != "function"]
    fitted = alone(method, *given).fit(*problem)
    saved = fitted.save(tmp_path / "fitted.npz")
    loaded = Calibrator.load(saved)
    assert loaded.save(tmp_path / "again.npz").read_bytes() == saved.read_bytes()
    np.testing.assert_array_equal(
        loaded.predict_proba(problem[0]), fitted.predict_proba(problem[0])
    )
    assert fitted.utilities == given  # saving leaves it as it is
    for again in (clone(loaded).fit(*problem), clone(fitted).fit(*problem)):
        for name in FITTED:
            np.testing.assert_array_equal(getattr(again, name), getattr(fitted, name))


def test_tuning_looks_at_the_own_utilities_on_the_held_out_points(problem):
    tuned = UtilityPatching(utilities=[OWN["payoffs"]], standard=False, max_steps=10, tuning_runs=3)
    tuned.fit(*problem)
    assert len(tuned.tuning_log_) == 3
    assert tuned.sampled_ is False
    after = OWN["payoffs"].calibration_errors(tuned.predict_proba(problem[0]), problem[1]).max()
    assert after < 0.7 * tuned.errors_[0]
    assert LogitShiftPatching(utilities=[OWN["payoffs"]], max_steps=5).fit(*problem).held_out_.size


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"utilities": [3]}, "int"),
        ({"utilities": OWN["payoffs"]}, "utilities"),
        ({"standard": False}, "standard=False"),
        ({"utilities": [OWN["function"]]}, "saved"),
        ({"utilities": [m.Linear([1, 2, 3])]}, "payoffs"),
    ],
)
def test_mistakes_are_one_line(problem, options, told, tmp_path):
    with refuses(number=told):
        LogitShiftPatching(steps=1, **options).fit(*problem).save(tmp_path / "fitted.npz")
    assert not list(tmp_path.iterdir())
