"""Vector scaling, fitted exactly (Guo et al. 2017): softmax(w ⊙ z + b).

The negative log-likelihood is convex in the 2C parameters. L-BFGS starts at the temperature-scaled
solution and is preconditioned, class by class, with the 2 x 2 block of the Hessian there: about 25
passes over the logits reach the optimum, where plain L-BFGS needs 500. The Brier score in its place
is not convex: from the best temperature the same iteration ends in a minimum at or below it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from calibrators.base import Calibrator
from calibrators.inputs import Inputs
from calibrators.losses import Loss, check_loss, logit_curvature
from calibrators.modules import ScaledSoftmax, constant
from calibrators.solvers.lbfgs import Minimum, Objective, minimize
from calibrators.temperature import TemperatureFit, fit_temperature
from metrics.kernels.compiled import compiled_sums
from metrics.kernels.softmax import (
    exponential,
    has_kernels,
    row_weights,
    softmax,
    squared_errors,
)
from metrics.kernels.threads import over_blocks, row_blocks
from metrics.validation import InputError, is_whole

FAR_FROM_ZERO = 10
"""A mean of the logits larger than so many times their spread is taken off before the fit."""
TOLERANCE = 1e-10
"""On the Newton decrement, about twice the gap to the minimum; 60 more passes gain 2e-10 nats."""


@compiled_sums
def vector_sums(
    logits: Any,
    labels: Any,
    weights: Any,
    scale: Any,
    shift: Any,
    gradient: Any,
    curvature: Any,
) -> float:
    """Return the weighted NLL of softmax(scale * logits + shift), add up its derivatives.

    `gradient` [2, C] takes the derivatives by scale and shift. `curvature` [3, C] takes the sums of
    v z², v z and v with v = p (1 - p), the entries of the Hessian's class blocks; skipped where its
    first axis is empty.
    """
    classes = scale.size
    values = np.empty(classes)
    by_scale, by_shift = gradient[0], gradient[1]
    loss = 0.0
    for i in range(logits.shape[0]):
        row = logits[i]
        label, share = labels[i], weights[i]
        largest = -np.inf
        for j in range(classes):
            values[j] = scale[j] * row[j] + shift[j]
            largest = max(largest, values[j])
        of_label = values[label] - largest
        total = 0.0
        for j in range(classes):
            value = exponential(values[j] - largest)
            values[j] = value
            total += value
        factor = 1.0 / total
        for j in range(classes):
            p = values[j] * factor
            values[j] = p
            p *= share
            by_shift[j] += p
            by_scale[j] += p * row[j]
        by_shift[label] -= share
        by_scale[label] -= share * row[label]
        loss += share * (math.log(total) - of_label)
        if curvature.shape[0] == 3:
            for j in range(classes):
                v = share * values[j] * (1.0 - values[j])
                z = np.float64(row[j])
                curvature[0, j] += v * z * z
                curvature[1, j] += v * z
                curvature[2, j] += v
    return loss


def nll_and_derivatives(
    logits: Tensor,
    labels: Tensor,
    parameters: Tensor,
    with_curvature: bool,
    weights: Tensor | None = None,
) -> tuple[float, Tensor, Tensor]:
    """Return mean NLL, gradient [2, C] and class curvatures [3, C] (empty without) at (w, b)."""
    n, classes = logits.shape
    shares = row_weights(weights, logits)
    size = float(shares.sum())
    rows = 3 if with_curvature else 0
    if has_kernels(logits):
        values, codes, counts = logits.contiguous().numpy(), labels.numpy(), shares.numpy()
        scale, shift = parameters.numpy()

        def block(start: int, stop: int) -> tuple[float, NDArray[Any], NDArray[Any]]:
            gradient, curvature = np.zeros((2, classes)), np.zeros((rows, classes))
            part = slice(start, stop)
            given = values[part], codes[part], counts[part], scale, shift
            loss = vector_sums(*given, gradient, curvature)
            return loss, gradient, curvature

        parts = over_blocks(block, row_blocks(n, classes))
        loss = math.fsum(part[0] for part in parts)
        gradient = torch.from_numpy(np.sum([part[1] for part in parts], axis=0))
        curvature = torch.from_numpy(np.sum([part[2] for part in parts], axis=0))
        return loss / size, gradient / size, curvature / size
    sums = [
        logits.new_zeros(size, dtype=torch.float64) for size in ((), (2, classes), (3, classes))
    ]
    for start, stop in row_blocks(n, classes, 1 << 24):
        part = slice(start, stop)
        found = _derivatives_torch(logits[part], labels[part], shares[part], parameters)
        for total, value in zip(sums, found, strict=True):
            total += value
    return float(sums[0]) / size, sums[1] / size, sums[2][:rows] / size


def _derivatives_torch(
    logits: Tensor, labels: Tensor, weights: Tensor, parameters: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    z = logits.double()
    log_p = torch.log_softmax(z * parameters[0] + parameters[1], dim=1)
    loss = -log_p.gather(1, labels[:, None])[:, 0] @ weights
    p = log_p.exp_()
    v = p * (1 - p) * weights[:, None]
    curvature = torch.stack([(v * z * z).sum(dim=0), (v * z).sum(dim=0), v.sum(dim=0)])
    p.scatter_add_(1, labels[:, None], -torch.ones_like(p[:, :1]))
    p *= weights[:, None]
    return loss, torch.stack([(p * z).sum(dim=0), p.sum(dim=0)]), curvature


def brier_and_derivatives(
    logits: Tensor,
    labels: Tensor,
    parameters: Tensor,
    with_curvature: bool,
    weights: Tensor | None = None,
) -> tuple[float, Tensor, Tensor]:
    """As `nll_and_derivatives` for the Brier score; the curvatures are Gauss-Newton's."""
    n, classes = logits.shape
    shares = row_weights(weights, logits)
    size = float(shares.sum())
    score = 0.0
    gradient = torch.zeros(2, classes, dtype=torch.float64, device=logits.device)
    curvature = gradient.new_zeros(3 if with_curvature else 0, classes)
    for start, stop in row_blocks(n, classes, 1 << 22):
        z = logits[start:stop].double()
        mapped = z * parameters[0] + parameters[1]
        if with_curvature:
            v = logit_curvature(softmax(mapped), "brier") * shares[start:stop, None]
            curvature += torch.stack([(v * z * z).sum(dim=0), (v * z).sum(dim=0), v.sum(dim=0)])
        score += squared_errors(mapped, labels[start:stop], shares[start:stop])
        # `mapped` now holds the gradient
        gradient += torch.stack([(mapped * z).sum(dim=0), mapped.sum(dim=0)])
    return score / size, gradient / size, curvature / size


