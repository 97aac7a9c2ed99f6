"""Other shares of the classes: Bayes' rule by hand, files and exports, and an honest estimate."""

import numpy as np
import pytest
import torch

from tests.calibrators.test_conventions import METHODS
from tests.refusals import refuses
from utility_calibration.calibrators import Calibrator, TemperatureScaling
from utility_calibration.metrics import negative_log_likelihood

PRIOR = [0.5, 0.1, 0.1, 0.2, 0.1]


@pytest.mark.parametrize("name", METHODS)
def test_probabilities_follow_bayes_rule_also_from_a_file_and_exported(name, made_up, tmp_path):
    logits, labels = made_up(n=200)
    fitted = METHODS[name].fit(logits, labels)
    plain, shares = fitted.predict_proba(logits), np.bincount(labels, minlength=5) / 200
    shifted = fitted.with_prior(PRIOR)
    p = shifted.predict_proba(logits)
    expected = plain * PRIOR / shares
    expected *= plain.sum(axis=1, keepdims=True) / expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(p, expected, atol=1e-12)
    np.testing.assert_array_equal(fitted.predict_proba(logits), plain)
    np.testing.assert_array_equal(shifted.with_prior(None).predict_proba(logits), plain)
    loaded = Calibrator.load(shifted.save(tmp_path / "shifted.npz"))
    module = loaded.to_module(torch.float64)
    np.testing.assert_allclose(module(torch.from_numpy(logits)).numpy(), p, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(fitted.with_prior(shares).predict_proba(logits), plain, atol=1e-12)
    assert not hasattr(shifted.fit(logits, labels), "prior_")


def test_shares_count_weights_and_may_be_given_by_class(made_up):
    logits, labels = made_up(n=100)
    weights, names = np.random.default_rng(0).integers(0, 3, 100), np.array(list("vwxyz"))
    fitted = TemperatureScaling().fit(logits, names[labels], weights, classes=names)
    np.testing.assert_allclose(fitted.shares_, np.bincount(labels, weights) / weights.sum())
    by_name = fitted.with_prior(dict(zip(names[::-1], PRIOR[::-1], strict=True)))
    np.testing.assert_array_equal(by_name.prior_, fitted.with_prior(PRIOR).prior_)


@pytest.mark.parametrize(
    ("number", "prior"),
    [
        ("[2]", [0.5, 0.5]),
        ("0.5", [0.1] * 5),
        ("from 0 to 1", [1.5, -0.5, 0, 0, 0]),
        ("class 4", PRIOR),
        ("9", dict(zip([0, 1, 2, 3, 9], PRIOR, strict=True))),
    ],
)
def test_shares_that_cannot_be_used_are_told_in_one_line(number, prior, made_up):
    logits, labels = made_up(n=100)
    with pytest.warns(UserWarning, match="class 4"):
        fitted = TemperatureScaling().fit(logits[labels < 4], labels[labels < 4])
    with refuses("prior", number=number):
        fitted.with_prior(prior)


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
        found = fitted.estimate_prior(z)
        covered += list((found.lower <= after) & (after <= found.upper))
        models = fitted, fitted.with_prior(found.shares)
        gains.append(np.subtract(*(negative_log_likelihood(m.predict_proba(z), y) for m in models)))
    assert np.mean(covered) > 0.9
    assert np.mean(gains) > 0.02 and np.mean(np.array(gains) > 0) > 0.9
