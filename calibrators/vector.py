"""Vector scaling, solved exactly (Guo et al. 2017): softmax(w ⊙ z + b).

The NLL is convex in the 2C parameters. L-BFGS starts at the temperature-scaled solution, with about
the inverse of the Hessian there as its first inverse Hessian. The Brier score is not convex: it
ends in a minimum that is no higher than that start.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.kernels.compiled import compiled
from utility_calibration.metrics.kernels.softmax import softmax
from utility_calibration.metrics.kernels.threads import PRODUCT_ELEMENTS, row_blocks
from utility_calibration.metrics.option_checks import check_whole

from .base import Calibrator
from .losses import Loss, logit_hessian, mean_logit, overwrite, row_weights
from .solvers.lbfgs import Minimum, minimize, warn_unless_converged
from .solvers.sums import summed
from .solvers.temperature import fit_temperature
from .stored import Learned, Stored

BLOCK = 1 << 18  # logits per block, which one thread works on
TILE = 1 << 11  # logits that a kernel works on at a time
ROWS, LARGEST_STEP = 20, 4
"""The starting Hessian uses every k-th row, k <= LARGEST_STEP, as long as ROWS rows per class are
left; with fewer it uses all. With every third row a fit to 7,000 x 100 points takes 5 steps more,
and 80 ms for 92."""
FLOOR = 1e-12  # of the Hessian's largest diagonal entry, added so that it can be inverted


@compiled
def add_gradient(
    inputs: Any, labels: Any, weights: Any, point: Any, is_brier: bool, gradient: Any
) -> float:
    """Add the gradient of the summed loss at `point` to `gradient` [2, C], and return that loss.

    A few rows at a time stay in the cache between their map, their loss and their sums.
    """
    classes = inputs.shape[1]
    most = max(1, TILE // classes)
    mapped = np.empty((most, classes))
    loss = 0.0
    for start in range(0, inputs.shape[0], most):
        stop = min(start + most, inputs.shape[0])
        for i in range(start, stop):
            for j in range(classes):
                mapped[i - start, j] = point[0, j] * inputs[i, j] + point[1, j]
        rows = mapped[: stop - start]
        loss += overwrite(rows, labels[start:stop], weights[start:stop], is_brier)
        for i in range(start, stop):
            for j in range(classes):
                gradient[0, j] += rows[i - start, j] * inputs[i, j]
                gradient[1, j] += rows[i - start, j]
    return loss


@dataclass(frozen=True)
class VectorMapProblem:
    """Inputs x [n, C], labels [n] and weights [n], and the mean loss of softmax(w ⊙ x + b) on them.

    The parameters (w, b) are float64 [2, C].
    """

    inputs: Array
    labels: Array
    weights: Array | None = None
    loss: Loss = "nll"

    def loss_and_gradient(self, point: Array, loss: Loss | None = None) -> tuple[float, Array]:
        """Return the mean loss and its gradient [2, C] at `point`."""
        x, shares = self.inputs, row_weights(self.weights, self.inputs)

        is_brier = (loss or self.loss) == "brier"

        def of_rows(start: int, stop: int) -> tuple[float, Array]:
            block = np.ascontiguousarray(x[start:stop])
            gradient = np.zeros_like(point)
            rows = self.labels[start:stop], shares[start:stop]
            value = add_gradient(block, *rows, point, is_brier, gradient)
            return value, gradient

        total, gradient = summed(of_rows, row_blocks(len(x), x.shape[1], BLOCK))
        size = float(shares.sum())
        return total / size, gradient / size

    def hessian(self, beta: float, step: int = 1) -> Array:
        """Return the Hessian of every `step`-th row's mean loss at w = β, b = 0: [2C, 2C]."""
        classes = self.inputs.shape[1]
        x, shares = self.inputs[::step], row_weights(self.weights, self.inputs)[::step]

        def of_rows(start: int, stop: int) -> tuple[Array, Array]:
            z, share = x[start:stop].astype(np.float64, copy=False), shares[start:stop, None]
            p = softmax(z, beta)
            d, r = (part * share for part in logit_hessian(p, self.loss))
            ww, wb, bb = (d * z * z).sum(axis=0), (d * z).sum(axis=0), d.sum(axis=0)
            beside = np.concatenate([r * z, r], axis=1).T @ np.concatenate([p * z, p], axis=1)
            return np.stack([ww, wb, wb, bb]), beside

        parts, beside = summed(of_rows, row_blocks(len(x), classes, PRODUCT_ELEMENTS))
        # A row's Hessian is diag(d) - r pᵀ - p rᵀ (losses.py). `hessian` is half of their sum, with
        # r pᵀ only, and its transpose makes up the other half. So the diagonals enter by half.
        hessian = -beside
        diagonals = np.einsum("ikjk->ijk", hessian.reshape(2, classes, 2, classes))  # [2, 2, C]
        diagonals += parts.reshape(diagonals.shape) / 2
        return (hessian + hessian.T) / shares.sum()

    def solve(self, beta: float, ridges: tuple[float, float], max_iterations: int) -> Minimum:
        """Minimise the mean loss + ½ Σ ridge · distance² from (β, 0); a ridge each for w and b."""
        start = np.zeros((2, self.inputs.shape[1]))
        start[0] = beta
        ridge = np.array(ridges)[:, None]

        def objective(point: Array) -> tuple[float, Array]:
            value, gradient = self.loss_and_gradient(point)
            pull = ridge * (point - start)
            return value + 0.5 * float(((point - start) * pull).sum()), gradient + pull

        def minimum(step: int) -> Minimum:
            newton_step = self._newton_step(beta, ridge, step)
            return minimize(objective, start, newton_step, max_iterations=max_iterations)

        n, classes = self.inputs.shape
        step = min(LARGEST_STEP, max(1, n // (ROWS * classes)))
        least = minimum(step)
        if least.converged or least.iterations == max_iterations or step == 1:
            return least
        # Where nearly all rows are sure, the few others are the whole Hessian, and may be missing.
        again = minimum(1)
        return replace(again, evaluations=least.evaluations + again.evaluations)

    def _newton_step(self, beta: float, ridge: Array, step: int) -> Callable[[Array], Array]:
        """Return the product of the inverse Hessian of every `step`-th row and gradients."""
        hessian = self.hessian(beta, step)
        diagonal = np.einsum("ii->i", hessian)
        # Intercepts that grow by the same number change nothing, so the Hessian is singular.
        ridges = np.repeat(ridge, self.inputs.shape[1])
        diagonal += ridges + FLOOR * diagonal.max()
        root = cho_factor(hessian, lower=True, overwrite_a=True, check_finite=False)

        def newton_step(gradients: Array) -> Array:  # of a stack of gradients [k, 2, C]
            flat = gradients.reshape(len(gradients), -1)
            return cho_solve(root, flat.T, check_finite=False).T.reshape(gradients.shape)

        return newton_step


class VectorMapCalibrator(Calibrator):
    """A map softmax(w ⊙ x + b) for inputs x [n, C], by default the logits."""

    learned: ClassVar[Learned] = {"scale_": Stored(("P",)), "shift_": Stored(("P",))}

    takes_weights = True
    scale_: NDArray[np.float64]
    shift_: NDArray[np.float64]

    def _map_inputs(self, logits: Array) -> Array:
        return logits.astype(np.float64, copy=False)

    def _predict_proba(self, logits: Array) -> Array:
        return softmax(self._map_inputs(logits) * self.scale_ + self.shift_)

    def _to_module(self, dtype: Any) -> Any:
        from .export.affine import AffineSoftmax

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

    With the default l2 the ridge changes the NLL at the optimum by less than 1e-9 on the paper's
    benchmarks. A `ConvergenceWarning` (one line) says if the optimum was not reached.

    >>> logits, labels = [[4.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 0.0]], [0, 0, 1, 1]
    >>> VectorScaling().fit(logits, labels).predict_proba([[4.0, 0.0]]).round(3)
    array([[0.667, 0.333]])

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

    def _fit(self, logits: Array, labels: Array, weights: Array | None = None) -> None:
        if not (isinstance(self.l2, Real) and self.l2 > 0):
            raise InputError(f"{self.l2}, expected a positive number", field="l2")
        check_whole(self.max_iterations, "max_iterations", 1)
        begin = fit_temperature(logits, labels, self.loss, weights)
        centre = mean_logit(logits, weights)
        problem = VectorMapProblem(
            logits.astype(np.float64, copy=False) - centre, labels, weights, self.loss
        )
        ridges = self.l2 * (begin.spread or 1.0) ** 2, self.l2
        least = problem.solve(begin.beta, ridges, self.max_iterations)
        warn_unless_converged(least, "VectorScaling")
        self.nll_ = problem.loss_and_gradient(least.point, "nll")[0]
        self.loss_ = problem.loss_and_gradient(least.point)[0]
        scale, shift = least.point
        shift = shift - scale * centre
        self.scale_, self.shift_ = scale, shift - shift.mean()  # a common shift changes nothing
        self.n_evaluations_ = least.evaluations + begin.evaluations
