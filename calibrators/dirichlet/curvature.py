"""An approximate inverse Hessian for the loss of softmax(W x + b), class by class.

The Hessian's block of class j is Σ_i v_ij x_i x_iᵀ / n, rows x extended by a 1, v = p (1 - p) for
the likelihood (and Gauss-Newton's diagonal for the Brier score, `losses.logit_curvature`). Weighted
rows multiply v by their weight, and n is then the sum of the weights.

Nearly all of the block's weight comes from the few rows that are undecided about class j. These
`TOP_ROWS` rows are kept exactly, and the other rows are approximated. Write x = c + m 1 with the
row mean m. Log-probabilities have a large mean that all classes share, which a diagonal alone would
miss. So we keep of the other rows their weighted mean x̄ and the spread of m exactly, and of the
rest the diagonal Σ v (c - c̄)². This matrix has an inverse in closed form, and Woodbury's identity
adds the top rows. L-BFGS then needs 20 iterations for the 7,000 x 100 points of a CIFAR-100 fit,
where a diagonal needs 60. The cost per class is linear in C² instead of cubic in C.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from calibrators.losses import Loss, logit_curvature
from metrics.kernels.softmax import row_weights, softmax
from metrics.kernels.threads import row_blocks

TOP_ROWS = 64
FLOOR = 1e-6
"""Smallest diagonal entry, relative to the largest."""
TINY = 1e-300
"""Keeps quotients finite where no row is undecided about any class."""
BLOCK = 1 << 20
"""Elements of a block: 4 MiB of float32 stay in the cache until they are read."""


@dataclass(frozen=True)
class OtherRows:
    """The Hessian blocks of all rows except the top rows, plus a penalty, and their inverse.

    Attributes:
        diagonal: float64 [C, C], Σ v (c - c̄)² plus the penalty of W's entries.
        intercept: float64 [C], the penalty of the intercepts.
        mean: float64 [C, C], the mean x̄ of the rows by the weights v of each class.
        total, spread: float64 [C], Σ v and Σ v (m - m̄)².
    """

    diagonal: Tensor
    intercept: Tensor
    mean: Tensor
    total: Tensor
    spread: Tensor

    def of(self, classes: slice) -> OtherRows:
        """Return the blocks of a slice of the classes."""
        return OtherRows(*(part[classes] for part in vars(self).values()))

    def solve(self, gradients: Tensor) -> Tensor:
        """Return the inverse times `gradients` float64 [k, C, C + 1].

        A class's row w of W and its intercept b solve, with s = Σ_k w_k and t = x̄ · w + b,

            diagonal · w + total t x̄ + spread s 1 = g,    total t + intercept b = g_b.

        The first equation gives w for any s and t; the definition of s and the second equation are
        then two linear equations for s and t.
        """
        inverse = 1 / self.diagonal
        plain, of_intercept = gradients[..., :-1] * inverse, gradients[..., -1]
        ones, mixed = inverse.sum(dim=-1), (inverse * self.mean).sum(dim=-1)
        squares = (inverse * self.mean**2).sum(dim=-1)
        total, spread, penalty = self.total, self.spread, self.intercept
        a, b = 1 + spread * ones, total * mixed
        c, d = penalty * spread * mixed, total + penalty * (1 + total * squares)
        first = plain.sum(dim=-1)
        second = of_intercept + penalty * (plain * self.mean).sum(dim=-1)
        determinant = a * d - b * c
        s = (first * d - b * second) / determinant
        t = (a * second - c * first) / determinant
        pull = (total * t)[..., None] * self.mean + (spread * s)[..., None]
        entries = plain - pull * inverse
        shift = t - (entries * self.mean).sum(dim=-1)
        return torch.cat([entries, shift[..., None]], dim=-1)


@dataclass(frozen=True)
class ClassCurvature:
    """The parts of the Hessian that do not depend on the penalties, as means over all rows.

    Attributes:
        rows: [C, m, C + 1], √v (x, 1) of each class's m top rows.
        largest: float, the largest Σ v c² of all rows.
        rest: of the other rows, with no penalty.
    """

    rows: Tensor
    largest: float
    rest: OtherRows

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
        shares = shares / shares.sum()
        weights = torch.empty_like(inputs)
        first_moments = torch.zeros(classes, classes, dtype=torch.float64, device=inputs.device)
        second_moments = torch.zeros_like(first_moments)
        means = inputs.double().mean(dim=1)
        powers = torch.stack([torch.ones_like(means), means, means**2])
        sums = torch.zeros(3, classes, dtype=torch.float64, device=inputs.device)
        for first, last in row_blocks(n, classes, BLOCK):
            variance = logit_curvature(softmax(inputs[first:last], beta), loss)
            variance *= shares[first:last, None]
            sums += powers[:, first:last] @ variance
            weights[first:last] = variance
            centred = inputs[first:last] - means[first:last, None].to(inputs.dtype)
            first_moments += weights[first:last].T @ centred
            second_moments += weights[first:last].T @ centred**2
        largest, most = float(second_moments.max()), float(sums[0].max())
        top, index = weights.topk(min(n, TOP_ROWS), dim=0)
        rows = torch.empty(classes, len(top), classes + 1, dtype=inputs.dtype, device=inputs.device)
        rows[:, :, classes] = top.T.sqrt()
        for first, last in row_blocks(classes, classes * len(top), BLOCK):
            chosen, v = inputs[index.T[first:last]], top.T[first:last, :, None]
            rows[first:last, :, :classes] = chosen * v.sqrt()
            centred = (chosen - chosen.mean(dim=2, keepdim=True)).double()
            first_moments[first:last] -= (v * centred).sum(dim=1)
            second_moments[first:last] -= (v * centred**2).sum(dim=1)
        sums -= torch.stack([(power[index] * top).sum(dim=0) for power in powers])
        # If there are hardly more rows than top rows, only rounding is left here.
        total = sums[0].clamp(min=max(FLOOR * most, TINY))
        mean = first_moments / total[:, None]
        spread = (sums[2] - sums[1] ** 2 / total).clamp(min=0)
        diagonal = (second_moments - total[:, None] * mean**2).clamp(min=0)
        mean += (sums[1] / total)[:, None]
        return cls(rows, largest, OtherRows(diagonal, torch.zeros_like(total), mean, total, spread))

    def preconditioner(self, penalty: Tensor) -> Callable[[Tensor], Tensor]:
        """Return the approximate inverse of the Hessian plus the diagonal `penalty` [C, C + 1].

        It takes a stack of gradients [k, C, C + 1].
        """
        floor = FLOOR * (self.largest + float(penalty[:, :-1].max()))
        diagonal = (self.rest.diagonal + penalty[:, :-1]).clamp(min=floor)
        others = replace(self.rest, diagonal=diagonal, intercept=penalty[:, -1])
        classes, count, width = self.rows.shape
        small = torch.empty(classes, count, count, dtype=torch.float64, device=self.rows.device)
        for first, last in row_blocks(classes, count * width, BLOCK):
            rows = self.rows[first:last]
            solved = others.of(slice(first, last)).solve(rows.transpose(0, 1).double())
            small[first:last] = solved.to(rows.dtype).transpose(0, 1) @ rows.mT
        small.diagonal(dim1=1, dim2=2).add_(1.0)
        # Inverses by triangular solves: `cholesky_inverse` takes one matrix at a time on a GPU.
        identity = torch.eye(count, dtype=torch.float64, device=small.device).expand_as(small)
        root = torch.linalg.solve_triangular(torch.linalg.cholesky(small), identity, upper=False)
        kernel = (root.mT @ root).to(self.rows.dtype)

        def solve(gradients: Tensor) -> Tensor:
            # All gradients at once, because reading the rows takes most of the time.
            first = others.solve(gradients)
            pushed = torch.bmm(first.transpose(0, 1).to(self.rows.dtype), self.rows.mT)
            correction = torch.bmm(torch.bmm(pushed, kernel), self.rows).transpose(0, 1)
            return first - others.solve(correction.to(first.dtype))

        return solve
