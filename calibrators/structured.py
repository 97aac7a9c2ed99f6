"""Structured matrix scaling (Berta, Holzmüller, Jordan and Bach 2026, arXiv 2511.03685).

Temperature scaling comes first. An affine map of its log-probabilities then corrects what a
temperature cannot, and penalties hold the map near the identity: the fewer points per parameter,
the nearer. With ten classes and some thousand points this is among the best maps known.
"""

from __future__ import annotations

import warnings

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor, nn

from calibrators.base import Calibrator
from calibrators.dirichlet.linear_map import LinearMapProblem, map_loss, products_type
from calibrators.inputs import Inputs
from calibrators.modules import constant
from calibrators.temperature import fit_temperature
from metrics.kernels.product import product
from metrics.kernels.softmax import softmax
from metrics.kernels.threads import row_blocks
from metrics.validation import InputError

TOLERANCE = 1e-9
"""On the Newton decrement, about twice the gap to the minimal objective, in nats."""
BLOCK = 1 << 24
"""Probabilities that are mapped at a time."""


class StructuredMatrixScaling(Calibrator):
    """softmax(W ln q + b), with q = (1 - ε) softmax(z / T) + ε / C and ε = 1 / (n + 1).

    T is temperature scaling's. W [C, C] and b [C] minimise the convex objective

        mean NLL + C/n · (Σ_j (W_jj - 1)² + Σ_j b_j²) + C (C - 1)/n · Σ_{j≠k} W_jk²,

    each of the three penalties times its strength. L-BFGS starts at W = I, b = 0, which is
    temperature scaling but for ε, and ends at the optimum. The share ε of the uniform forecast
    keeps ln q finite.

    A fit takes .1 s for 7,000 points of ten classes, a second for a hundred.

    Parameters
    ----------
    diagonal, off_diagonal, intercept : float > 0
        Strengths of the penalties; 1 is the paper's choice for each.
    max_iterations : int, of L-BFGS
    inputs : "logits" or "probabilities", what X is

    `InputError` (one line) where a strength is not positive.

    Attributes
    ----------
    inverse_temperature_, uniform_share_ : float, 1/T and ε
    matrix_, intercept_ : float64 [C, C] and [C], W and b
    nll_ : float, mean NLL of the calibration data in nats
    """

    inverse_temperature_: float
    uniform_share_: float
    matrix_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    nll_: float
    takes_weights = True

    def __init__(
        self,
        diagonal: float = 1.0,
        off_diagonal: float = 1.0,
        intercept: float = 1.0,
        max_iterations: int = 500,
        inputs: Inputs = "logits",
    ) -> None:
        self.diagonal = diagonal
        self.off_diagonal = off_diagonal
        self.intercept = intercept
        self.max_iterations = max_iterations
        self.inputs = inputs

    def _fit(self, logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> None:
        n, classes = logits.shape
        points = float(n if weights is None else weights.sum())
        temperature = fit_temperature(logits, labels, weights=weights)
        self.inverse_temperature_, self.uniform_share_ = temperature.beta, 1 / (points + 1)
        inputs = self._log_mixture(logits)
        centred = inputs - inputs.mean(dim=1, keepdim=True)
        problem = LinearMapProblem.build(
            inputs.to(products_type(n, classes)),
            labels,
            beta=1.0,
            spread=float(centred.square().mean().sqrt()),
            counts=weights,
        )
        best = problem.solve(
            self._penalty(classes, points).to(logits.device),
            tolerance=TOLERANCE,
            max_iterations=self.max_iterations,
        )
        if not best.converged:
            warnings.warn(
                f"StructuredMatrixScaling: stopped after {best.iterations} iterations, about "
                f"{best.decrement / 2:.1e} above the optimum; raise max_iterations",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.nll_ = map_loss(inputs, labels, best.point, counts=weights)
        self.matrix_ = best.point[:, :classes].cpu().numpy().copy()
        self.intercept_ = best.point[:, classes].cpu().numpy().copy()

    def _penalty(self, classes: int, points: float) -> Tensor:
        """Return the weight [C, C + 1] of each entry's squared distance from (I, 0)."""
        for name in ("diagonal", "off_diagonal", "intercept"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name}: {getattr(self, name)}; give a number > 0")
        off_diagonal = self.off_diagonal * classes * (classes - 1) / points
        weights = torch.full((classes, classes + 1), off_diagonal, dtype=torch.float64)
        weights[:, :classes].fill_diagonal_(self.diagonal * classes / points)
        weights[:, classes] = self.intercept * classes / points
        return weights

    def _log_mixture(self, logits: Tensor) -> Tensor:
        """Return ln q, float64 [n, C]."""
        q = softmax(logits, self.inverse_temperature_)
        return q.mul_(1 - self.uniform_share_).add_(self.uniform_share_ / q.shape[1]).log_()

    def _predict_proba(self, logits: Tensor) -> Tensor:
        matrix = torch.as_tensor(self.matrix_, device=logits.device)
        intercept = torch.as_tensor(self.intercept_, device=logits.device)
        out = torch.empty(logits.shape, dtype=torch.float64, device=logits.device)
        for start, stop in row_blocks(len(logits), logits.shape[1], BLOCK):
            mapped = product(self._log_mixture(logits[start:stop]), matrix.T)
            out[start:stop] = softmax(mapped.add_(intercept))
        return out

    def _to_module(self, dtype: torch.dtype) -> nn.Module:
        return _StructuredSoftmax(
            self.inverse_temperature_,
            self.uniform_share_,
            constant(self.matrix_, dtype),
            constant(self.intercept_, dtype),
        )


class _StructuredSoftmax(nn.Module):
    """What `StructuredMatrixScaling.predict_proba` computes, of fixed arrays."""

    matrix: Tensor
    intercept: Tensor

    def __init__(self, beta: float, share: float, matrix: Tensor, intercept: Tensor) -> None:
        super().__init__()
        self.beta, self.share = beta, share
        self.register_buffer("matrix", matrix)
        self.register_buffer("intercept", intercept)

    def forward(self, logits: Tensor) -> Tensor:
        """[n, C] -> [n, C]"""
        q = torch.softmax(logits.to(self.matrix.dtype) * self.beta, dim=1)
        q = q * (1 - self.share) + self.share / q.shape[1]
        return torch.softmax(q.log() @ self.matrix.T + self.intercept, dim=1)
