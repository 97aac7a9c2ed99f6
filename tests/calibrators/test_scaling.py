"""Losses against autograd; vector and structured scaling: their optima, compared with SciPy's."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.exceptions import ConvergenceWarning

from tests.metrics.kernels.test_softmax import logits as rows_of_logits
from utility_calibration.calibrators import (
    StructuredMatrixScaling,
    TemperatureScaling,
    VectorScaling,
)
from utility_calibration.calibrators.dirichlet.linear_map import map_loss
from utility_calibration.calibrators.dirichlet.reduced import ReducedHessian
from utility_calibration.calibrators.losses import residuals

ROWS, CLASSES = 300, 3


@settings(max_examples=24)
@given(
    n=st.integers(60, 200),
    classes=st.integers(2, 4),
    seed=st.integers(0, 10**6),
    loss=st.sampled_from(["nll", "brier"]),
)
def test_it_finds_a_minimum_of_its_loss(n, classes, seed, loss):
    generator = np.random.default_rng(seed)
    logits = generator.normal(size=(n, classes))
    labels = (logits + generator.gumbel(size=(n, classes))).argmax(axis=1)
    fitted = VectorScaling(loss=loss).fit(logits, labels)
    truth = np.eye(classes)[labels]

    def mean_loss(parameters):
        w, b = parameters.reshape(2, -1)
        log_p = log_softmax(w * logits + b, axis=1)
        losses = -log_p * truth if loss == "nll" else (np.exp(log_p) - truth) ** 2
        return losses.sum(axis=1).mean()

    found = np.concatenate([fitted.scale_, fitted.shift_])
    assert fitted.loss_ == pytest.approx(mean_loss(found), rel=1e-10)
    starts = [found]  # the Brier score may have a lower minimum elsewhere
    if loss == "nll":
        starts.append(np.repeat([1.0, 0.0], classes))
    for start in starts:
        assert fitted.loss_ <= minimize(mean_loss, start, method="BFGS").fun + 1e-7


@pytest.mark.parametrize("loss", ["nll", "brier"])
@pytest.mark.parametrize(("n", "classes"), [(400, 5), (2000, 10)])
def test_data_without_an_error_end_far_below_temperature(n, classes, loss):
    # A few rows near a border hold all of the curvature, and most samples of rows miss them.
    logits = 3 * np.random.default_rng(0).normal(size=(n, classes))
    labels = logits.argmax(axis=1)
    begin = TemperatureScaling(loss=loss).fit(logits, labels)
    fitted = VectorScaling(loss=loss).fit(logits, labels)
    assert fitted.loss_ < 0.5 * begin.loss_


def test_an_early_stop_is_reported(made_up):
    with pytest.warns(ConvergenceWarning, match="2 iterations"):
        VectorScaling(max_iterations=2).fit(*made_up())


def plain_objective(
    parameters: NDArray[np.float64], log_q: NDArray[np.float64], labels: NDArray[np.int64]
) -> float:
    """Mean NLL + C/n (Σ (W_jj - 1)² + Σ b_j²) + C (C - 1)/n Σ_{j≠k} W_jk²."""
    n, classes = log_q.shape
    matrix, intercept = parameters[:-classes].reshape(classes, classes), parameters[-classes:]
    nll = -log_softmax(log_q @ matrix.T + intercept, axis=1)[np.arange(n), labels].mean()
    diagonal = np.diag(matrix)
    near = ((diagonal - 1) ** 2).sum() + (intercept**2).sum()
    beside = (matrix**2).sum() - (diagonal**2).sum()
    return float(nll + classes / n * near + classes * (classes - 1) / n * beside)


def test_the_fit_is_the_minimum_of_the_objective(made_up):
    logits, labels = made_up(ROWS, CLASSES, seed=0)
    fitted = StructuredMatrixScaling().fit(logits, labels)
    beta = 1 / TemperatureScaling().fit(logits, labels).temperature_
    q = (
        softmax(beta * logits.astype(float), axis=1) * (1 - 1 / (ROWS + 1))
        + 1 / (ROWS + 1) / CLASSES
    )
    start = np.concatenate([np.eye(CLASSES).ravel(), np.zeros(CLASSES)])
    best = minimize(plain_objective, start, (np.log(q), labels), method="BFGS", tol=1e-10)
    found = np.concatenate([fitted.matrix_.ravel(), fitted.intercept_])
    assert plain_objective(found, np.log(q), labels) <= best.fun + 1e-7
    np.testing.assert_allclose(found, best.x, atol=1e-3)
    expected = softmax(np.log(q) @ fitted.matrix_.T + fitted.intercept_, axis=1)
    np.testing.assert_allclose(fitted.predict_proba(logits), expected, atol=1e-12)


def test_a_thousand_classes_with_few_points_each_are_fitted_to_the_optimum(made_up):
    logits, labels = made_up(600, 1000, seed=2)
    fitted = StructuredMatrixScaling().fit(logits, labels)  # warns where it does not converge
    assert fitted.nll_ < TemperatureScaling().fit(logits, labels).nll_ + 1 / 600


@given(rows_of_logits, st.integers(0, 10**6), st.sampled_from(["nll", "brier"]))
def test_a_loss_and_its_gradient_are_those_of_autograd(values, seed, loss):
    labels = np.random.default_rng(seed).integers(0, values.shape[1], len(values))
    z, y = torch.from_numpy(values).clone().requires_grad_(), torch.from_numpy(labels)
    away = torch.softmax(z, dim=1) - torch.nn.functional.one_hot(y, values.shape[1])
    nll = torch.nn.functional.cross_entropy(z, y, reduction="sum")
    expected = nll if loss == "nll" else away.square().sum()
    expected.backward()
    block = values.copy()
    total = residuals(block, labels, loss=loss)
    assert total == pytest.approx(expected.item(), rel=1e-12, abs=1e-13)
    np.testing.assert_allclose(block, z.grad.numpy(), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize(("n", "classes"), [(300, 4), (1000, 10), (5000, 2)])
def test_structured_scaling_takes_one_huge_weight(made_up, n, classes):
    logits, labels = made_up(n=n, classes=classes)
    weights = np.where(np.arange(n) == 3, 1e9, 1.0)
    fitted = StructuredMatrixScaling().fit(logits, labels, sample_weight=weights)
    begin = TemperatureScaling().fit(logits, labels, sample_weight=weights)
    assert fitted.nll_ <= begin.nll_


@pytest.mark.parametrize("strength", [1e-6, 1e-9, 1e-12])
def test_structured_scaling_takes_penalties_that_are_nearly_none(strength):
    generator = np.random.default_rng(4)
    labels = generator.integers(0, 4, 300)
    logits = generator.normal(size=(300, 4)) + 2 * np.eye(4)[labels]
    strengths = dict.fromkeys(["diagonal", "off_diagonal", "intercept"], strength)
    weak = StructuredMatrixScaling(**strengths).fit(logits, labels)
    assert weak.nll_ < StructuredMatrixScaling().fit(logits, labels).nll_


@pytest.mark.parametrize("classes", [4, 80])
def test_the_reduced_hessian_is_exact_along_its_directions(made_up, classes):
    logits, labels = made_up(60, classes, seed=4)
    x = log_softmax(logits.astype(np.float64), axis=1)
    counts = np.linspace(0.5, 2, 60)
    penalty = np.full((classes, classes + 1), 0.1)
    reduced = ReducedHessian.at(x.astype(np.float32), counts)
    start = np.eye(classes, classes + 1)

    def gradient(point):
        slopes = np.empty_like(point)
        map_loss(x, labels, point, slopes, counts=counts)
        return slopes + penalty * point

    rng = np.random.default_rng(0)
    steps = rng.normal(size=(classes, reduced.directions.shape[2], 1))
    step = (reduced.directions @ steps)[:, :, 0]
    pushed = (gradient(start + 1e-5 * step) - gradient(start - 1e-5 * step)) / 2e-5
    along = reduced.directions.mT @ pushed[:, :, None]
    inside = (reduced.directions @ along)[:, :, 0]
    solved = reduced.preconditioner(penalty)(inside[None])[0]
    np.testing.assert_allclose(solved, step, rtol=1e-3, atol=1e-4)
