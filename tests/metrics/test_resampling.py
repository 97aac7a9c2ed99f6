"""The bootstrap: how often each point is drawn, and metrics as if it stood there so many times."""

import numpy as np
import pytest

from tests.cards import draws_of
from tests.forecasts import forecast_of
from utility_calibration.metrics import METRICS, batches, scorecard
from utility_calibration.metrics import resampling as module
from utility_calibration.metrics.resampling import resampled_weights

POPULATION = 60
OPTIONS = {"utilities": 20, "floor_repetitions": 0, "bootstrap_repetitions": 3}


def weights(repetitions=5, seed=3, points=None):
    points = np.arange(POPULATION) if points is None else points
    return np.concatenate(list(resampled_weights(points, POPULATION, repetitions, seed)))


def test_every_repetition_draws_as_many_points_as_there_are_with_replacement():
    drawn = weights(repetitions=2000)
    assert drawn.shape == (2000, POPULATION) and drawn.dtype == np.float64
    assert (drawn.sum(axis=1) == POPULATION).all()
    # A point's count is binomial with mean 1 and variance 1 - 1/N.
    off = np.abs(drawn.mean(axis=0) - 1).max()
    assert float(off) < 4 * np.sqrt((1 - 1 / POPULATION) / 2000)
    assert float(drawn.var(axis=0).mean()) == pytest.approx(1 - 1 / POPULATION, rel=0.03)
    assert len(np.unique(drawn, axis=0)) == 2000


def test_a_seed_names_the_draws_and_a_point_has_the_same_in_every_sample():
    assert np.array_equal(weights(), weights())
    assert not np.array_equal(weights(), weights(seed=4))
    some = np.array([7, 3, 59])
    assert np.array_equal(weights(points=some), weights()[:, some])


def test_how_many_repetitions_fit_the_memory_changes_no_number(monkeypatch):
    whole = weights(repetitions=7)
    monkeypatch.setattr(module, "DRAWN_TOGETHER", 3 * POPULATION + 1)
    blocks = list(resampled_weights(np.arange(POPULATION), POPULATION, 7, 3))
    assert [len(block) for block in blocks] == [3, 3, 1]
    assert np.array_equal(np.concatenate(blocks), whole)
    monkeypatch.setattr(module, "DRAWN_TOGETHER", 1)  # one at a time at least
    assert np.array_equal(weights(repetitions=7), whole)


def test_a_resampled_metric_is_that_of_the_drawn_points_repeated():
    p, y = forecast_of("smooth", POPULATION, 4, 0)
    draws = draws_of(scorecard(p, y, noise_seed=3, **OPTIONS))
    for repetition, counts in enumerate(weights(repetitions=3).astype(np.int64)):
        rows = np.repeat(np.arange(POPULATION), counts)
        again = scorecard(p[rows], y[rows], utilities=20, floor_repetitions=0).metrics
        for key in (key for key in again if METRICS[key].resampled):
            value = again[key]
            assert draws[f"bootstrap_{key}"][repetition] == pytest.approx(value, abs=1e-12), key
    keys = [key for key, metric in METRICS.items() if metric.resampled and key != "u_w2v"]
    assert {f"bootstrap_{key}" for key in keys} == set(draws)


def test_many_points_are_resampled_but_not_for_the_sampled_users(monkeypatch):
    p, y = forecast_of("smooth", POPULATION, 4, 0)
    few = draws_of(scorecard(p, y, **OPTIONS))
    monkeypatch.setattr(batches, "MOST_POINTS_FOR_USERS", POPULATION - 1)
    many = draws_of(scorecard(p, y, **OPTIONS))
    assert few.keys() - many.keys() == {f"bootstrap_{k}" for k in METRICS if METRICS[k].sampled}
    for key, draws in many.items():
        np.testing.assert_array_equal(draws, few[key])
    monkeypatch.setattr(module, "LARGEST_WHOLE", 4 * POPULATION - 1)
    assert draws_of(scorecard(p, y, **OPTIONS)) == {}
