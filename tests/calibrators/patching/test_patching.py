"""Iterative patching: what Algorithm 1 promises, the replay, and odd inputs."""

from itertools import islice

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_limits

from calibrators import UtilityPatching
from calibrators.patching.algorithm import Algorithm1
from calibrators.patching.audit import StandardFamilies, rows_within
from calibrators.patching.state import PatchedForecast
from calibrators.patching.update import GRID, ProjectedDescent, displacement
from calibrators.patching.utilities import KINDS
from metrics import (
    ClassWise,
    InputError,
    TopK,
    brier_score,
    utility_calibration,
)
from tests.calibrators.patching.patching_problems import (
    FITTED,
    over_confident,
    softmax,
    tied_u_comb,
    u_comb,
)

FIXED = {"step_size": 1.0, "steps": 30, "sampled": False}
SAMPLED = {**FIXED, "sampled": True, "sampled_count": 40}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module", params=["fixed", "sampled", "theory"])
def fitted(request):
    """(calibrator, logits, labels) with and without sampled utilities, and with theory's steps."""
    logits, labels = over_confident(600, 6, 0)
    options = {
        "fixed": FIXED,
        "sampled": SAMPLED,
        "theory": {**FIXED, "steps": 60, "line_search": "theory"},
    }[request.param]
    return UtilityPatching(**options).fit(logits, labels), logits, labels


def test_the_calibration_brier_score_never_rises(fitted):
    calibrator, logits, labels = fitted
    assert len(calibrator.losses_) == len(calibrator.steps_) + 1 > 10
    assert (np.diff(calibrator.losses_) < 0).all()
    assert calibrator.losses_[0] == pytest.approx(brier_score(softmax(logits), labels), abs=1e-12)
    after = brier_score(calibrator.predict_proba(logits), labels)
    assert calibrator.losses_[-1] == pytest.approx(after, abs=1e-12)


def test_every_patch_corrects_the_worst_interval_of_its_time(fitted):
    calibrator, logits, labels = fitted
    y = torch.from_numpy(labels)
    state = PatchedForecast(torch.from_numpy(softmax(logits)), y)
    for t, patch in enumerate(calibrator.patches()):
        v, u = patch.utility.predicted(state), patch.utility.realized(state)
        inside = (v >= patch.low) & (v <= patch.high)
        signed = float((u - v)[inside].sum()) / len(y)
        assert patch.error <= float(utility_calibration(v, u)) + 1e-12
        assert abs(signed) == pytest.approx(patch.error, abs=1e-12)
        assert np.sign(patch.step) == np.sign(signed)  # towards what is realized
        p = state.probabilities.numpy()
        assert patch.error >= tied_u_comb(p, labels) - 1e-9
        assert calibrator.losses_[t] == pytest.approx(brier_score(p, labels), abs=1e-12)
        patch.apply(state, calibrator._update())


def test_replaying_gives_the_fitted_probabilities(fitted):
    calibrator, logits, labels = fitted
    auditor = StandardFamilies(
        6, calibrator.sampled_count if calibrator.sampled else 0, 0, torch.device("cpu")
    )
    state = PatchedForecast(torch.from_numpy(softmax(logits)), torch.from_numpy(labels))
    update = ProjectedDescent(1.0, calibrator.armijo, calibrator.line_search == "theory")
    run = Algorithm1(state, auditor, update, calibrator.tolerance)
    steps = [patch.step for patch in islice(run, calibrator.steps)]
    np.testing.assert_array_equal(steps, calibrator.steps_)
    for rows in (slice(None), slice(0, 1), slice(100, 250), np.array([5, 3, 5])):
        again = calibrator.predict_proba(logits[rows])
        np.testing.assert_allclose(again, state.probabilities.numpy()[rows], rtol=0, atol=1 / GRID)


def test_probabilities_stay_on_the_simplex(fitted):
    calibrator, _, _ = fitted
    new, _ = over_confident(300, 6, 99)
    p = calibrator.predict_proba(new)
    assert p.dtype == np.float64
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=0, atol=6 / GRID)


