"""Structured matrix scaling against its objective in plain NumPy; what its penalties promise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from calibrators import StructuredMatrixScaling, TemperatureScaling

ROWS, CLASSES = 300, 3


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