Derivatives = Callable[..., tuple[float, Tensor, Tensor]]


def _derivatives_of(loss: Loss, weights: Tensor | None) -> Derivatives:
    derivatives = brier_and_derivatives if loss == "brier" else nll_and_derivatives
    return partial(derivatives, weights=weights)


def class_block_preconditioner(curvature: Tensor, ridge: Tensor) -> Callable[[Tensor], Tensor]:
    """Return what solves each class's 2 x 2 block of the Hessian for gradients [k, 2, C]."""
    ww, wb, bb = curvature[0] + ridge[0], curvature[1], curvature[2] + ridge[1]
    determinant = (ww * bb - wb * wb).clamp_(min=1e-12 * float((ww * bb).max()))

    def solve(gradients: Tensor) -> Tensor:
        scale, shift = gradients.unbind(dim=1)
        by_scale = (bb * scale - wb * shift) / determinant
        by_shift = (ww * shift - wb * scale) / determinant
        return torch.stack([by_scale, by_shift], dim=1)

    return solve


def _mean(logits: Tensor) -> float:
    """In float64, of which torch makes a copy: so many at a time."""
    n, classes = logits.shape
    blocks = row_blocks(n, classes, 1 << 26)
    sums = [float(logits[start:stop].sum(dtype=torch.float64)) for start, stop in blocks]
    return math.fsum(sums) / logits.numel()


