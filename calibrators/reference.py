"""Algorithm 1 of the paper (app. A) and the fitted maps in plain NumPy and SciPy, float64.

Read this file beside the paper. The tests compare `calibrators` with it, whose classes find the
same patches and the same optima faster. In Algorithm 1 p = f(X) [n, C] are the probabilities, y [n]
the labels, v [n] and u [n] the predicted and the realized values of a utility, and u⃗ [n, C] its
vectors. The utilities are U_CWE ∪ U_topK (sec. 3.2), the C classes first and then K = 1 … C.
"""

from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax

from utility_calibration.metrics.reference import (
    Floats,
    Labels,
    predicted_and_realized,
    worst_interval,
)

TIED, TIED_RANKS, EQUAL = 1e-6, 2.5e-7, 1e-10
"""Largest distances at which two v are tied, at which two p of a row are tied, and at which two
errors are equal. So rounding decides nothing. In the paper all three are 0."""


class Patch(NamedTuple):
    """Points with low <= v <= high of utility number `utility` took a step η along -ξ u⃗."""

    utility: int
    low: float
    high: float
    xi: int
    eta: float
    error: float


def tied_order(p: Floats, tied: float = TIED_RANKS) -> NDArray[np.int64]:
    """Return each row's classes in descending order of p, and by number where p are tied."""
    order = np.argsort(-p, axis=1, kind="stable")
    gaps = -np.diff(np.take_along_axis(p, order, axis=1), axis=1)
    group = np.zeros_like(order)
    np.put_along_axis(group, order[:, 1:], np.cumsum(gaps > tied, axis=1), axis=1)
    return np.argsort(group, axis=1, kind="stable")


def utility_vectors(order: NDArray[np.int64], number: int) -> Floats:
    """Return u⃗: 1{j = c} for U_CWE (Example 3.4), 1{rank(p, j) <= K} for U_topK (Example 3.6)."""
    n, classes = order.shape
    vectors = np.zeros((n, classes))
    chosen = np.full((n, 1), number) if number < classes else order[:, : number - classes + 1]
    np.put_along_axis(vectors, chosen, 1.0, axis=1)
    return vectors


def projection(x: Floats) -> Floats:
    """π_Δ (Algorithm 1, line 9): the nearest point of the simplex to each row, max(x - τ, 0).

    The k entries above τ must sum to 1 + k τ. They are the k largest, for the largest such k.
    """
    ordered = -np.sort(-x, axis=1)
    thresholds = (np.cumsum(ordered, axis=1) - 1) / np.arange(1, x.shape[1] + 1)
    support = (ordered > thresholds).sum(axis=1)
    return np.maximum(x - thresholds[np.arange(len(x)), support - 1][:, None], 0)


def algorithm_1(
    p: Floats,
    y: Labels,
    steps: int,
    epsilon: float = 1e-4,
    step_size: float = 1.0,
    armijo: float = 0.5,
    decrease: float = 0.5,
    capped: bool = True,
    trials: int | None = None,
) -> tuple[Floats, list[Patch]]:
    """Return f^(T) on the calibration points and the patches that lead there, T <= `steps`.

    The line search takes the last of so many `trials`, as JAXopt does, or tries on if None.
    """
    n, classes = p.shape
    outcome = np.eye(classes)[y]
    patches: list[Patch] = []
    while len(patches) < steps:
        # Lines 3, 4: w = ξ u⃗ 1{v in I} of largest err = E<f(X) - Y, w(f(X))>, the first if equal.
        order, worst = tied_order(p), []
        for number in range(2 * classes):
            v, u = predicted_and_realized(utility_vectors(order, number), p, y)
            worst.append(worst_interval(v, u, TIED))
        errors = np.array([error for error, *_ in worst])
        number = int(np.argmax(errors >= errors.max() - EQUAL))
        error, first, last, xi = worst[number]
        # Line 5.
        if error <= epsilon:
            break
        # The interval ends in the middle of the gaps around it.
        vectors = utility_vectors(order, number)
        v, _ = predicted_and_realized(vectors, p, y)
        low = (first + max(v[v < first], default=-np.inf)) / 2
        high = (last + min(v[v > last], default=np.inf)) / 2
        inside = (low <= v) & (v <= high)
        # Line 8: Armijo's backtracking on the Brier score. The cap is four times the step that is
        # best without the simplex's borders, err / E[‖u⃗ - mean u⃗‖² 1{v in I}].
        centred = vectors - vectors.mean(axis=1, keepdims=True)
        best = n * error / np.square(centred[inside]).sum()
        eta = step_size
        while capped and eta > 4 * best:
            eta *= decrease
        for trial in count(1):
            moved = projection(p[inside] - eta * xi * vectors[inside])
            displaced = moved - p[inside]
            slope = 2 * np.sum((p - outcome)[inside] * displaced)
            change = slope + np.square(displaced).sum()
            if (slope < 0 and change <= armijo * slope) or trial == trials:
                break
            eta *= decrease
        # Line 9: f ← Π(f - η w).
        p = p.copy()
        p[inside] = moved
        patches.append(Patch(number, low, high, xi, eta, error))
    return p, patches