def test_the_worst_error_falls_on_calibration_and_on_new_points(fitted):
    calibrator, logits, labels = fitted
    share = 0.9 if calibrator.line_search == "theory" else 0.35
    before, after = (
        u_comb(softmax(logits), labels),
        u_comb(calibrator.predict_proba(logits), labels),
    )
    assert after < share * before
    new, truth = over_confident(1500, 6, 98)
    before, after = u_comb(softmax(new), truth), u_comb(calibrator.predict_proba(new), truth)
    assert after < max(share, 0.6) * before
    assert brier_score(calibrator.predict_proba(new), truth) < brier_score(softmax(new), truth)


def test_sampled_utilities_are_patched_and_kept():
    logits, labels = over_confident(600, 6, 0)
    calibrator = UtilityPatching(**SAMPLED).fit(logits, labels)
    sampled = np.isin(calibrator.kinds_, [KINDS.index("linear"), KINDS.index("rank")])
    assert sampled.any()
    assert calibrator.vectors_.shape == (sampled.sum(), 6)
    np.testing.assert_array_equal(np.abs(calibrator.vectors_).max(axis=1), 1)
    np.testing.assert_array_equal(
        [p.utility.payoff.numpy() for p, s in zip(calibrator.patches(), sampled) if s],
        calibrator.vectors_,
    )


def test_theory_takes_the_error_over_the_classes_and_keeps_its_promise():
    """Proposition A.1: η = err / C lowers the Brier score by err² / C or more."""
    logits, labels = over_confident(600, 6, 1)
    calibrator = UtilityPatching(**{**FIXED, "steps": 80}, line_search="theory")
    calibrator.fit(logits, labels)
    assert len(calibrator.steps_) == 80
    np.testing.assert_allclose(np.abs(calibrator.steps_), calibrator.errors_ / 6, rtol=1e-12)
    assert (-np.diff(calibrator.losses_) >= calibrator.errors_**2 / 6 - 1e-15).all()


@pytest.mark.parametrize("armijo", [1e-4, 0.5, 0.9])
def test_the_line_search_achieves_the_share_it_asks_for(armijo):
    logits, labels = over_confident(400, 5, 2)
    calibrator = UtilityPatching(**FIXED, armijo=armijo).fit(logits, labels)
    state = PatchedForecast(torch.from_numpy(softmax(logits)), torch.from_numpy(labels))
    for patch in calibrator.patches():
        rows = rows_within(patch.utility.predicted(state), patch.low, patch.high)
        slope, square = displacement(state, rows, patch.utility.vectors(state, rows), patch.step)
        assert slope < 0
        assert 2 * slope + square <= (armijo - 1e-8) * 2 * slope
        assert patch.loss_change == pytest.approx((2 * slope + square) / len(labels), abs=1e-15)
        patch.apply(state, ProjectedDescent(1.0))


def test_a_tolerance_ends_the_run():
    logits, labels = over_confident(600, 4, 3)
    none = UtilityPatching(**FIXED, tolerance=0.9).fit(logits, labels)
    assert len(none.steps_) == 0
    assert none.stopped_ == "calibrated"
    assert none.vectors_.shape == (0, 4)
    np.testing.assert_array_equal(none.predict_proba(logits), softmax(logits))
    some = UtilityPatching(**{**FIXED, "steps": 500}, tolerance=0.02).fit(logits, labels)
    assert 0 < len(some.steps_) < 500
    assert (some.errors_ > 0.02).all()
    assert some.stopped_ == "calibrated"
    assert tied_u_comb(some.predict_proba(logits), labels) <= 0.02


def test_a_run_without_a_step_that_helps_says_so(monkeypatch):
    logits, labels = over_confident(100, 3, 3)
    monkeypatch.setattr(ProjectedDescent, "step", lambda *given: None)
    calibrator = UtilityPatching(**FIXED).fit(logits, labels)
    assert calibrator.stopped_ == "no step"
    assert len(calibrator.steps_) == 0


