"""The losses that a softmax calibrator can minimise: negative log-likelihood and Brier score.

Both are proper scores, so with enough data and the right family they agree. Where the family is
wrong, confident errors weigh more in the NLL. The Brier score is not convex in the
parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from metrics.kernels.compiled import compiled_sums
from metrics.kernels.softmax import exponential, has_kernels
from metrics.kernels.threads import over_blocks, row_blocks

Loss = Literal["nll", "brier"]
"""The name of a loss, in every calibrator and in the configuration."""


@compiled_sums
def residual_rows(logits: Any, labels: Any, weights: Any) -> float:
    """Overwrite `logits` with softmax - one-hot; return the sum of -log softmax at the labels.

    That is the gradient of the summed cross-entropy by the logits; row i of both counts weights[i]
    times. The arithmetic is float64 also where the array is float32.
    """
    classes = logits.shape[1]
    values = np.empty(classes)
    loss = 0.0
    for i in range(logits.shape[0]):
        row = logits[i]
        largest = row[0]
        for j in range(classes):
            largest = max(largest, row[j])
        total = 0.0
        of_label = np.float64(row[labels[i]]) - np.float64(largest)
        for j in range(classes):
            value = exponential(np.float64(row[j]) - np.float64(largest))
            values[j] = value
            total += value
        factor = 1.0 / total
        share = weights[i]
        for j in range(classes):
            row[j] = share * (values[j] * factor)
        row[labels[i]] -= share
        loss += share * (math.log(total) - of_label)
    return loss


@compiled_sums
def squared_error_rows(logits: Any, labels: Any, weights: Any) -> float:
    """Overwrite `logits` with the gradient of the summed Brier score; return that sum.

    With p the softmax and y one-hot, the score is Σ (p - y)² and its gradient by logit j is
    2 p_j (p_j - y_j - Σ_k p_k (p_k - y_k)); row i of both counts weights[i] times. The arithmetic
    is float64 also where the array is not.
    """
    classes = logits.shape[1]
    values = np.empty(classes)
    score = 0.0
    for i in range(logits.shape[0]):
        row = logits[i]
        label = labels[i]
        largest = row[0]
        for j in range(classes):
            largest = max(largest, row[j])
        total = 0.0
        for j in range(classes):
            value = exponential(np.float64(row[j]) - np.float64(largest))
            values[j] = value
            total += value
        factor = 1.0 / total
        squares = rest = 0.0
        for j in range(classes):
            p = values[j] * factor
            values[j] = p
            squares += p * p
            rest += p if j != label else 0.0
        of_label = values[label]
        pull = squares - of_label
        share = weights[i]
        for j in range(classes):
            row[j] = share * (2.0 * values[j] * (values[j] - pull))
        row[label] = share * (2.0 * of_label * (-rest - pull))
        # Σ (p - y)² with 1 - p at the label added up from the others: exact also where p is 1.
        score += share * (squares - of_label * of_label + rest * rest)
    return score


def row_weights(weights: Tensor | None, logits: Tensor) -> Tensor:
    """`weights` as float64 [n] beside `logits` [n, C]; ones without."""
    if weights is None:
        return torch.ones(len(logits), dtype=torch.float64, device=logits.device)
    return weights.to(logits.device, torch.float64)


def residuals(logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> float:
    """Overwrite `logits` [n, C] with softmax - one-hot; return the summed cross-entropy.

    Row i of both counts weights[i] times, `weights` [n].
    """

    def plain(z: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
        log_p = torch.log_softmax(z, dim=1)
        loss = -log_p.gather(1, at)[:, 0]
        return loss, log_p.exp_().sub_(torch.zeros_like(z).scatter_(1, at, 1.0))

    return _overwritten(residual_rows, plain, logits, labels, weights)


def squared_errors(logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> float:
    """Overwrite `logits` [n, C] with the summed Brier score's gradient; return that score.

    Row i of both counts weights[i] times, `weights` [n].
    """

    def plain(z: Tensor, at: Tensor) -> tuple[Tensor, Tensor]:
        p = torch.softmax(z, dim=1)
        away = p - torch.zeros_like(z).scatter_(1, at, 1.0)
        slope = 2 * p * (away - (p * away).sum(dim=1, keepdim=True))
        return away.square().sum(dim=1), slope

    return _overwritten(squared_error_rows, plain, logits, labels, weights)


def _overwritten(
    kernel: Callable[..., float],
    plain: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]],
    logits: Tensor,
    labels: Tensor,
    weights: Tensor | None,
) -> float:
    """Overwrite `logits` by `kernel`, or where it cannot run by `plain`; return the summed loss.

    `plain` returns each row's loss and gradient.
    """
    n, classes = logits.shape
    shares = row_weights(weights, logits)
    if has_kernels(logits) and logits.is_contiguous():
        arrays = logits.numpy(), labels.numpy(), shares.numpy()
        blocks = row_blocks(n, classes)
        return math.fsum(over_blocks(lambda i, k: kernel(*(a[i:k] for a in arrays)), blocks))
    loss = torch.zeros((), dtype=torch.float64, device=logits.device)
    for start, stop in row_blocks(n, classes, 1 << 24):
        rows, share = slice(start, stop), shares[start:stop]
        losses, slopes = plain(logits[rows].double(), labels[rows, None])
        loss += losses @ share
        logits[rows] = slopes * share[:, None]
    return float(loss)


SUMMED: dict[Loss, Callable[[Tensor, Tensor, Tensor | None], float]] = {
    "nll": residuals,
    "brier": squared_errors,
}
"""Functions of logits [n, C], labels [n] and weights [n] or None. They return the loss summed over
the rows and overwrite the logits with its gradient."""


def logit_curvature(probabilities: Tensor, loss: Loss) -> Tensor:
    """Return the diagonal of each row's Hessian by the logits at `probabilities` [n, C]: [n, C].

    For the NLL it is p (1 - p). For the Brier score it is the Gauss-Newton part, which is
    never negative: the diagonal 2 p_j² ((1 - p_j)² + Σ_{k≠j} p_k²) of 2 JᵀJ, J = diag(p) - p pᵀ.
    """
    p = probabilities
    if loss == "nll":
        return p * (1 - p)
    squares = p * p
    return 2 * squares * ((1 - p) ** 2 + squares.sum(dim=1, keepdim=True) - squares)


def logit_hessian(probabilities: Tensor, loss: Loss) -> tuple[Tensor, Tensor]:
    """Return d and r [n, C]: a row's Hessian by the logits is diag(d) - r pᵀ - p rᵀ.

    For the NLL it is diag(p) - p pᵀ, for the Brier score the Gauss-Newton part
    (`logit_curvature` has its diagonal).
    """
    p = probabilities
    if loss == "nll":
        return p, p / 2
    squares = p * p
    return 2 * squares, 2 * squares - squares.sum(dim=1, keepdim=True) * p


def mean_logit(logits: Tensor, weights: Tensor | None) -> float:
    """Return the mean of all logits [n, C], their rows weighted by `weights` [n] if given.

    A fit whose parameters act on the logits themselves subtracts it first. A number that all logits
    share would otherwise make slopes and intercepts nearly collinear.
    """
    shares = row_weights(weights, logits)
    # NumPy's sum, because the last bit of torch's depends on the number of threads.
    total = (logits.mean(dim=1, dtype=shares.dtype) * shares).cpu().numpy().sum()
    return float(total) / float(shares.sum())
