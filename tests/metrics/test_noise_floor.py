"""The noise floor: what a perfectly calibrated forecast scores on as many points."""

import numpy as np
import pytest

from tests.cards import parts_of
from tests.forecasts import labels_from
from utility_calibration import metrics as m
from utility_calibration.metrics.resampling import NoiseFloor

N, CLASSES, FORECASTS = 250, 4, 60
OPTIONS = {"floor_repetitions": 60, "utilities": 30}


def forecast(seed, sharpness=1.0):
    """Probabilities claimed, and labels drawn from them before they were sharpened."""
    random = np.random.default_rng(seed)
    p = random.dirichlet(np.full(CLASSES, 0.7), size=N)
    labels = labels_from(p, random)
    claimed = p**sharpness
    return claimed / claimed.sum(axis=1, keepdims=True), labels


@pytest.fixture(scope="module")
def calibrated():
    """Scorecards of forecasts whose labels are drawn from themselves."""
    return [m.scorecard(*forecast(seed), noise_seed=seed, **OPTIONS) for seed in range(FORECASTS)]


ERRORS = [key for key, metric in m.METRICS.items() if metric.has_floor and key != "u_w2v"]


def test_one_calibrated_forecast_in_twenty_exceeds_the_95_percent_quantile(calibrated):
    """Roughly: of 60 draws, for 60 forecasts, whose metrics hang together."""
    below = [
        np.mean([card.metrics[key] <= card[key].floor.q95 for card in calibrated]) for key in ERRORS
    ]
    assert min(below) > 0.85
    assert max(below) < 1
    assert np.mean(below) == pytest.approx(0.95, abs=0.02)


def test_the_labels_given_do_not_enter_the_floor():
    p, y = forecast(1)
    draws = [
        parts_of(m.scorecard(p, labels, **OPTIONS), "floor_draws")
        for labels in (y, np.zeros_like(y))
    ]
    for key, drawn in draws[0].items():
        np.testing.assert_array_equal(drawn, draws[1][key])


def test_the_p_value_counts_the_observed_error_and_draws_that_are_smaller_by_rounding():
    floor = NoiseFloor.of([4.0, 1.0, 3.0, 2.0], observed=3.0)
    assert floor == pytest.approx((2.5, 3.85, (1 + 2) / (1 + 4)))
    assert NoiseFloor.of([np.nextafter(0.3, 0), 0.2], observed=0.3).p_value == pytest.approx(2 / 3)
    assert NoiseFloor.of([0.3 * (1 - 1e-9), 0.2], observed=0.3).p_value == pytest.approx(1 / 3)


def test_the_largest_error_of_the_class_is_compared_with_the_floor():
    """All classes together have no error at all, the most probable one has a large one."""
    p = np.tile([0.8, 0.1, 0.1], (300, 1))
    labels = np.arange(300) % 3
    assert m.TopK().evaluate(p, labels, repetitions=100).floor.p_value < 0.02


def test_weights_by_class_go_with_the_drawn_label():
    weights = np.array([0.2, 5, 1, 1])
    p, y = forecast(1)
    floors = [
        m.TopK().evaluate(p, y, repetitions=40, sample_weight=scale * weights[y]).floor
        for scale in (1, 7)
    ]
    assert floors[0] == pytest.approx(floors[1], abs=1e-12)
    counted = np.arange(N) % 5 > 0  # a point of weight 0 is no point
    given = {"sample_weight": weights[y][counted]}
    part = m.TopK().evaluate(p, y, repetitions=40, sample_weight=weights[y] * counted).floor
    np.testing.assert_allclose(
        part, m.TopK().evaluate(p[counted], y[counted], repetitions=40, **given).floor
    )
    others = weights[y] * (1 + 1e-3 * np.random.default_rng(0).random(N))  # of the points
    assert (
        m.TopK().evaluate(p, y, repetitions=40, sample_weight=others).floor.mean != floors[0].mean
    )
    card = m.scorecard(p, y, sample_weight=weights[y], utilities=5, floor_repetitions=40)
    assert card["u_topk"].floor == pytest.approx(floors[0], abs=1e-12)


def test_a_class_without_a_point_may_be_heavy():
    """With the mean weight its absence would look like an error of the forecast."""
    weights, random = np.array([0.1, 1]), np.random.default_rng(0)
    p = random.dirichlet(np.ones(3), size=60)
    odds = p[:, :2] / weights
    y = (random.random(60) < odds[:, 1] / odds.sum(axis=1)).astype(int)
    with pytest.warns(UserWarning, match="1 classes"):
        floor = m.ClassWise().evaluate(p, y, repetitions=200, sample_weight=weights[y]).floor
    assert floor.p_value > 0.05
