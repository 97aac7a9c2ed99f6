"""An approximate inverse Hessian for the loss of softmax(W x + b), class by class.

The Hessian's block of class j is Σ_i v_ij x_i x_iᵀ / n, rows x extended by a 1, v = p (1 - p) for
the likelihood (and Gauss-Newton's diagonal for the Brier score, `losses.logit_curvature`); of
weighted rows v takes the weight, and n is their sum.
Nearly all of its weight sits on the few rows for which class j is in question. Those `TOP_ROWS`
rows are kept exactly, the others through their diagonal, and the sum of both is inverted by
Woodbury's identity: as good as the whole block (20 iterations of L-BFGS for 7,000 x 100 where a
diagonal needs 60), at a cost that is linear in C² instead of cubic in C per class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from calibrators.losses import Loss, logit_curvature
from metrics.kernels.softmax import row_weights, softmax
from metrics.kernels.threads import row_blocks

TOP_ROWS = 64
FLOOR = 1e-6
"""Smallest diagonal entry, relative to the largest."""
BLOCK = 1 << 20
"""Elements of a block, which is made and read once: 4 MiB of float32 stay in the cache."""


@dataclass(frozen=True)
class ClassCurvature:
    """`rows` [C, m, C + 1]: √(v/n) (x, 1) of each class's m top rows; `rest` and `total`
    [C, C + 1]: the diagonal of the other rows' part, and of the whole."""

    rows: Tensor
    rest: Tensor
    total: Tensor

    @classmethod
    def at(
        cls,
        inputs: Tensor,
        beta: float,
        loss: Loss = "likelihood",
        counts: Tensor | None = None,
    ) -> ClassCurvature:
        """Return the curvature of the data `inputs` [n, C], weighted by `counts` [n], at β I, 0."""
        n, classes = inputs.shape
        shares = row_weights(counts, inputs)
        size = float(shares.sum())
        weights = torch.empty_like(inputs)
        total = torch.zeros(classes, classes + 1, dtype=torch.float64, device=inputs.device)
        for first, last in row_blocks(n, classes, BLOCK):
            variance = logit_curvature(softmax(inputs[first:last], beta), loss)
            variance *= shares[first:last, None]
            total[:, classes] += variance.sum(dim=0)
            weights[first:last] = variance
            squares = inputs[first:last] ** 2
            total[:, :classes] += weights[first:last].T @ squares
        total /= size
        largest, index = weights.topk(min(n, TOP_ROWS), dim=0)
        root = (largest / size).sqrt().T
        rows = torch.empty(*root.shape, classes + 1, dtype=inputs.dtype, device=inputs.device)
        rows[:, :, classes] = root
        for first, last in row_blocks(classes, classes * root.shape[1], BLOCK):
            torch.mul(
                inputs[index.T[first:last]],
                root[first:last, :, None],
                out=rows[first:last, :, :classes],
            )
        rest = total - torch.linalg.vector_norm(rows, dim=1).double() ** 2
        return cls(rows, rest.clamp_(min=0), total)

    def preconditioner(self, penalty: Tensor) -> Callable[[Tensor], Tensor]:
        """Return the approximate inverse of the Hessian plus the diagonal `penalty` [C, C + 1].

        It takes a stack of gradients [k, C, C + 1].
        """
        classes, count, width = self.rows.shape
        diagonal = self.rest + penalty
        diagonal = diagonal.clamp(min=FLOOR * float((self.total + penalty).max()))
        inverse = (1 / diagonal).to(self.rows.dtype)
        small = torch.empty(classes, count, count, dtype=torch.float64, device=self.rows.device)
        for first, last in row_blocks(classes, count * width, BLOCK):
            rows = self.rows[first:last]
            small[first:last] = (rows * inverse[first:last, None]) @ rows.mT
        small.diagonal(dim1=1, dim2=2).add_(1.0)
        # Inverses by triangular solves: `cholesky_inverse` takes one matrix at a time on a GPU.
        identity = torch.eye(count, dtype=torch.float64, device=small.device).expand_as(small)
        root = torch.linalg.solve_triangular(torch.linalg.cholesky(small), identity, upper=False)
        kernel = (root.mT @ root).to(self.rows.dtype)

        def solve(gradients: Tensor) -> Tensor:
            # Several at once: reading the rows is what takes the time.
            scaled = gradients.to(self.rows.dtype) * inverse
            pushed = torch.bmm(torch.bmm(scaled.transpose(0, 1), self.rows.mT), kernel)
            correction = torch.bmm(pushed, self.rows).transpose(0, 1) * inverse
            return (scaled - correction).to(gradients.dtype)

        return solve
