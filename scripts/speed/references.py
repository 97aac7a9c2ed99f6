"""The plain side of the calibrators' cases: NumPy, SciPy's optimizers, no trick."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax

from metrics.reference import Floats, Labels, utility_calibration


def full_audit(
    p: Floats, top_sums: Floats, labels: Labels, ranks: Labels, linear: Floats, rank: Floats
) -> float:
    """The largest UC over all classes, all K and the sampled utilities, each one sorted.

    Takes what a step keeps anyway: the ranking, as sums of the K largest [n, C] and ranks [n]. The
    sampled utilities' predictions are one matrix product per family.
    """
    classes = range(p.shape[1])
    drops = rank - np.pad(rank[:, 1:], ((0, 0), (0, 1)))  # sum_k θ_k p_(k), summed by parts
    errors = [utility_calibration(p[:, c], 1.0 * (labels == c)) for c in classes]
    errors += [utility_calibration(top_sums[:, k], 1.0 * (ranks <= k)) for k in classes]
    for predicted, payoffs, codes in (
        (linear @ p.T, linear, labels),
        (drops @ top_sums.T, rank, ranks),
    ):
        errors += [utility_calibration(v, a[codes]) for v, a in zip(predicted, payoffs)]
    return max(errors)


def log_loss(logits: NDArray[Any], labels: Labels) -> float:
    """Mean of -log softmax(z)_y in float64, nats."""
    total = 0.0
    for start in range(0, len(labels), 4096):
        part = slice(start, start + 4096)
        log_p = log_softmax(logits[part].astype(np.float64), axis=1)
        total -= log_p[np.arange(len(log_p)), labels[part]].sum()
    return total / len(labels)


def temperature(logits: NDArray[np.float32], labels: Labels) -> float:
    """The inverse temperature that minimises the NLL, by Brent's method on its logarithm."""
    z = logits.astype(np.float64)
    found = minimize_scalar(
        lambda t: log_loss(np.exp(t) * z, labels), bounds=(-5, 5), options={"xatol": 1e-8}
    )
    return float(np.exp(found.x))


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
    found = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x).reshape(start.shape)


def vector_scaling(logits: NDArray[np.float32], labels: Labels) -> Floats:
    """w and b of softmax(w z + b) by L-BFGS-B from w = 1, b = 0: [2, C]."""
    z = logits.astype(np.float64)
    return _fitted(
        z,
        labels,
        start=np.stack([np.ones(z.shape[1]), np.zeros(z.shape[1])]),
        mapped=lambda point: z * point[0] + point[1],
        slopes=lambda residual: np.stack([(residual * z).sum(axis=0), residual.sum(axis=0)]),
    )


def dirichlet(logits: NDArray[np.float32], labels: Labels, odir: float, l2: float) -> Floats:
    """W and b of softmax(W x + b), x the centred log-probabilities, with the ODIR penalty.

    L-BFGS-B from W = I: [C, C + 1], b last.
    """
    x = logits.astype(np.float64)
    x -= x.mean(axis=1, keepdims=True)
    classes = x.shape[1]
    weights = np.full((classes, classes + 1), odir / (classes * (classes - 1)))
    np.fill_diagonal(weights, 0.0)
    weights[:, classes] = l2 / classes
    return _fitted(
        x,
        labels,
        start=np.eye(classes, classes + 1),
        mapped=lambda point: x @ point[:, :classes].T + point[:, classes],
        slopes=lambda residual: np.column_stack([residual.T @ x, residual.sum(axis=0)]),
        weights=weights,
    )
