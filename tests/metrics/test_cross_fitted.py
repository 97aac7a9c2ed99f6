"""What another threshold gains on points that did not choose it."""

import math

import numpy as np
import pytest

from utility_calibration import metrics as m
from utility_calibration.metrics.cross_fitted import cross_fitted_gain
from utility_calibration.metrics.forecast import Forecast


def parts_of(p, y, weights=None):
    forecast = Forecast(p)
    return [(forecast, forecast.outcomes(y, weights))]


def binary(n, seed, said_of_half=0.3):
    """The event has probability 1/2 wherever `said_of_half` is said."""
    random = np.random.default_rng(seed)
    truth = random.choice([0.1, 0.5, 0.9], n)
    said = np.where(truth == 0.5, said_of_half, truth)
    y = (random.random(n) < truth).astype(int)
    return np.column_stack([1 - said, said]), y


def test_a_distortion_gains_what_it_costs_and_chance_gains_nothing():
    p, y = binary(6000, 0)
    found = cross_fitted_gain(m.ClassWise(), parts_of(p, y), np.arange(6000))
    assert abs(found.gain - 0.2 / 3) < found.half_width < 0.01
    alarms = 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        said = random.random(200)
        p, y = np.column_stack([1 - said, said]), (random.random(200) < said).astype(int)
        found = cross_fitted_gain(m.ClassWise(), parts_of(p, y), np.arange(200))
        alarms += found.gain > found.half_width
    assert alarms <= 6


@pytest.mark.parametrize("times", [2, 5])
def test_points_of_a_cluster_count_once(times):
    p, y = binary(300, 1)
    once = cross_fitted_gain(m.ClassWise(), parts_of(p, y), np.arange(300))
    clusters = np.repeat(np.arange(300), times)
    repeated = parts_of(np.repeat(p, times, axis=0), np.repeat(y, times))
    weighted = parts_of(p, y, np.full(300, float(times)))
    several_splits = parts_of(p, y) * times
    for parts, names in (
        (repeated, clusters),
        (weighted, np.arange(300)),
        (several_splits, np.tile(np.arange(300), times)),
    ):
        assert cross_fitted_gain(m.ClassWise(), parts, names) == pytest.approx(once, abs=1e-12)


def test_points_without_weight_are_no_points():
    p, y = binary(400, 2)
    weights = np.repeat([1.0, 0.0], 200)
    found = cross_fitted_gain(m.TopK(), parts_of(p, y, weights), np.arange(400) // 200)
    assert (found.gain, found.half_width) == (0, 0)  # no fold without the points that count


def test_one_cluster_tells_nothing():
    found = cross_fitted_gain(m.ClassWise(), parts_of(*binary(50, 3)), np.zeros(50, np.int64))
    assert math.isnan(found.gain)
    assert math.isnan(found.half_width)
