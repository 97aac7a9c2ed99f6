"""The losses that a softmax calibrator can minimise: negative log-likelihood and Brier score.

Both are proper scores, so with enough data and the right family they agree. Where the family is
wrong, confident errors weigh more in the NLL. The Brier score is not convex in the
parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from torch import Tensor

from metrics.kernels.softmax import residuals, row_weights, squared_errors
from metrics.validation import InputError

Loss = Literal["nll", "brier"]
"""The name of a loss, in every calibrator and in the configuration."""

SUMMED: dict[Loss, Callable[[Tensor, Tensor, Tensor | None], float]] = {
    "nll": residuals,
    "brier": squared_errors,
}
"""Functions of logits [n, C], labels [n] and weights [n] or None. They return the loss summed over
the rows and overwrite the logits with its gradient."""


def check_loss(loss: str) -> None:
    """Raise `InputError` (one line) unless `loss` is a key of `SUMMED`."""
    if loss not in SUMMED:
        raise InputError(f"loss: {loss!r}; choose {' or '.join(SUMMED)}")


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
