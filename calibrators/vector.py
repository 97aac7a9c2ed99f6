"""Vector scaling, solved exactly (Guo et al. 2017): softmax(w ⊙ z + b).

The NLL is convex in the 2C parameters. L-BFGS starts at the temperature-scaled solution, with the
inverse of the Hessian there as its first inverse Hessian. The Brier score is not convex: it ends in
a minimum that is no higher than that start.
"""

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from utility_calibration.metrics.kernels.softmax import softmax
from utility_calibration.metrics.kernels.threads import row_blocks
from utility_calibration.metrics.option_checks import check_whole
from utility_calibration.metrics.validation import InputError

from .base import Calibrator
from .losses import Loss, logit_hessian, mean_logit, residuals, row_weights
from .modules import AffineSoftmax
from .solvers.lbfgs import Minimum, minimize, warn_unless_converged
from .solvers.temperature import fit_temperature
from .stored import Learned, Stored

BLOCK = 1 << 18  # logits per block, few enough that their copies in float64 fit into the cache
HESSIAN_BLOCK = 1 << 22  # logits; in products of fewer rows, threads would wait for each other
FLOOR = 1e-12  # of the Hessian's largest diagonal entry, added so that it can be inverted


@dataclass(frozen=True)
class VectorMapProblem:
    """Inputs x [n, C], labels [n] and weights [n], and the mean loss of softmax(w ⊙ x + b) on them.

    The parameters (w, b) are float64 [2, C].
    """

    inputs: Tensor
    labels: Tensor
    weights: Tensor | None = None
    loss: Loss = "nll"

    def loss_and_gradient(self, point: Tensor, loss: Loss | None = None) -> tuple[float, Tensor]:
        """Return the mean loss and its gradient [2, C] at `point`."""
        x, shares = self.inputs, row_weights(self.weights, self.inputs)
        total, gradient = 0.0, torch.zeros_like(point)
        for start, stop in row_blocks(len(x), x.shape[1], BLOCK):
            block = x[start:stop].double()
            mapped = (block * point[0]).add_(point[1])
            rows = self.labels[start:stop], shares[start:stop]
            total += residuals(mapped, *rows, loss or self.loss)
            gradient[1] += mapped.sum(dim=0)  # `mapped` now holds the gradient by the logits
            gradient[0] += mapped.mul_(block).sum(dim=0)
        size = float(shares.sum())
        return total / size, gradient / size

    def hessian(self, beta: float) -> Tensor:
        """Return the Hessian of the mean loss at w = β, b = 0: float64 [2C, 2C]."""
        x, shares = self.inputs, row_weights(self.weights, self.inputs)
        classes = x.shape[1]
        hessian = shares.new_zeros(2 * classes, 2 * classes)
        diagonals = hessian.view(2, classes, 2, classes).diagonal(dim1=1, dim2=3)  # [2, 2, C]
        for start, stop in row_blocks(len(x), classes, HESSIAN_BLOCK):
            z, share = x[start:stop].double(), shares[start:stop, None]
            p = softmax(z, beta)
            d, r = (part * share for part in logit_hessian(p, self.loss))
            ww, wb, bb = (d * z * z).sum(dim=0), (d * z).sum(dim=0), d.sum(dim=0)
            diagonals += torch.stack([ww, wb, wb, bb]).view_as(diagonals) / 2
            hessian.addmm_(torch.cat([r * z, r], dim=1).T, torch.cat([p * z, p], dim=1), alpha=-1)
        return (hessian + hessian.T) / shares.sum()

    def solve(self, beta: float, ridges: tuple[float, float], max_iterations: int) -> Minimum:
        """Minimise the mean loss + ½ Σ ridge · distance² from (β, 0); a ridge each for w and b."""
        start = torch.zeros(2, self.inputs.shape[1], dtype=torch.float64, device=self.inputs.device)
        start[0] = beta
        ridge = start.new_tensor(ridges)[:, None]

        def objective(point: Tensor) -> tuple[float, Tensor]:
            value, gradient = self.loss_and_gradient(point)
            pull = ridge * (point - start)
            return value + 0.5 * float(((point - start) * pull).sum()), gradient + pull

        hessian = self.hessian(beta)
        diagonal = hessian.diagonal()
        # Intercepts that grow by the same number change nothing, so the Hessian is singular.
        diagonal += ridge.expand_as(start).flatten() + FLOOR * diagonal.max()
        root = torch.linalg.cholesky(hessian)

        def newton_step(gradients: Tensor) -> Tensor:  # of a stack of gradients [k, 2, C]
            return torch.cholesky_solve(gradients.flatten(1).T, root).T.view_as(gradients)

        return minimize(objective, start, newton_step, max_iterations=max_iterations)


