"""The search over parameters: its points, its log, scores that are not finite."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from sklearn.base import clone
from skopt.space import Categorical, Integer, Real

from calibrators import DirichletCalibration, LogitShiftPatching, UtilityPatching
from calibrators.solvers.search import best_run, evenly_spread, search

SPACE = {
    "a": Real(1e-4, 1e2, prior="log-uniform"),
    "b": Integer(1, 9),
    "c": Categorical((False, True)),
}


def bowl(a, b, c):
    return (math.log10(a) - 0.5) ** 2 + 0.3 * (b - 4) ** 2 + c


@pytest.mark.parametrize("how", ["even", "bayes"])
def test_the_log_holds_every_run_and_the_seed_decides_the_bayesian_points(how):
    log, again, other = (search(bowl, SPACE, 11, seed, how) for seed in (1, 1, 2))
    assert len(log) == 11
    assert [run["parameters"] for run in log] == [run["parameters"] for run in again]
    assert (log[3]["parameters"] == other[3]["parameters"]) is (how == "even")
    assert all(run["score"] == pytest.approx(bowl(**run["parameters"]), rel=1e-7) for run in log)
    json.dumps(log)  # plain numbers, not NumPy's


def test_even_points_depend_on_no_score():
    assert [run["parameters"] for run in search(lambda **_: 0.0, SPACE, 9, seed=3)] == (
        evenly_spread(SPACE, 9)
    )


def test_the_best_run_has_a_finite_score_and_is_the_first_of_equal_ones():
    log = [{"score": score} for score in (math.nan, 2.0, 1.0, math.inf, 1.0)]
    assert best_run(log) is log[2]
    with pytest.raises(ValueError, match="none of 1 runs gave a finite score"):
        best_run(log[:1])


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (DirichletCalibration(tuning_runs=3), "DirichletCalibration: fits [########"),
        (UtilityPatching(tuning_runs=2, max_steps=5), "UtilityPatching: settings ["),
        (LogitShiftPatching(max_steps=2), "LogitShiftPatching: patches ["),
    ],
)
def test_a_bar_is_shown_where_it_is_asked_for(method, said, made_up, capsys):
    logits, labels = made_up(n=120, classes=3)
    silent = clone(method).fit(logits, labels)
    assert capsys.readouterr().err == ""
    shown = clone(method).set_params(verbose=True).fit(logits, labels)
    assert said in capsys.readouterr().err
    np.testing.assert_array_equal(silent.predict_proba(logits), shown.predict_proba(logits))
