"""Tuning of step size, number of steps and sampling: honest scores, every setting passed."""

import numpy as np
import pytest

from tests.calibrators.patching.patching_problems import (
    FITTED,
    over_confident,
    softmax,
    tied_u_comb,
)
from tests.refusals import refuses
from utility_calibration.calibrators import LogitShiftPatching, UtilityPatching
from utility_calibration.calibrators.patching.audit import StandardFamilies
from utility_calibration.calibrators.patching.state import PatchedForecast
from utility_calibration.calibrators.patching.tuning import (
    HoldOut,
    TuningRun,
    fewest_patches,
    held_out_losses,
)
from utility_calibration.metrics import brier_score, negative_log_likelihood
from utility_calibration.metrics.kernels.draws import Draws

QUICK = {"tuning_runs": 20, "max_steps": 20, "sampled_count": 10}


@pytest.fixture(scope="module")
def tuned():
    logits, labels = over_confident(400, 4, 8)
    return UtilityPatching(**QUICK).fit(logits, labels), logits, labels


def test_tuning_logs_every_setting_that_its_runs_pass(tuned):
    calibrator, _, _ = tuned
    passed: dict[tuple[float, bool], list[int]] = {}
    for run in calibrator.tuning_log_:
        tried = run["parameters"]
        passed.setdefault((tried["step_size"], tried["sampled"]), []).append(tried["steps"])
    assert sorted(sampled for _, sampled in passed) == [False, False, False, True]
    for steps in passed.values():
        assert steps == list(range(5, max(steps) + 1, 5))
    for run in calibrator.tuning_log_:
        assert set(run) == {"parameters", "score", "seconds"}
        assert set(run["parameters"]) == {"step_size", "steps", "sampled"}
        assert 0 < run["parameters"]["steps"] <= 20


@pytest.mark.parametrize("steps", [None, 40])
def test_few_runs_go_on_and_one_has_sampled_utilities(steps):
    """Runs whose only score comes after the cuts are compared there."""
    logits, labels = over_confident(150, 4, 8)
    settings = {"tuning_runs": 20, "max_steps": 70, "sampled_count": 4, "tolerance": 0.0}
    log = UtilityPatching(**settings, steps=steps).fit(logits, labels).tuning_log_
    scores: dict[tuple[float, bool], list[float]] = {}
    for run in log:
        tried = run["parameters"]
        scores.setdefault((tried["step_size"], tried["sampled"]), []).append(run["score"])
    first = 1 if steps else 5  # scores up to the first cut
    without = {size: run[:first] for (size, sampled), run in scores.items() if not sampled}
    assert [key for key in scores if key[1]] == [
        (min(without, key=lambda k: min(without[k])), True)
    ]
    lengths = sorted(map(len, scores.values()))
    if steps:
        assert lengths == [1, 1, 1, 1]
    else:
        assert lengths[0] == 5
        assert max(lengths[:3]) <= 10 < lengths[3]


def test_the_best_run_is_refitted_on_all_points(tuned):
    calibrator, logits, labels = tuned
    best = min(calibrator.tuning_log_, key=lambda run: run["score"])
    again = UtilityPatching(**{**QUICK, **best["parameters"]}).fit(logits, labels)
    assert again.tuning_log_ == []
    for name in FITTED:
        np.testing.assert_array_equal(getattr(again, name), getattr(calibrator, name))


def hold_out_score(calibrator, parameters, logits, labels, measure):
    """The score of a run of its own on the same hold-out, without shared trajectories."""
    order = Draws(calibrator.seed).permutation(len(labels))
    held = round(calibrator.holdout * len(labels))
    kept, held = order[held:], order[:held]
    settings = {**calibrator.get_params(), **parameters}
    alone = UtilityPatching(**settings).fit(logits[kept], labels[kept])
    return measure(alone.predict_proba(logits[held]), labels[held])


MEASURES = {"u_comb": tied_u_comb, "brier": brier_score, "nll": negative_log_likelihood}


@pytest.mark.parametrize("objective", MEASURES)
def test_a_score_is_the_objective_on_the_hold_out(objective):
    logits, labels = over_confident(300, 4, 9)
    calibrator = UtilityPatching(**{**QUICK, "tuning_runs": 8}, objective=objective)
    calibrator.fit(logits, labels)
    for run in calibrator.tuning_log_[::4]:
        expected = hold_out_score(
            calibrator, run["parameters"], logits, labels, MEASURES[objective]
        )
        assert run["score"] == pytest.approx(expected, rel=1e-7)


