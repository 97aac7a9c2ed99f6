"""Logit-shift patching as a calibrator."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone

from tests.calibrators.patching.patching_problems import over_confident
from tests.refusals import refuses
from utility_calibration.calibrators import LogitShiftPatching, TemperatureScaling, Uncalibrated
from utility_calibration.calibrators.grouped import checked_groups
from utility_calibration.calibrators.pooled.pool import PooledScaling
from utility_calibration.metrics import ClassWise, negative_log_likelihood

CLASSES = 6
STARTS = {
    "pooled": PooledScaling(),
    "softmax": Uncalibrated(),
    "temperature": TemperatureScaling(),
}


@pytest.fixture(scope="module")
def problem():
    return over_confident(1200, CLASSES, seed=5)


@pytest.fixture(scope="module")
def fitted(problem):
    return LogitShiftPatching("temperature", max_steps=12).fit(*problem)


def test_the_calibration_nll_falls_with_every_patch_down_to_that_of_the_predictions(
    problem, fitted
):
    logits, labels = problem
    before = TemperatureScaling().fit(logits, labels).predict_proba(logits)
    assert len(fitted.shifts_) > 5
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


def points_of_groups(n):
    """Logits, labels and names of three groups, of which one has drifted."""
    generator = np.random.default_rng(0)
    names = np.array(["a", "b", "c"])[generator.integers(0, 3, n)]
    logits = 2 * generator.normal(size=(n, 4))
    drift = np.where(names == "c", 1.5, 0.0)[:, None] * np.array([1.0, -1, 0, 0])
    return logits, (logits + drift + generator.gumbel(size=logits.shape)).argmax(axis=1), names


def test_every_prediction_takes_groups_and_misses_them():
    logits, labels, names = points_of_groups(900)
    method = LogitShiftPatching(max_steps=10, start="temperature").fit(logits, labels, groups=names)
    p = method.predict_proba(logits, groups=names)
    assert len(method.group_names_)
    np.testing.assert_array_equal(method.predict(logits, names), p.argmax(axis=1))
    np.testing.assert_allclose(np.exp(method.predict_log_proba(logits, names)), p, rtol=1e-12)
    hits = p.argmax(axis=1) == labels
    assert method.score(logits, labels, groups=names) == pytest.approx(hits.mean())
    for call in (
        lambda: method.predict_proba(logits),
        lambda: method.predict_log_proba(logits),
        lambda: method.predict(logits),
        lambda: method.score(logits, labels),
        lambda: method.predict(logits, names[:5]),
        lambda: LogitShiftPatching(steps=1).fit(logits, labels).predict(logits, names),
        lambda: TemperatureScaling().fit(logits, labels, groups=names),
        lambda: TemperatureScaling().fit(logits, labels).score(logits, labels, groups=names),
    ):
        with refuses("groups"):
            call()


def test_concurrent_calls_get_the_answers_of_their_own_groups():
    logits, labels, names = points_of_groups(900)
    method = LogitShiftPatching(max_steps=10, start="temperature").fit(logits, labels, groups=names)
    alone = {name: method.predict_proba(logits, np.full(900, name)) for name in "abc"}
    asked = [*"abc"] * 20
    with ThreadPoolExecutor(8) as threads:
        answers = threads.map(lambda g: method.predict_proba(logits, np.full(900, g)), asked)
    for name, answer in zip(asked, answers, strict=True):
        np.testing.assert_array_equal(answer, alone[name])


def test_groups_are_repaired_and_unseen_ones_get_the_map_without_groups(tmp_path):
    logits, labels, names = points_of_groups(6000)
    fit, new = slice(0, 3000), slice(3000, None)
    method = LogitShiftPatching().fit(logits[fit], labels[fit], groups=names[fit])
    loaded = LogitShiftPatching.load(method.save(tmp_path / "groups.npz"))
    plain = LogitShiftPatching().fit(logits[fit], labels[fit]).predict_proba(logits[new])
    repaired = loaded.predict_proba(logits[new], groups=names[new])
    at = names[new] == "c"
    errors = [
        ClassWise().calibration_errors(p[at], labels[new][at]).max() for p in (plain, repaired)
    ]
    assert errors[1] < 0.6 * errors[0]
    with pytest.warns(UserWarning, match="groups: z"):
        unseen = method.predict_proba(logits[new], groups=np.full(3000, "z"))
    np.testing.assert_array_equal(unseen, plain)
    with pytest.warns(UserWarning, match="groups"):
        method.to_module()
    for options, groups, row in (
        ({"needs_groups": True}, None, None),
        ({"standard": False}, names[:2], None),
        ({}, [1.0, np.nan], 1),
        ({}, ["a", None], 1),
    ):
        with refuses("groups", row):
            LogitShiftPatching(**options).fit(logits[:2], [0, 1], groups=groups)


def test_a_group_needs_fifty_points_for_a_repair_of_its_own():
    logits, labels, _ = points_of_groups(900)
    names = np.repeat(["fifty", "few", "many"], [50, 49, 801])
    method = LogitShiftPatching(max_steps=2, start="temperature")
    with pytest.warns(UserWarning, match="groups: few have fewer than 50"):
        method.fit(logits, labels, groups=names)


def test_groups_of_whole_numbers_are_the_same_in_all_types():
    fitted = checked_groups(np.array([0, 1, 2]), 3)
    assert fitted.tolist() == ["0", "1", "2"]
    for groups in (np.arange(3.0), np.array([0, 1.0, 2], object), np.array([0, 1, 2], np.uint8)):
        assert np.array_equal(checked_groups(groups, 3), fitted)
    assert checked_groups([1.5, 2.0], 2).tolist() == ["1.5", "2"]
