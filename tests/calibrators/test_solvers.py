"""The minimiser and the search over parameters, on problems with known answers."""

import json
import math
import sys

import numpy as np
import pytest
from scipy.optimize import rosen, rosen_der

from tests.refusals import refuses
from utility_calibration.calibrators.solvers.lbfgs import minimize
from utility_calibration.calibrators.solvers.search import (
    LogUniform,
    best_run,
    evenly_spread,
    search,
)


def test_the_value_never_rises_and_giving_up_is_not_convergence():
    values = []

    def rosenbrock(point):
        return rosen(point), rosen_der(point)

    def watch(iteration, point):
        values.append(rosenbrock(point)[0])
        return iteration == 8

    start = np.array([-1.2, 1.0])
    options = {"tolerance": 1e-18, "max_iterations": 200}
    stopped = minimize(rosenbrock, start, np.copy, give_up=watch, **options)
    assert not stopped.converged and stopped.iterations == 8
    assert values == sorted(values, reverse=True)
    found = minimize(rosenbrock, start, np.copy, **options)
    np.testing.assert_allclose(found.point, 1, atol=1e-7, rtol=0)


SPACE = {
    "a": LogUniform(1e-4, 1e2),
    "b": range(1, 10),
    "c": (False, True),
}


def bowl(a, b, c):
    return (math.log10(a) - 0.5) ** 2 + 0.3 * (b - 4) ** 2 + c


@pytest.mark.parametrize("how", ["even", "bayes"])
def test_the_log_holds_every_run_and_the_seed_decides_the_bayesian_points(how):
    if how == "bayes":
        pytest.importorskip("skopt", reason="the extra `bayes` is not installed")
    log, again, other = (search(bowl, SPACE, 11, seed, how) for seed in (1, 1, 2))
    assert len(log) == 11
    assert [run["parameters"] for run in log] == [run["parameters"] for run in again]
    assert (log[3]["parameters"] == other[3]["parameters"]) is (how == "even")
    assert all(run["score"] == pytest.approx(bowl(**run["parameters"]), rel=1e-7) for run in log)
    json.dumps(log)  # plain numbers, not NumPy's


def radical_inverse(number: int, base: int) -> float:
    """The digits of `number` in this base, mirrored at the point: van der Corput's sequence."""
    inverse, unit = 0.0, 1.0
    while number:
        unit /= base
        number, digit = divmod(number, base)
        inverse += digit * unit
    return inverse


def test_even_points_are_a_halton_sequence_from_the_low_ends():
    points = evenly_spread(SPACE, 50)
    assert points[0] == {"a": pytest.approx(1e-4, rel=1e-12), "b": 1, "c": False}
    for number, point in enumerate(points):
        a, b, c = (radical_inverse(number, base) for base in (2, 3, 5))
        assert math.log10(point["a"]) == pytest.approx(6 * a - 4, abs=1e-12)
        assert (point["b"], point["c"]) == (1 + round(8 * b), bool(round(c)))


def test_the_bayesian_search_names_the_package_that_it_lacks(monkeypatch):
    monkeypatch.setitem(sys.modules, "skopt", None)
    with refuses("search", fix="scikit-optimize"):
        search(bowl, SPACE, 3, seed=0, how="bayes")


def test_the_best_run_has_a_finite_score_and_is_the_first_of_equal_ones():
    log = [{"score": score} for score in (math.nan, 2.0, 1.0, math.inf, 1.0)]
    assert best_run(log) is log[2]
    with pytest.raises(ValueError):
        best_run(log[:1])