def test_given_steps_are_scored_as_given():
    logits, labels = over_confident(300, 4, 11)
    calibrator = UtilityPatching(**{**QUICK, "tuning_runs": 5}, steps=3).fit(logits, labels)
    assert len(calibrator.shifts_) == 3
    assert all(set(run["parameters"]) == {"step_size", "sampled"} for run in calibrator.tuning_log_)


def test_one_point_cannot_be_tuned_on():
    point = np.full((1, 3), 1 / 3), np.zeros(1, np.int64)
    with refuses("labels", fix="step_size"):
        HoldOut(*point, None, 0.3, 0, None, None)


# ---- The number of patches of a logit shift, chosen by cross-validation --------------------


def test_the_fewest_patches_as_good_as_the_best_are_enough():
    always = np.array([[0.5, 0.9, 0.1], [0.4, 0.8, 0.0], [0.41, 0.81, 0.01]])
    assert fewest_patches(always, np.ones(3)) == 1  # a gain on every point is taken however small
    noise = np.random.default_rng(1).normal(size=64)
    noise -= noise.mean()
    ones = np.ones(64)
    within = np.stack([0 * noise, noise - 0.05])
    assert fewest_patches(within, ones) == 0
    assert fewest_patches(within, 100 * ones) == 1  # 6,400 points tell that gain from noise
    assert fewest_patches(np.concatenate([within[:1], within[1:] - 0.2]), ones) == 1
    losses = -np.array([0.0, 0.5, 0.9, 0.99, 1.0])[:, None].repeat(64, axis=1)
    losses[3:] += 0.3 * noise * np.array([[0.0], [1.0]])
    assert fewest_patches(losses, ones) == 3
    assert fewest_patches(losses, ones, errors=0.0) == 4


def test_every_fifth_point_is_predicted_by_patches_of_the_others():
    logits, labels = over_confident(60, 3, seed=2)
    p, y = softmax(logits), labels
    kept = []

    def run(state):
        kept.append(state.labels)
        return LogitShiftPatching()._run(state)

    losses, shares = held_out_losses(p, y, None, run, "nll", 3, 0, fewest_patches)
    assert [len(part) for part in kept] == [48] * 5
    assert losses.shape == (4, 60) and np.array_equal(shares, np.ones(60))
    at_first = PatchedForecast(p, y).losses("nll")
    np.testing.assert_array_equal(np.sort(losses[0]), np.sort(at_first))


def test_a_run_with_sampled_utilities_waits_unnoticed():
    """Audits draw other utilities each round: the number of the round is continued, too."""
    logits, labels = over_confident(120, 4, seed=4)
    calibrator = UtilityPatching(sampled_count=20)
    scored = calibrator._run, calibrator._score
    points = HoldOut(softmax(logits), labels, None, 0.3, 0, *scored)
    waits, whole = (TuningRun(0.1, True, [3, 7]) for _ in range(2))
    points.go_on(waits, 3)
    for run in (waits, whole):
        points.go_on(run)
    one, other = ([tried["score"] for tried in run.log] for run in (waits, whole))
    assert one == other


def test_no_audit_repeats_the_draws_of_another():
    auditor = StandardFamilies(20, seed=0)
    draws = [auditor.draw(number, 4) for number in range(3)]
    for _, valuations in draws:
        assert bool((np.diff(valuations, axis=1) <= 0).all())  # they fall with the rank
    draws = [np.sort(payoffs, axis=1) for pair in draws for payoffs in pair]
    assert len({tuple(payoffs.flatten().tolist()) for payoffs in draws}) == 6


def test_bayes_proposes_each_setting_and_the_best_is_taken():
    pytest.importorskip("skopt")
    logits, labels = over_confident(150, 3, 8)
    options = {"search": "bayes", "tuning_runs": 12, "max_steps": 8, "sampled_count": 4}
    fitted = UtilityPatching(**options).fit(logits, labels)
    assert len(fitted.tuning_log_) == 12
    for run in fitted.tuning_log_:
        tried = run["parameters"]
        assert 0.03 <= tried["step_size"] <= 1 and 1 <= tried["steps"] <= 8
    best = min(fitted.tuning_log_, key=lambda run: run["score"])["parameters"]
    chosen = fitted.step_size_, fitted.step_limit_, fitted.sampled_
    assert chosen == (best["step_size"], best["steps"], best["sampled"])
    assert len({run["parameters"]["step_size"] for run in fitted.tuning_log_}) > 3
