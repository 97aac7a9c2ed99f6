"""The losses that a softmax calibrator can minimise: negative log-likelihood and Brier score.

Where a family of maps is wrong, confident errors weigh more in the NLL. The Brier score is not
convex in the parameters.
"""

import math
from typing import Any, Literal

import numpy as np

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.kernels.compiled import compiled
from utility_calibration.metrics.kernels.softmax import exponential, sum_in_lanes
from utility_calibration.metrics.kernels.threads import over_blocks, row_blocks

Loss = Literal["nll", "brier"]  # the name of a loss, in every calibrator and in the configuration


@compiled
def overwrite(logits: Any, labels: Any, weights: Any, is_brier: bool) -> float:
    """Overwrite logits with the gradient of their summed loss, and return that loss.

    With p the softmax and y one-hot, the NLL has the gradient p - y. The Brier score Σ (p - y)² has
    2 p_j (p_j - y_j - Σ_k p_k (p_k - y_k)). Row i counts weights[i] times. The arithmetic is
    float64 also where the array is float32.
    """
    classes = logits.shape[1]
    values = np.empty(classes)
    squared = np.empty(classes)
    loss = 0.0
    for i in range(logits.shape[0]):
        row, label = logits[i], labels[i]
        largest = row[0]
        for j in range(classes):
            largest = max(largest, row[j])
        below = np.float64(row[label]) - np.float64(largest)
        for j in range(classes):
            values[j] = exponential(np.float64(row[j]) - np.float64(largest))
        total = sum_in_lanes(values)
        factor = 1.0 / total
        share = weights[i]
        if not is_brier:
            for j in range(classes):
                row[j] = share * (values[j] * factor)
            row[label] -= share
            loss += share * (math.log(total) - below)
            continue
        for j in range(classes):
            values[j] *= factor
        of_label = values[label]
        values[label] = 0.0
        rest = sum_in_lanes(values)
        values[label] = of_label
        for j in range(classes):
            squared[j] = values[j] * values[j]
        squares = sum_in_lanes(squared)
        pull = squares - of_label
        for j in range(classes):
            row[j] = share * (2.0 * values[j] * (values[j] - pull))
        row[label] = share * (2.0 * of_label * (-rest - pull))
        # Σ (p - y)² with 1 - p at the label added up from the others: exact also where p is 1.
        loss += share * (squares - of_label * of_label + rest * rest)
    return loss


def row_weights(weights: Array | None, logits: Array) -> Array:
    """Return `weights` as float64 [n] beside `logits` [n, C]; ones if there are none."""
    if weights is None:
        return np.ones(len(logits))
    return weights.astype(np.float64, copy=False)


def residuals(
    logits: Array, labels: Array, weights: Array | None = None, loss: Loss = "nll"
) -> float:
    """Overwrite `logits` [n, C] with the gradient of the summed loss, and return that sum.

    Row i of both counts weights[i] times, `weights` [n].
    """
    shares = row_weights(weights, logits)

    def of_rows(start: int, stop: int) -> float:
        rows = slice(start, stop)
        return block_residuals(logits[rows], labels[rows], shares[rows], loss)

    return math.fsum(over_blocks(of_rows, row_blocks(*logits.shape)))


def block_residuals(logits: Array, labels: Array, shares: Array, loss: Loss = "nll") -> float:
    """Do as `residuals`, but on the thread that calls, for a block of rows with weights [n]."""
    return float(overwrite(logits, labels, shares, loss == "brier"))


def logit_curvature(probabilities: Array, loss: Loss) -> Array:
    """Return the diagonal of each row's Hessian by the logits at `probabilities` [n, C]: [n, C].

    For the NLL it is p (1 - p). For the Brier score it is the Gauss-Newton part, which is
    never negative: the diagonal 2 p_j² ((1 - p_j)² + Σ_{k≠j} p_k²) of 2 JᵀJ, J = diag(p) - p pᵀ.
    """
    p = probabilities
    if loss == "nll":
        return p * (1 - p)
    squares = p * p
    return 2 * squares * ((1 - p) ** 2 + squares.sum(axis=1, keepdims=True) - squares)


def logit_hessian(probabilities: Array, loss: Loss) -> tuple[Array, Array]:
    """Return d and r [n, C]: a row's Hessian, as in `logit_curvature`, is diag(d) - r pᵀ - p rᵀ."""
    p = probabilities
    if loss == "nll":
        return p, p / 2
    squares = p * p
    return 2 * squares, 2 * squares - squares.sum(axis=1, keepdims=True) * p


def mean_logit(logits: Array, weights: Array | None) -> float:
    """Return the mean of all logits [n, C], their rows weighted by `weights` [n] if given.

    A fit subtracts it first, because it would make slopes and intercepts nearly collinear.
    """
    shares = row_weights(weights, logits)
    total = (logits.mean(axis=1, dtype=shares.dtype) * shares).sum()
    return float(total) / float(shares.sum())
