"""Bayesian optimisation: its log, its seed, scores that are not finite, small spaces."""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pytest
from skopt.space import Categorical, Integer, Real

from calibrators.solvers.tuning import _Search, _with_kernel_of, tune


def bowl(parameters):
    return (math.log10(parameters["a"]) - 0.5) ** 2 + 0.3 * (math.log10(parameters["b"]) + 1) ** 2


SPACE = {
    "a": Real(1e-4, 1e2, prior="log-uniform"),
    "b": Real(1e-4, 1e2, prior="log-uniform"),
}


def test_it_finds_the_bottom_of_a_bowl_and_beats_random_search():
    best, log = tune(bowl, SPACE, runs=40, seed=0)
    assert len(log) == 40
    scores = [run["score"] for run in log]
    assert bowl(best) == pytest.approx(min(scores), rel=1e-7) and min(scores) < 0.02
    generator = np.random.default_rng(0)
    random = [bowl({"a": 10**a, "b": 10**b}) for a, b in generator.uniform(-4, 2, (40, 2))]
    assert min(scores) < min(random)
    assert all(run["score"] == pytest.approx(bowl(run["parameters"]), rel=1e-7) for run in log)


def test_the_seed_decides_the_points():
    one, two, other = (tune(bowl, SPACE, runs=12, seed=seed)[1] for seed in (1, 1, 2))
    assert [run["parameters"] for run in one] == [run["parameters"] for run in two]
    assert [run["parameters"] for run in one] != [run["parameters"] for run in other]


def test_a_kept_kernel_predicts_what_the_fitted_one_does():
    points = np.random.default_rng(0).uniform(-4, 2, (20, 2))
    given = [[10**a, 10**b] for a, b in points]
    scores = [bowl({"a": a, "b": b}) + 0.1 * math.sin(40 * a) for a, b in given]  # noise to fit
    search = _Search(list(SPACE.values()), len(given), seed=0)
    search.propose(given, scores)
    fitted = search.optimizer.models[-1]
    assert fitted.noise_ > 1e-4  # 1e-5 is the least
    kept = _with_kernel_of(fitted).fit(fitted.X_train_, scores)
    new = np.random.default_rng(1).uniform(0, 1, (30, 2))
    for one, other in zip(
        kept.predict(new, return_std=True), fitted.predict(new, return_std=True), strict=True
    ):
        assert one == pytest.approx(other, rel=1e-6)


def test_the_kernel_is_fitted_anew_for_a_quarter_more_scores():
    search = _Search(list(SPACE.values()), 4, seed=0)
    points = [[10.0**k, 10.0**-k] for k in range(-1, 2)] + [[50.0, 0.5]]
    fitted = []
    while len(points) < 12:
        points.append(search.propose(points, [bowl({"a": a, "b": b}) for a, b in points]))
        fitted.append(search.optimizer.models[-1].optimizer is not None)
    assert fitted == [True, True, False, True, False, True, False, False]  # to 4, 5, 7 and 9


def test_a_score_counts_while_the_kernel_is_kept():
    tried = [run["parameters"] for run in tune(bowl, SPACE, runs=16, seed=0)[1]]

    def disturbed(parameters):
        return bowl(parameters) + 5 * (parameters == tried[5])  # the sixth: fitted to 5 and to 7

    points = [run["parameters"] for run in tune(disturbed, SPACE, runs=16, seed=0)[1]]
    assert points[:6] == tried[:6] and points[6] != tried[6]


def test_parameters_of_all_kinds_come_as_plain_values():
    space = {"steps": Integer(1, 50), "size": (0.1, 1.0), "sampled": Categorical([True, False])}
    best, log = tune(
        lambda p: (p["steps"] - 20) ** 2 / 400 + p["size"] + (not p["sampled"]), space, 16
    )
    assert [type(best[name]) for name in ("steps", "size", "sampled")] == [int, float, bool]
    assert json.loads(json.dumps(log)) == log
    assert len(log) == 16 and all(run["seconds"] >= 0 for run in log)


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_scores_that_are_not_finite_lose_but_stay_in_the_log(bad):
    best, log = tune(lambda p: bad if p["a"] > 1 else bowl(p), SPACE, runs=16, seed=0)
    assert best["a"] <= 1
    assert any(not math.isfinite(run["score"]) for run in log)


def test_a_space_smaller_than_the_runs_is_no_problem():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        best, log = tune(lambda p: float(p["k"]), {"k": Integer(1, 3)}, runs=12)
    assert best == {"k": 1} and len(log) == 12


@pytest.mark.parametrize("runs", [1, 2, 3])
def test_few_runs_are_all_made(runs):
    assert len(tune(bowl, SPACE, runs=runs)[1]) == runs


@pytest.mark.parametrize("runs", [5, 12])
def test_no_runs_and_no_finite_score_are_errors(runs):
    with pytest.raises(ValueError, match="at least one run"):
        tune(bowl, SPACE, runs=0)
    with pytest.raises(ValueError, match=f"none of {runs} runs"):
        tune(lambda p: math.nan, SPACE, runs=runs)


def test_rounding_errors_of_the_scores_change_nothing():
    random = np.random.default_rng(0)

    def jittered(parameters):
        return bowl(parameters) * (1 + random.uniform(-1, 1) * 4e-16)

    assert [run["parameters"] for run in tune(jittered, SPACE, runs=40, seed=0)[1]] == [
        run["parameters"] for run in tune(bowl, SPACE, runs=40, seed=0)[1]
    ]
