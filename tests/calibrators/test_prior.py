"""Other shares of the classes: Bayes' rule by hand, and an honest estimate."""

import numpy as np
import pytest
import torch

from tests.refusals import refuses
from utility_calibration.calibrators import (
    TemperatureScaling,
    VectorScaling,
    estimate_prior,
    reweight,
)
from utility_calibration.metrics import negative_log_likelihood

PRIOR = [0.5, 0.1, 0.1, 0.2, 0.1]


def test_probabilities_follow_bayes_rule_in_every_row(made_up):
    logits, labels = made_up(n=200)
    fitted = TemperatureScaling().fit(logits, labels)
    p, shares = fitted.predict_proba(logits), np.bincount(labels, minlength=5) / 200
    np.testing.assert_allclose(fitted.shares_, shares)
    expected = p * PRIOR / shares
    expected /= expected.sum(axis=1, keepdims=True)
    moved = reweight(p, PRIOR, fitted.shares_)
    np.testing.assert_allclose(moved, expected, atol=1e-12)
    np.testing.assert_allclose(reweight(p, shares, shares), p, atol=1e-12)
    from_torch = reweight(torch.from_numpy(p), PRIOR, shares)
    assert isinstance(from_torch, torch.Tensor)
    np.testing.assert_array_equal(from_torch.numpy(), moved)
    raw = reweight(3 * p, PRIOR, shares)  # rows of unnormalised methods keep their sums
    np.testing.assert_allclose(raw, 3 * moved, atol=1e-12)
    impossible = np.array([[0.0, 0.0, 1.0]])
    np.testing.assert_array_equal(reweight(impossible, [0.5, 0.5, 0], [0.2, 0.3, 0.5]), impossible)


def test_shares_count_weights(made_up):
    logits, labels = made_up(n=100)
    weights = np.random.default_rng(0).integers(0, 3, 100)
    fitted = TemperatureScaling().fit(logits, labels, weights)
    np.testing.assert_allclose(fitted.shares_, np.bincount(labels, weights) / weights.sum())


@pytest.mark.parametrize(
    ("number", "prior"),
    [
        ("[2]", [0.5, 0.5]),
        ("0.5", [0.1] * 5),
        ("from 0 to 1", [1.5, -0.5, 0, 0, 0]),
        ("class 4", PRIOR),
    ],
)
def test_shares_that_cannot_be_used_are_told_in_one_line(number, prior, made_up):
    logits, labels = made_up(n=100)
    with pytest.warns(UserWarning, match="class 4"):
        fitted = TemperatureScaling().fit(logits[labels < 4], labels[labels < 4])
    with refuses("prior", number=number):
        reweight(fitted.predict_proba(logits), prior, fitted.shares_)


def test_shares_of_another_forecast_are_refused():
    for p in (np.full((4, 3), 1 / 3), np.full(3, 1 / 3)):
        with refuses("shares", fix="shares_"):
            reweight(p, [0.5, 0.5], [0.5, 0.5])
    with refuses("confidence"):
        estimate_prior(np.full((4, 2), 0.5), [0.5, 0.5], 100, confidence=1.0)
    with refuses("n_points", fix="n_points_"):
        estimate_prior(np.full((4, 2), 0.5), [0.5, 0.5], 0)


def gaussian_classes(seed):
    """A function that draws logits of temperature 2 and labels; shares before and after."""
    random = np.random.default_rng(seed)
    means, before, after = random.normal(size=(4, 5)), *random.dirichlet(np.full(4, 3.0), 2)

    def draw(n, shares):
        y = random.choice(4, n, p=shares)
        x = means[y] + random.normal(size=(n, 5))
        return 2 * (x @ means.T - 0.5 * (means**2).sum(axis=1) + np.log(before)), y

    return draw, before, after


@pytest.mark.parametrize(("calibration", "new"), [(4000, 1000), (300, 500), (100, 4000)])
def test_the_estimate_finds_shares_without_labels_and_its_intervals_cover(calibration, new):
    covered, gains = [], []
    for seed in range(30):
        draw, before, after = gaussian_classes(seed)
        fitted = TemperatureScaling().fit(*draw(calibration, before))
        z, y = draw(new, after)
        p = fitted.predict_proba(z)
        found = estimate_prior(p, fitted.shares_, fitted.n_points_)
        covered += list((found.lower <= after) & (after <= found.upper))
        both = p, reweight(p, found.shares, fitted.shares_)
        gains.append(np.subtract(*(negative_log_likelihood(each, y) for each in both)))
    assert np.mean(covered) > 0.9
    if calibration > 1000:
        assert np.mean(gains) > 0.02 and np.mean(np.array(gains) > 0) > 0.9


def test_classes_that_are_told_apart_leave_the_noise_of_counting_alone():
    """Then no error of the calibrator matters, and the interval is that of a share of 400."""
    p = np.repeat([[1 - 1e-9, 1e-9], [1e-9, 1 - 1e-9]], [300, 100], axis=0)
    found = estimate_prior(p, [0.5, 0.5], 50)
    half = 1.96 * np.sqrt(0.75 * 0.25 / 400)
    np.testing.assert_allclose(found.upper - found.shares, half, rtol=1e-3)


def test_fewer_calibration_points_make_wider_intervals():
    draw, before, after = gaussian_classes(0)
    fitted = VectorScaling().fit(*draw(500, before))
    p = fitted.predict_proba(draw(2000, after)[0])
    found = [estimate_prior(p, fitted.shares_, n_points) for n_points in (50, 500, 5000, 1e12)]
    halves = np.array([each.upper - each.shares for each in found])
    assert (np.diff(halves, axis=0) < 0).all()


def test_points_of_a_fit_are_counted_with_their_weights():
    draw, before, _ = gaussian_classes(0)
    z, y = draw(200, before)
    assert TemperatureScaling().fit(z, y).n_points_ == 200
    assert TemperatureScaling().fit(z, y, np.full(200, 3)).n_points_ == 600
    uneven = np.random.default_rng(0).random(200)
    kish = uneven.sum() ** 2 / (uneven**2).sum()
    assert TemperatureScaling().fit(z, y, uneven).n_points_ == pytest.approx(kish)
