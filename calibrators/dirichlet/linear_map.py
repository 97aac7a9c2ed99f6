"""The penalised loss, likelihood or Brier score, of softmax(W x + b) and its minimiser.

Parameters are one float64 tensor [C, C + 1], W with b as its last column. Matrix products run in
float64 up to `DOUBLE_WORK` multiplications a pass and in float32 above; loss, softmax and the sums
over blocks of rows are float64 always.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from calibrators.dirichlet.curvature import ClassCurvature
from calibrators.losses import SUMMED, Loss
from calibrators.solvers.lbfgs import Minimum, dot, minimize
from metrics.kernels.product import product
from metrics.kernels.softmax import row_weights
from metrics.kernels.threads import row_blocks

DOUBLE_WORK = 2_000_000_000
"""n C² up to which the products run in float64. Larger ones would dominate the time of a fit."""
BLOCK = 1 << 23
"""Elements of a block. In products of fewer rows, threads would wait for each other."""
RIDGE = 1e-8
"""Weight of the pull towards the start that makes the optimum unique."""
FLOAT32_NOISE = 1e-7
"""Relative error of a mean NLL whose logits are float32 products; smaller changes are noise."""


def products_type(rows: int, classes: int) -> torch.dtype:
    """Return the number type of the matrix products for `rows` x `classes` inputs."""
    return torch.float64 if rows * classes * classes <= DOUBLE_WORK else torch.float32


def penalty_weights(classes: int, odir: float, l2: float, device: torch.device) -> Tensor:
    """Return R [C, C + 1] with Σ R_jk V_jk² = ODIR (Kull et al. 2019): off-diagonals, intercepts.

    Each of the C (C - 1) off-diagonal entries of W weighs odir / (C (C - 1)), each of the C
    intercepts l2 / C, the diagonal nothing.
    """
    weights = torch.full(
        (classes, classes + 1),
        odir / (classes * (classes - 1)),
        dtype=torch.float64,
        device=device,
    )
    weights[:, :classes].fill_diagonal_(0.0)
    weights[:, classes] = l2 / classes
    return weights


@dataclass(frozen=True)
class LinearMapProblem:
    """Data and starting point of a fit; the penalties come with each call of `solve`.

    `inputs` [n, C] float32 or float64, `labels` int64 [n], `start` [C, C + 1] float64 (β I, 0),
    `spread` the root mean square of the row-centred logits, `curvature` the Hessian at the start,
    `loss` what is minimised, `counts` float64 [n] the weights of the rows, None: all 1.
    """

    inputs: Tensor
    labels: Tensor
    start: Tensor
    spread: float
    curvature: ClassCurvature
    loss: Loss = "likelihood"
    counts: Tensor | None = None

    @classmethod
    def build(
        cls,
        inputs: Tensor,
        labels: Tensor,
        beta: float,
        spread: float,
        loss: Loss = "likelihood",
        counts: Tensor | None = None,
    ) -> LinearMapProblem:
        """Set up the fit that starts at the temperature-scaled solution W = β I, b = 0."""
        classes = inputs.shape[1]
        start = torch.zeros(classes, classes + 1, dtype=torch.float64, device=inputs.device)
        start[:, :classes].fill_diagonal_(beta)
        curvature = ClassCurvature.at(inputs, beta, loss, counts)
        return cls(inputs, labels, start, spread if spread > 0 else 1.0, curvature, loss, counts)

    def solve(
        self,
        weights: Tensor,
        begin: Tensor | None = None,
        *,
        tolerance: float,
        max_iterations: int,
        give_up: Callable[[int, Tensor], bool] | None = None,
    ) -> Minimum:
        """Minimise the mean loss + Σ weights (V - start)² + ridge, from `begin` or the start.

        The start is (β I, 0): off the diagonal the penalties are those of V itself.
        """

        def objective(point: Tensor) -> tuple[float, Tensor]:
            gradient = torch.empty_like(point)
            data = self.inputs, self.labels, point, gradient
            loss = map_loss(*data, loss=self.loss, counts=self.counts)
            penalty, slope = self._penalties(weights, point)
            return loss + penalty, slope.add_(gradient)

        exact = self.inputs.dtype == torch.float64
        return minimize(
            objective,
            self.start if begin is None else begin,
            self.curvature.preconditioner(2 * weights + self._ridge),
            tolerance=tolerance,
            max_iterations=max_iterations,
            rounding=1e-15 if exact else FLOAT32_NOISE,
            give_up=give_up,
        )

    def _penalties(self, weights: Tensor, point: Tensor) -> tuple[float, Tensor]:
        """Return Σ weights (V - start)² + ridge and its gradient."""
        away = point - self.start
        pull, ridge = weights * away, self._ridge * away
        return dot(pull, away) + 0.5 * dot(ridge, away), ridge.add_(pull, alpha=2.0)

    @cached_property
    def _ridge(self) -> Tensor:
        """Return the weights [C, C + 1] of the ridge."""
        ridge = torch.full_like(self.start, RIDGE * self.spread**2)
        ridge[:, -1] = RIDGE
        return ridge


def map_loss(
    inputs: Tensor,
    labels: Tensor,
    point: Tensor,
    gradient: Tensor | None = None,
    *,
    loss: Loss = "likelihood",
    counts: Tensor | None = None,
) -> float:
    """Return the mean loss of softmax(W x + b); write its gradient to `gradient` if given.

    `inputs` [n, C], whose number type the products take, `labels` [n], `point` and `gradient`
    float64 [C, C + 1], `counts` float64 [n]: the weights of the mean.
    """
    n, classes = inputs.shape
    shares = row_weights(counts, inputs)
    size = float(shares.sum())
    working = point.to(inputs.dtype)
    matrix, shift = working[:, :classes], working[:, classes]
    if gradient is not None:
        gradient.zero_()
    total = 0.0
    for first, last in row_blocks(n, classes, BLOCK):
        block = inputs[first:last]
        mapped = product(block, matrix.T).add_(shift)
        total += SUMMED[loss](mapped, labels[first:last], shares[first:last])
        if gradient is not None:  # `mapped` now holds the gradient by the logits
            gradient[:, :classes] += product(mapped.T, block)
            gradient[:, classes] += mapped.sum(dim=0)
    if gradient is not None:
        gradient /= size
    return total / size