def log_loss(logits: NDArray[Any], labels: Labels) -> float:
    """Return the mean of -log softmax(z)_y in float64, in nats."""
    total = 0.0
    for start in range(0, len(labels), 4096):
        rows = slice(start, start + 4096)
        log_p = log_softmax(logits[rows].astype(np.float64), axis=1)
        total -= log_p[np.arange(len(log_p)), labels[rows]].sum()
    return total / len(labels)


def temperature(logits: NDArray[np.float32], labels: Labels) -> float:
    """Return the inverse temperature of least NLL, by Brent's method on its logarithm."""
    z = logits.astype(np.float64)
    best = minimize_scalar(
        lambda t: log_loss(np.exp(t) * z, labels), bounds=(-5, 5), options={"xatol": 1e-8}
    )
    return float(np.exp(best.x))


def _fitted(
    x: Floats, labels: Labels, start: Floats, mapped: Any, slopes: Any, weights: Any = 0.0
) -> Floats:
    """Minimise NLL of softmax(mapped(point)) + sum of weights * point² by SciPy's L-BFGS-B."""
    one_hot = np.eye(x.shape[1])[labels]

    def objective(parameters: Floats) -> tuple[float, Floats]:
        point = parameters.reshape(start.shape)
        log_p = log_softmax(mapped(point), axis=1)
        loss = -float((log_p * one_hot).sum()) / len(labels) + float((weights * point**2).sum())
        residual = (np.exp(log_p) - one_hot) / len(labels)
        return loss, (slopes(residual) + 2 * weights * point).ravel()

    options = {"maxiter": 1000, "maxfun": 2000, "ftol": 1e-12, "gtol": 1e-7}
    best = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(best.x).reshape(start.shape)


def vector_scaling(logits: NDArray[np.float32], labels: Labels) -> Floats:
    """Return w and b of softmax(w z + b) by L-BFGS-B from w = 1, b = 0: [2, C]."""
    z = logits.astype(np.float64)
    return _fitted(
        z,
        labels,
        start=np.stack([np.ones(z.shape[1]), np.zeros(z.shape[1])]),
        mapped=lambda point: z * point[0] + point[1],
        slopes=lambda residual: np.stack([(residual * z).sum(axis=0), residual.sum(axis=0)]),
    )


def dirichlet(logits: NDArray[np.float32], labels: Labels, odir: float, l2: float) -> Floats:
    """Return W and b of softmax(W ln p + b) with the ODIR penalty (Kull et al. 2019).

    It is found by L-BFGS-B from W = I, and has the shape [C, C + 1]; b is the last column.
    """
    x = log_probabilities(logits)
    classes = x.shape[1]
    return _fitted(
        x,
        labels,
        start=np.eye(classes, classes + 1),
        mapped=lambda point: x @ point[:, :classes].T + point[:, classes],
        slopes=lambda residual: np.column_stack([residual.T @ x, residual.sum(axis=0)]),
        weights=_penalty_weights(classes, odir, l2),
    )


def penalised_loss(
    logits: NDArray[np.float32], labels: Labels, point: Floats, odir: float, l2: float
) -> float:
    """Return the objective of `dirichlet` at `point`: NLL + Σ weights · point²."""
    classes = logits.shape[1]
    nll = log_loss(log_probabilities(logits) @ point[:, :classes].T + point[:, classes], labels)
    return nll + float((_penalty_weights(classes, odir, l2) * point**2).sum())


def _penalty_weights(classes: int, odir: float, l2: float) -> Floats:
    """Return λ / (C (C - 1)) off the diagonal of W, 0 on it, μ / C for intercepts: [C, C + 1]."""
    weights = np.full((classes, classes + 1), odir / (classes * (classes - 1)))
    np.fill_diagonal(weights, 0.0)
    weights[:, classes] = l2 / classes
    return weights


def log_probabilities(logits: NDArray[Any]) -> Floats:
    """Return ln p = z - log Σ exp z, [n, C]."""
    return np.asarray(log_softmax(logits.astype(np.float64), axis=1))
