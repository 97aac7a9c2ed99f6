"""Vector scaling: the optimum of a convex problem, compared with a long run of SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.special
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from calibrators import VectorScaling, reference
from calibrators.vector import hessian_at, loss_and_derivatives


@settings(deadline=None, max_examples=15)
@given(n=st.integers(60, 200), classes=st.integers(2, 5), seed=st.integers(0, 10**6))
def test_it_finds_the_minimum_of_the_likelihood(n, classes, seed):
    generator = np.random.default_rng(seed)
    logits = generator.normal(size=(n, classes))
    labels = (logits + generator.gumbel(size=(n, classes))).argmax(axis=1)
    fitted = VectorScaling().fit(logits, labels)
    scale, shift = reference.vector_scaling(logits, labels)
    assert fitted.nll_ <= reference.log_loss(scale * logits + shift, labels) + 1e-8


START = torch.tensor([[0.7] * 5, [0.0] * 5], dtype=torch.float64)
"""w and b at which the Hessian is taken."""


@pytest.mark.parametrize("loss", ["nll", "brier"])
def test_gradient_and_curvature_are_the_derivatives(made_up, loss):
    """The Brier score's curvature is Gauss-Newton's, which is never negative."""
    logits, labels = (torch.from_numpy(part) for part in made_up(n=30))
    point = torch.randn(2, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def forecast(parameters):
        return torch.softmax(logits.double() * parameters[0] + parameters[1], dim=1)

    def mean_loss(parameters):
        p, truth = forecast(parameters), torch.nn.functional.one_hot(labels, 5)
        if loss == "nll":
            return -(p.log() * truth).sum(dim=1).mean()
        return (p - truth).square().sum(dim=1).mean()

    value, gradient = loss_and_derivatives(logits, labels, point, loss)
    assert value == pytest.approx(mean_loss(point).item(), rel=1e-12)
    (expected,) = torch.autograd.grad(mean_loss(point.requires_grad_()), point)
    torch.testing.assert_close(gradient, expected, rtol=1e-9, atol=1e-14)
    if loss == "nll":
        hessian = torch.autograd.functional.hessian(mean_loss, START).reshape(10, 10)
    else:
        by_parameter = torch.autograd.functional.jacobian(forecast, START).flatten(2)  # [n, C, 2C]
        hessian = 2 * torch.einsum("ica,icb->ab", by_parameter, by_parameter) / 30
    torch.testing.assert_close(hessian_at(logits, 0.7, loss), hessian, rtol=1e-9, atol=1e-14)


def test_an_early_stop_is_reported(made_up):
    with pytest.warns(ConvergenceWarning, match="stopped after 2 iterations"):
        VectorScaling(max_iterations=2).fit(*made_up())


def least_brier(logits, labels, start):
    """The smallest Brier score that SciPy's BFGS reaches over (w, b) from `start`."""
    truth = np.eye(logits.shape[1])[labels]

    def objective(flat):
        w, b = flat.reshape(2, -1)
        p = scipy.special.softmax(w * logits.astype(np.float64) + b, axis=1)
        return ((p - truth) ** 2).sum(axis=1).mean()

    return scipy.optimize.minimize(objective, start.ravel(), method="BFGS").fun


@settings(deadline=None, max_examples=15)
@given(n=st.integers(60, 200), classes=st.integers(2, 4), seed=st.integers(0, 10**6))
def test_it_finds_a_minimum_of_the_brier_score(n, classes, seed):
    generator = np.random.default_rng(seed)
    logits = generator.normal(size=(n, classes))
    labels = (logits + generator.gumbel(size=(n, classes))).argmax(axis=1)
    fitted = VectorScaling(loss="brier").fit(logits, labels)
    p = fitted.predict_proba(logits)
    score = ((p - np.eye(classes)[labels]) ** 2).sum(axis=1).mean()
    assert fitted.loss_ == pytest.approx(score, rel=1e-10)
    for start in ([fitted.scale_, fitted.shift_], [np.ones(classes), np.zeros(classes)]):
        assert score <= least_brier(logits, labels, np.stack(start)) + 1e-7