class VectorScaling(Calibrator):
    """softmax(w ⊙ z + b) with maximum-likelihood w, b [C] (Guo et al. 2017).

    `loss="brier"` minimises the calibration data's Brier score instead, starting at the temperature
    of least Brier score.

    The likelihood alone does not fix b (a common shift changes nothing), nor w and b where a class
    has no sample or the data are separable. Therefore a small ridge towards the temperature-scaled
    solution β is added to the mean loss,

        l2 / 2 · Σ_j [ s² (w_j - β)² + b_j² ],    s = root mean square of the row-centred logits,

    whose default changes the NLL at the optimum by less than 1e-9 on the paper's benchmarks. A
    `ConvergenceWarning` (one line) says so if the optimum was not reached.

    Parameters
    ----------
    loss : "likelihood" or "brier"
    l2 : float > 0, weight of that ridge
    max_iterations : int, of L-BFGS
    inputs : "logits" or "probabilities", what X is

    Attributes
    ----------
    scale_, shift_ : float64 [C], w and b (the b_j sum to zero)
    loss_ : float, mean loss of the calibration data
    nll_ : float, mean negative log-likelihood of the calibration data, nats
    n_evaluations_ : int, passes over the logits
    """

    scale_: NDArray[np.float64]
    shift_: NDArray[np.float64]
    loss_: float
    nll_: float
    n_evaluations_: int
    takes_weights = True

    def __init__(
        self,
        l2: float = 1e-8,
        max_iterations: int = 500,
        loss: Loss = "likelihood",
        inputs: Inputs = "logits",
    ) -> None:
        self.l2 = l2
        self.max_iterations = max_iterations
        self.loss = loss
        self.inputs = inputs

    def _fit(self, logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> None:
        if not (isinstance(self.l2, Real) and self.l2 > 0):
            raise InputError(f"l2: {self.l2}, expected a positive number")
        if not (is_whole(self.max_iterations) and self.max_iterations >= 1):
            raise InputError(f"max_iterations: {self.max_iterations}, expected 1 or more")
        check_loss(self.loss)
        begin = fit_temperature(logits, labels, self.loss, weights)
        derivatives = _derivatives_of(self.loss, weights)
        # b would have to undo w times an offset of all logits, against the ridge: not far from 0.
        offset = _mean(logits)
        if abs(offset) > FAR_FROM_ZERO * begin.spread:
            logits = logits.double() - offset
        else:
            offset = 0.0
        found = self._minimize(logits, labels, begin, derivatives)
        if not found.converged:
            warnings.warn(
                f"VectorScaling: stopped after {found.iterations} iterations, about "
                f"{found.decrement / 2:.1e} above the optimal loss; raise max_iterations",
                ConvergenceWarning,
                stacklevel=3,
            )
        nll = _derivatives_of("likelihood", weights)
        self.nll_ = nll(logits, labels, found.point, with_curvature=False)[0]
        self.loss_ = derivatives(logits, labels, found.point, with_curvature=False)[0]
        self.scale_, shift = found.point.cpu().numpy()
        shift = shift - offset * self.scale_
        self.shift_ = shift - shift.mean()  # a common shift changes nothing; the ridge asks for 0
        self.n_evaluations_ = found.evaluations + begin.evaluations

    def _minimize(
        self, logits: Tensor, labels: Tensor, begin: TemperatureFit, derivatives: Derivatives
    ) -> Minimum:
        start = torch.zeros(2, logits.shape[1], dtype=torch.float64, device=logits.device)
        start[0] = begin.beta
        spread = begin.spread if begin.spread > 0 else 1.0
        ridge = start.new_tensor([[self.l2 * spread**2], [self.l2]])

        def penalised(point: Tensor) -> tuple[float, Tensor]:
            loss, gradient, _ = derivatives(logits, labels, point, with_curvature=False)
            pull = ridge * (point - start)
            return loss + 0.5 * float(((point - start) * pull).sum()), gradient + pull

        objective: Objective = penalised
        curvature = derivatives(logits, labels, start, with_curvature=True)[2]
        return minimize(
            objective,
            start,
            class_block_preconditioner(curvature, ridge),
            tolerance=TOLERANCE,
            max_iterations=self.max_iterations,
        )

    def _predict_proba(self, logits: Tensor) -> Tensor:
        scale = torch.as_tensor(self.scale_, device=logits.device)
        shift = torch.as_tensor(self.shift_, device=logits.device)
        return softmax(logits.double() * scale + shift)

    def _to_module(self, dtype: torch.dtype) -> ScaledSoftmax:
        return ScaledSoftmax(constant(self.scale_, dtype), constant(self.shift_, dtype))