@pytest.mark.parametrize("options", [FIXED, SAMPLED], ids=["fixed", "sampled"])
def test_the_same_seed_fits_the_same_bits_on_any_number_of_threads(options):
    logits, labels = over_confident(900, 60, 6)
    runs = []
    for threads in (1, 2, 1):
        torch.set_num_threads(threads)
        with threadpool_limits(threads, "blas"):
            runs.append(UtilityPatching(**{**options, "steps": 12}, seed=5).fit(logits, labels))
    for other in runs[1:]:
        for name in FITTED:
            np.testing.assert_array_equal(getattr(other, name), getattr(runs[0], name))


@pytest.mark.parametrize(("n", "classes"), [(1, 2), (2, 2), (50, 2), (50, 9), (12, 30)])
def test_small_problems_and_classes_without_samples_work(n, classes):
    logits, labels = over_confident(n, classes, 13)
    labels = np.minimum(labels, classes - 2)  # the last class never occurs
    calibrator = UtilityPatching(**SAMPLED).fit(logits, labels)
    p = calibrator.predict_proba(logits)
    assert p.shape == (n, classes)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    assert (np.diff(calibrator.losses_) < 0).all()
    assert (calibrator.classes_ == np.arange(classes)).all()


def test_saturated_logits_are_patched():
    random = np.random.default_rng(15)
    logits = random.normal(scale=500, size=(300, 4)).astype(np.float32)
    labels = np.where(random.random(300) < 0.7, logits.argmax(axis=1), 0)
    assert (softmax(logits).max(axis=1) == 1).mean() > 0.8
    calibrator = UtilityPatching(**SAMPLED).fit(logits, labels)
    assert u_comb(calibrator.predict_proba(logits), labels) < 0.3 * u_comb(softmax(logits), labels)
    assert (np.diff(calibrator.losses_) < 0).all()


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"objective": "ece"}, "objective"),
        ({"line_search": "exact"}, "line_search"),
        ({"holdout": 1.0}, "holdout"),
        ({"armijo": 1.0}, "armijo"),
        ({"step_size": 0.0}, "step_size"),
        ({"steps": -1}, "steps"),
        ({"max_steps": 0, "steps": None}, "max_steps"),
        ({"sampled_count": -1, "sampled": True}, "sampled_count"),
        ({"tuning_runs": 0, "steps": None}, "tuning_runs"),
        ({"tolerance": -0.1}, "tolerance"),
    ],
)
def test_options_out_of_range_are_named(options, field):
    logits, labels = over_confident(30, 3, 18)
    with pytest.raises(InputError, match=field) as error:
        UtilityPatching(**{**FIXED, **options}).fit(logits, labels)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "top_k_share", "class_wise_share"),
    [
        ("cifar10_resnet56", 0.35, 0.75),
        pytest.param("cifar100_resnet56", 0.35, 0.95, marks=pytest.mark.slow),
    ],
)
def test_real_classifiers_keep_a_fraction_of_their_error(
    name, top_k_share, class_wise_share, shared_dir
):
    """The level of the paper's rows: most of U_topK goes, on points that were not fitted."""
    from pipeline.scoring.splits import split_indices

    with np.load(shared_dir / "logits" / f"{name}.npz") as archive:
        logits, labels = archive["logits"], archive["labels"]
    fit, test = split_indices(len(labels), 0)
    torch.set_num_threads(2)
    calibrator = UtilityPatching(step_size=1.0, steps=40, sampled=False)
    calibrator.fit(logits[fit], labels[fit])
    torch.set_num_threads(1)
    before, after, y = softmax(logits[test]), calibrator.predict_proba(logits[test]), labels[test]
    top_k = [TopK().calibration_errors(p, y).max() for p in (before, after)]
    class_wise = [ClassWise().calibration_errors(p, y).max() for p in (before, after)]
    assert top_k[1] < top_k_share * top_k[0]
    assert class_wise[1] < class_wise_share * class_wise[0]
    assert brier_score(after, y) < brier_score(before, y)
    assert (after.argmax(axis=1) == y).mean() == pytest.approx(
        (before.argmax(axis=1) == y).mean(), abs=0.01
    )
    assert (np.diff(calibrator.losses_) < 0).all()
    assert len(calibrator.steps_) == 40