class VectorMapCalibrator(Calibrator):
    """A map softmax(w ⊙ x + b) for inputs x [n, C], by default the logits."""

    learned: ClassVar[Learned] = {"scale_": Stored(("P",)), "shift_": Stored(("P",))}

    takes_weights = True
    scale_: NDArray[np.float64]
    shift_: NDArray[np.float64]

    def _map_inputs(self, logits: Tensor) -> Tensor:
        return logits.double()

    def _predict_proba(self, logits: Tensor) -> Tensor:
        scale, shift = torch.as_tensor(np.stack([self.scale_, self.shift_]), device=logits.device)
        return softmax(self._map_inputs(logits) * scale + shift)

    def _to_module(self, dtype: torch.dtype) -> nn.Module:
        return AffineSoftmax(self.scale_, self.shift_, dtype)


@dataclass(eq=False, repr=False)
class VectorScaling(VectorMapCalibrator):
    """softmax(w ⊙ z + b) with the w, b [C] of least calibration loss (Guo et al. 2017).

    The loss alone does not fix b, because a common shift changes nothing. It fixes neither w nor b
    if the data are separable. Therefore a small ridge towards the temperature-scaled solution β is
    added to the mean loss,

        l2 / 2 · Σ_j [ s² (w_j - β)² + b_j² ],    s = root mean square of the row-centred logits.

    The fit first subtracts the mean of all logits, and `shift_` makes up for it. So a number added
    to all logits of all points does not change the predictions. A number that differs from row to
    row does, because w_j multiplies it; only temperature scaling does not depend on it.

    With the default l2 it changes the NLL at the optimum by less than 1e-9 on the paper's
    benchmarks. A `ConvergenceWarning` (one line) says if the optimum was not reached.

    Args:
        loss: the loss that w and b minimise.
        l2: the weight of that ridge, > 0.
        max_iterations: of L-BFGS.
        inputs: what X is.

    Attributes:
        scale_, shift_: float64 [C], w and b (the b_j sum to zero).
        loss_, nll_: mean loss and mean NLL (nats) of the calibration data.
        n_evaluations_: passes over the logits.
    """

    needs_little_memory = True
    l2: float = 1e-8
    max_iterations: int = 500
    loss: Loss = "nll"

    def _fit(self, logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> None:
        if not (isinstance(self.l2, Real) and self.l2 > 0):
            raise InputError(f"{self.l2}, expected a positive number", field="l2")
        check_whole(self.max_iterations, "max_iterations", 1)
        begin = fit_temperature(logits, labels, self.loss, weights)
        centre = mean_logit(logits, weights)
        problem = VectorMapProblem(logits.double() - centre, labels, weights, self.loss)
        ridges = self.l2 * (begin.spread or 1.0) ** 2, self.l2
        least = problem.solve(begin.beta, ridges, self.max_iterations)
        warn_unless_converged(least, "VectorScaling")
        self.nll_ = problem.loss_and_gradient(least.point, "nll")[0]
        self.loss_ = problem.loss_and_gradient(least.point)[0]
        scale, shift = least.point.cpu().numpy()
        shift -= scale * centre
        self.scale_, self.shift_ = scale, shift - shift.mean()  # a common shift changes nothing
        self.n_evaluations_ = least.evaluations + begin.evaluations
