"""Tuning of step size, number of steps and sampling: honest scores, and every setting passed."""

import numpy as np
import pytest
import torch

from calibrators import UtilityPatching
from calibrators.patching.algorithm import Algorithm1
from calibrators.patching.audit import StandardFamilies
from calibrators.patching.hold_out import (
    COMPARED_AT,
    SCORED_EVERY,
    SURVIVORS,
    HoldOut,
    TuningRun,
)
from calibrators.patching.update import ProjectedDescent
from metrics import InputError, brier_score, negative_log_likelihood
from tests.calibrators.patching.patching_problems import FITTED, over_confident, tied_u_comb

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
    assert len(passed) == 6
    for steps in passed.values():
        assert steps == list(range(5, max(steps) + 1, 5))
    for run in calibrator.tuning_log_:
        assert set(run) == {"parameters", "score", "seconds"}
        assert set(run["parameters"]) == {"step_size", "steps", "sampled"}
        assert isinstance(run["parameters"]["sampled"], bool)
        assert isinstance(run["parameters"]["steps"], int)
        assert isinstance(run["parameters"]["step_size"], float)
        assert 0 < run["parameters"]["steps"] <= 20
        assert 0 < run["score"] < 1
        assert run["seconds"] >= 0


def test_the_best_run_is_refitted_on_all_points(tuned):
    calibrator, logits, labels = tuned
    best = min(calibrator.tuning_log_, key=lambda run: run["score"])
    again = UtilityPatching(**{**QUICK, **best["parameters"]}).fit(logits, labels)
    assert again.tuning_log_ == []
    for name in FITTED:
        np.testing.assert_array_equal(getattr(again, name), getattr(calibrator, name))


def hold_out_score(calibrator, parameters, logits, labels, measure):
    """The score of a run of its own on the same hold-out, without shared trajectories."""
    order = torch.randperm(
        len(labels), generator=torch.Generator().manual_seed(calibrator.seed)
    ).numpy()
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


def test_theory_tunes_no_step_size():
    logits, labels = over_confident(200, 4, 9)
    calibrator = UtilityPatching(**{**QUICK, "tuning_runs": 4}, line_search="theory")
    calibrator.fit(logits, labels)
    assert {frozenset(run["parameters"]) for run in calibrator.tuning_log_} == {
        frozenset({"steps", "sampled"})
    }
    assert np.isnan(calibrator.step_size_)


def hold_out(logits, labels, tolerance=0.0):
    """Points whose runs lower the Brier score, and are scored by it."""
    families = StandardFamilies(logits.shape[1], 0, 0, logits.device)

    def begin(step_size, sampled, state):
        return Algorithm1(state, families, ProjectedDescent(step_size), tolerance)

    score = ProjectedDescent(1.0).loss
    return HoldOut(logits.double().softmax(dim=1), labels, 0.3, 0, begin, score)


def scores_of(run):
    return [tried["score"] for tried in run.log]


@pytest.mark.parametrize("tolerance", [0.0, 0.045], ids=["goes on", "ends early"])
def test_the_scores_on_the_way_are_those_of_runs_that_end_there(tolerance):
    points = hold_out(*map(torch.from_numpy, over_confident(200, 3, 4)), tolerance)

    def scores(limits, stops=()):
        run = TuningRun(1.0, False, limits)
        for stop in (*stops, limits[-1]):
            points.go_on(run, stop)
        return scores_of(run)

    limits = [0, 1, 4, 9]
    assert scores(limits) == [scores([limit])[0] for limit in limits]
    assert scores(limits, stops=[1, 3, 4]) == scores(limits)  # waits do not show
    assert (scores([8]) == scores([9])) == (tolerance > 0)


def test_the_best_runs_alone_go_on():
    points = hold_out(*map(torch.from_numpy, over_confident(200, 3, 4)))
    limits = [5, COMPARED_AT, COMPARED_AT + 5]
    sizes = [1.0, 0.1, 0.03, 0.01, 0.003]
    runs = [TuningRun(size, False, limits) for size in sizes]
    points.race(runs)
    first = sorted(runs, key=lambda run: min(scores_of(run)[:2]))
    assert [len(run.log) for run in first] == [3] * SURVIVORS + [2] * (len(runs) - SURVIVORS)
    late = [TuningRun(size, False, [COMPARED_AT + 5]) for size in sizes]
    points.race(late)  # nothing to compare them by
    assert all(len(run.log) == 1 for run in late)


@pytest.mark.parametrize("steps", [3, SCORED_EVERY])
def test_given_steps_are_scored_as_given(steps):
    logits, labels = over_confident(300, 4, 11)
    calibrator = UtilityPatching(**{**QUICK, "tuning_runs": 5}, steps=steps).fit(logits, labels)
    assert len(calibrator.steps_) == steps
    assert all(set(run["parameters"]) == {"step_size", "sampled"} for run in calibrator.tuning_log_)


def test_one_point_cannot_be_tuned_on():
    with pytest.raises(InputError, match="two points"):
        UtilityPatching(**QUICK).fit(np.zeros((1, 3)), [0])
