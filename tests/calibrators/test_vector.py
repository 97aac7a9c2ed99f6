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
from metrics.validation import InputError


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


def test_gradient_and_curvature_are_the_derivatives(made_up):
    logits, labels = (torch.from_numpy(part) for part in made_up(n=30))
    point = torch.randn(2, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def loss(parameters):
        mapped = logits.double() * parameters[0] + parameters[1]
        return torch.nn.functional.cross_entropy(mapped, labels)

    value, gradient = loss_and_derivatives(logits, labels, point)
    assert value == pytest.approx(loss(point).item(), rel=1e-13)
    (expected,) = torch.autograd.grad(loss(point.requires_grad_()), point)
    torch.testing.assert_close(gradient, expected, rtol=1e-10, atol=1e-14)
    hessian = torch.autograd.functional.hessian(loss, START)
    torch.testing.assert_close(
        hessian_at(logits, 0.7), hessian.reshape(10, 10), rtol=1e-10, atol=1e-14
    )


def test_an_early_stop_is_reported(made_up):
    with pytest.warns(ConvergenceWarning, match="stopped after 2 iterations"):
        VectorScaling(max_iterations=2).fit(*made_up())


@pytest.mark.parametrize("parameters", [{"l2": -1.0}, {"max_iterations": 0}])
def test_parameters_out_of_range_are_refused(made_up, parameters):
    with pytest.raises(InputError, match=next(iter(parameters))):
        VectorScaling(**parameters).fit(*made_up())


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


def test_the_brier_score_has_its_gradient_and_gauss_newton_curvature(made_up):
    logits, labels = (torch.from_numpy(part) for part in made_up(n=30))
    point = torch.randn(2, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def forecast(parameters):
        return torch.softmax(logits.double() * parameters[0] + parameters[1], dim=1)

    def loss(parameters):
        truth = torch.nn.functional.one_hot(labels, 5)
        return (forecast(parameters) - truth).square().sum(dim=1).mean()

    value, gradient = loss_and_derivatives(logits, labels, point, "brier")
    assert value == pytest.approx(loss(point).item(), rel=1e-12)
    (expected,) = torch.autograd.grad(loss(point.requires_grad_()), point)
    torch.testing.assert_close(gradient, expected, rtol=1e-9, atol=1e-14)
    jacobian = torch.autograd.functional.jacobian(forecast, START)  # [n, C, 2, C]
    by_parameter = jacobian.flatten(2)
    hessian = 2 * torch.einsum("ica,icb->ab", by_parameter, by_parameter) / 30
    torch.testing.assert_close(hessian_at(logits, 0.7, "brier"), hessian, rtol=1e-9, atol=1e-14)
