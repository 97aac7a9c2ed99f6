"""Other shares of the classes: Bayes' rule by hand, and an honest estimate."""

import numpy as np
import pytest
import torch

from tests.refusals import refuses
from utility_calibration.calibrators import TemperatureScaling, estimate_prior, reweight
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
        estimate_prior(np.full((4, 2), 0.5), [0.5, 0.5], confidence=1.0)


def test_the_estimate_finds_shares_without_labels_and_its_intervals_cover():
    covered, gains = [], []
    for seed in range(30):
        random = np.random.default_rng(seed)
        means, before, after = random.normal(size=(4, 5)), *random.dirichlet(np.full(4, 3.0), 2)

        def draw(n, shares, random=random, means=means, before=before):
            y = random.choice(4, n, p=shares)
            x = means[y] + random.normal(size=(n, 5))
            return 2 * (x @ means.T - 0.5 * (means**2).sum(axis=1) + np.log(before)), y

        fitted = TemperatureScaling().fit(*draw(4000, before))
        z, y = draw(1000, after)
        p = fitted.predict_proba(z)
        found = estimate_prior(p, fitted.shares_)
        covered += list((found.lower <= after) & (after <= found.upper))
        both = p, reweight(p, found.shares, fitted.shares_)
        gains.append(np.subtract(*(negative_log_likelihood(each, y) for each in both)))
    assert np.mean(covered) > 0.9
    assert np.mean(gains) > 0.02 and np.mean(np.array(gains) > 0) > 0.9
