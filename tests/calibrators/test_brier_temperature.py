"""The temperature of least Brier score: derivatives, the lowest of several minima, the ends."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from calibrators import TemperatureScaling
from calibrators.brier_temperature import brier_moments, least_brier
from calibrators.temperature import fit_temperature
from metrics.validation import InputError


def brier(logits, labels, beta):
    p = scipy.special.softmax(beta * logits.astype(np.float64), axis=1)
    return ((p - np.eye(logits.shape[1])[labels]) ** 2).sum(axis=1).mean()


@pytest.mark.parametrize("beta", [0.01, 0.3, 2.0])
def test_score_slope_and_curvature_are_finite_differences(made_up, beta):
    logits, labels = made_up(n=60)
    found = brier_moments(torch.from_numpy(logits), torch.from_numpy(labels), beta)
    step = 1e-4
    below, at, above = (brier(logits, labels, beta + k * step) for k in (-1, 0, 1))
    assert found.score == pytest.approx(at, rel=1e-13)
    assert found.slope == pytest.approx((above - below) / (2 * step), rel=1e-4, abs=1e-8)
    assert found.curvature == pytest.approx((above - 2 * at + below) / step**2, rel=1e-3, abs=1e-5)
    assert found.rounding < 1e-13


@settings(deadline=None, max_examples=20)
@given(
    n=st.integers(2, 40),
    classes=st.integers(2, 5),
    spread=st.floats(0, 3),
    seed=st.integers(0, 10**6),
)
def test_no_point_of_a_dense_grid_is_lower(n, classes, spread, seed):
    """Rows of very different scale make several minima."""
    generator = np.random.default_rng(seed)
    logits = generator.normal(size=(n, classes)) * 10 ** generator.uniform(-spread, spread, (n, 1))
    labels = generator.integers(0, classes, n)
    found = least_brier(torch.from_numpy(logits), torch.from_numpy(labels), 1e-6, 1e6)
    assert found.score == pytest.approx(brier(logits, labels, found.beta), abs=1e-12)
    lowest = min(brier(logits, labels, beta) for beta in np.geomspace(1e-6, 1e6, 1500))
    assert found.score <= lowest + 1e-9


def test_a_grid_from_a_sample_of_the_rows_leads_to_the_same_minimum(made_up, monkeypatch):
    given = [torch.from_numpy(part) for part in made_up(n=3000)]
    whole = least_brier(*given, 1e-6, 1e6)
    monkeypatch.setattr("calibrators.brier_temperature.SCANNED", 3000)
    assert least_brier(*given, 1e-6, 1e6).beta == pytest.approx(whole.beta, rel=1e-9)


@pytest.mark.parametrize("sign", [4, -4, 0])
def test_separable_uninformative_and_constant_logits_end_as_with_the_likelihood(sign):
    labels = torch.arange(30) % 3
    logits = sign * torch.eye(3, dtype=torch.float64)[labels] - 1  # else they look like votes
    with pytest.warns(ConvergenceWarning, match="T = ") as caught:
        fitted = TemperatureScaling(loss="brier").fit(logits, labels)
    assert len(caught) == 1
    likelihood = fit_temperature(logits, labels)
    assert (1 / fitted.temperature_, fitted.outcome_) == (likelihood.beta, likelihood.outcome)


def test_an_unknown_loss_is_refused(made_up):
    with pytest.raises(InputError, match="choose likelihood or brier"):
        TemperatureScaling(loss="squared").fit(*made_up())
