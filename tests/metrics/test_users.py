"""Which of the sampled users are measured under drawn labels and resampled points."""

import numpy as np
import pytest

from tests.cards import draws_of
from tests.forecasts import forecast_of, labels_from
from utility_calibration import metrics as m
from utility_calibration.metrics import users as module
from utility_calibration.metrics.forecast import Forecast
from utility_calibration.metrics.measurement import Options
from utility_calibration.metrics.resampling import redrawn_outcomes, resampled_weights
from utility_calibration.metrics.samples import sample_of
from utility_calibration.metrics.users import evenly_spread, noise_of, sampled_users

FEW = {"utilities": 40, "floor_repetitions": 30, "bootstrap_repetitions": 5}


def noise_by_definition(users, p, weights):
    """Each user's mean variance, point by point."""
    noises = []
    for payoffs in users.matrix:
        of_points = []
        for row in p:
            values = np.sort(row)[::-1] if users.coordinate == "rank" else row
            mean = (values * payoffs).sum()
            of_points.append((values * (payoffs - mean) ** 2).sum())
        noises.append(np.average(of_points, weights=weights**2))
    return noises


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("kind", ["smooth", "dyadic", "one_hot"])
def test_a_users_noise_is_the_mean_variance_of_its_utility(kind, is_weighted):
    p, y = forecast_of(kind, 60, 5, 3)
    weights = np.random.default_rng(1).uniform(0.5, 2, 60) if is_weighted else np.ones(60)
    sample = sample_of(p, y, sample_weight=weights if is_weighted else None)
    for users in sampled_users(5, Options(utilities=12)).values():
        expected = noise_by_definition(users, p, weights)
        assert noise_of(users, sample) == pytest.approx(expected, abs=1e-12)


def test_of_many_points_some_in_equal_steps_tell_the_noise(monkeypatch):
    p, y = forecast_of("smooth", 300, 4, 5)
    monkeypatch.setattr(module, "ENOUGH", 300)
    for users in sampled_users(4, Options(utilities=6)).values():
        of_some = noise_of(users, sample_of(p[::4], y[::4]))
        np.testing.assert_allclose(noise_of(users, sample_of(p, y)), of_some, rtol=1e-12)


def test_users_are_spread_from_the_first_to_the_last_and_ties_keep_their_order():
    users = m.Linear(np.arange(20.0).reshape(10, 2))
    chosen = evenly_spread(users, np.array([0, 9, 1, 8, 2, 7, 3, 6, 4, 5]), 4)
    assert chosen.matrix[:, 0].tolist() == [0, 12, 14, 2]
    assert evenly_spread(users, np.zeros(10), 4).matrix[:, 0].tolist() == [0, 6, 12, 18]
    assert evenly_spread(users, np.zeros(10), 10) is users


def test_floors_are_of_users_spread_by_noise_and_intervals_by_the_variance_of_payoffs():
    p, y = forecast_of("smooth", 150, 5, 6)
    few = m.scorecard(p, y, floor_utilities=15, bootstrap_utilities=20, **FEW)
    every = m.scorecard(p, y, floor_utilities=80, bootstrap_utilities=40, **FEW)
    assert few.metrics == every.metrics
    all_draws = draws_of(every)
    for key, draws in draws_of(few).items():
        is_sampled = m.METRICS[key.split("_", 1)[1]].sampled
        assert (draws != all_draws[key]).any() == is_sampled, key
    forecast, payoffs = Forecast(p), m.Rank.sample(40, 5, 1).matrix
    noise = noise_by_definition(m.Rank(payoffs), p, np.ones(150))
    by_noise = payoffs[np.argsort(noise)][[0, 6, 11, 17, 22, 28, 33, 39]]  # half of 15
    _, drawn = next(redrawn_outcomes(forecast, np.arange(150), 30, 0))
    errors = np.sort(m.Rank(by_noise).errors(forecast, drawn), axis=1)
    medians = errors[:, 3:5].mean(axis=1)
    np.testing.assert_allclose(few["u_rank_median"].floor_draws, medians, atol=1e-12)
    line = few.curves["rank"].floor_mean
    np.testing.assert_allclose(line[[0, -1]], errors.mean(axis=0)[[0, -1]], atol=1e-12)
    assert len(line) == 40 and (np.diff(line) > 0).all()
    by_variance = payoffs[payoffs.var(axis=1).argsort()][np.linspace(0, 39, 20).round().astype(int)]
    counts = next(resampled_weights(np.arange(150), 150, 5, 0))
    errors = np.sort(m.Rank(by_variance).errors(forecast, forecast.outcomes(y, counts)), axis=1)
    medians = errors[:, 9:11].mean(axis=1)
    np.testing.assert_allclose(few["u_rank_median"].bootstrap_draws, medians, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [3, 10])
def test_few_users_find_the_truth_beyond_chance_in_five_percent(classes):
    random, trials, alarms = np.random.default_rng(classes), 400, dict.fromkeys(m.METRICS, 0)
    for trial in range(trials):
        p = random.dirichlet(np.full(classes, 0.5), size=200)
        options = {"utilities": 400, "floor_utilities": 80, "noise_seed": trial}
        card = m.scorecard(p, labels_from(p, random), floor_repetitions=99, **options)
        for key in card:
            if m.METRICS[key].sampled:
                alarms[key] += card[key].floor.p_value <= 0.05
    shares = [alarms[key] / trials for key in alarms if m.METRICS[key].sampled]
    assert min(shares) > 0 and max(shares) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / trials)
