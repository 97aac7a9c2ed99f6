"""Tuning λ and μ: the runs, those that stop early, plain fits beside them."""

from __future__ import annotations

import numpy as np
import torch

from calibrators import DirichletCalibration, reference
from calibrators.dirichlet.penalties import TuningRuns


def tuning_runs(logits, labels):
    logits, labels = torch.from_numpy(logits).double(), torch.from_numpy(labels)
    return TuningRuns(*DirichletCalibration()._hold_out(logits, labels))


def test_tuning_is_logged_seeded_and_beats_its_corners(made_up):
    logits, labels = made_up(n=600)
    one = DirichletCalibration(tuning_runs=14, seed=5).fit(logits, labels)
    two = DirichletCalibration(tuning_runs=14, seed=5).fit(logits, labels)
    assert len(one.tuning_log_) == 14
    assert all({"parameters", "score", "seconds"} == set(run) for run in one.tuning_log_)
    assert [run["score"] for run in one.tuning_log_] == [run["score"] for run in two.tuning_log_]
    np.testing.assert_array_equal(one.matrix_, two.matrix_)
    best = min(one.tuning_log_, key=lambda run: run["score"])["parameters"]
    assert (one.odir_, one.l2_) == (best["odir"], best["l2"])
    assert 1e-4 * 20 <= one.odir_ <= 1e2 * 20
    other = DirichletCalibration(tuning_runs=14, seed=6).fit(logits, labels)
    assert other.tuning_log_[0]["score"] != one.tuning_log_[0]["score"]


def test_given_penalties_are_not_tuned(made_up):
    logits, labels = made_up()
    fixed = DirichletCalibration(odir=0.5, l2=0.25).fit(logits, labels)
    assert (fixed.odir_, fixed.l2_, fixed.tuning_log_) == (0.5, 0.25, [])
    half = DirichletCalibration(odir=0.5, tuning_runs=5).fit(logits, labels)
    assert half.odir_ == 0.5
    assert all(set(run["parameters"]) == {"l2"} for run in half.tuning_log_)


def test_of_all_points_tried_the_chosen_one_is_within_1e_4_of_the_best_plain_fit(made_up):
    n = 600
    logits, labels = made_up(n=n, classes=6)
    fitted = DirichletCalibration(tuning_runs=20).fit(logits, labels)
    order = np.random.default_rng(0).permutation(n)
    held, others = order[: round(0.3 * n)], order[round(0.3 * n) :]
    x = reference.log_probabilities(logits[held])

    def plain_score(odir, l2):
        point = reference.dirichlet(logits[others], labels[others], odir, l2)
        return reference.log_loss(x @ point[:, :-1].T + point[:, -1], labels[held])

    best = min(plain_score(**run["parameters"]) for run in fitted.tuning_log_)
    assert plain_score(fitted.odir_, fitted.l2_) <= best + 1e-4


def test_a_run_that_overfits_stops_early_and_starts_no_other(made_up):
    runs = tuning_runs(*made_up(n=300, classes=8))
    assert runs.score(odir=50.0, l2=50.0) <= runs.limit
    known = len(runs.earlier)
    assert runs.score(odir=1e-9, l2=1e-9) > runs.limit
    assert len(runs.earlier) == known == 1


def test_where_no_run_beats_temperature_scaling_the_best_one_that_ended_is_the_limit(made_up):
    runs = tuning_runs(*made_up(n=60, classes=10))
    assert runs.score(odir=1e4, l2=1e4) > runs.temperature_loss
    assert runs.limit == runs.best_score
    assert runs.score(odir=1e-9, l2=1e-9) > runs.limit
    assert runs.limit == runs.best_score


def test_a_tuned_fit_scores_its_runs_by_its_own_loss(made_up):
    logits, labels = made_up(n=300)
    fitted = DirichletCalibration(tuning_runs=10, loss="brier").fit(logits, labels)
    scores = [run["score"] for run in fitted.tuning_log_]
    assert max(scores) < 1  # Brier scores; the likelihood's lie above
    plain = DirichletCalibration(tuning_runs=10).fit(logits, labels)
    assert min(run["score"] for run in plain.tuning_log_) > max(scores)
