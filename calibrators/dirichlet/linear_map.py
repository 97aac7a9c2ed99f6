"""softmax(W x + b): its penalised loss (NLL or Brier score), its minimiser, its prediction.

The parameters are a float64 array [C, C + 1], W with b as its last column. Matrix products run in
float64 up to `DOUBLE_WORK` multiplications per pass, and in float32 above that. The loss, the
softmax and the sums over blocks of rows are always float64.
"""

from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.kernels.softmax import softmax
from utility_calibration.metrics.kernels.threads import (
    PRODUCT_ELEMENTS,
    one_thread,
    over_blocks,
    row_blocks,
)

from ..base import Calibrator
from ..losses import Loss, block_residuals, row_weights
from ..solvers.lbfgs import PRINTED_DIGITS, Minimum, Pairs, dot, minimize
from ..solvers.sums import summed
from ..stored import Learned, Stored
from .curvature import ClassCurvature
from .reduced import ReducedHessian

LOSS_ELEMENTS = 1 << 17
"""Logits in a block of `map_loss`, so few that the cache holds them between its two products: for
4,900 points of a hundred classes a pass took 8.1 ms in place of 11.3. A block has at least as many
rows as classes, up to `PRODUCT_ELEMENTS`: adding up the blocks' gradients would take longer."""
DOUBLE_WORK = 2_000_000_000  # n C² up to which products run in float64; larger ones take too long
ONE_THREAD_WORK = 50_000_000  # n C² up to which a fit works on one thread
RIDGE = 1e-8  # weight of the pull towards the start that makes the optimum unique
WARM_STARTS = 8  # number of earlier solutions that a fit of a search may start from
RENEWED = 100
"""Iterations after which a slow fit computes the curvature anew. A map that nearly interpolates
ends where few rows are undecided; the curvature of its start says nothing of them."""
SLOW_ENDS = 1e-12  # Newton decrement in nats that is enough after half of all iterations
FLOAT32_NOISE = 1e-7  # relative error of a mean NLL whose logits are float32 products


def products_type(rows: int, classes: int) -> type:
    """Return the number type of the matrix products for `rows` x `classes` inputs."""
    return np.float64 if rows * classes * classes <= DOUBLE_WORK else np.float32


def penalty_weights(classes: int, diagonal: float, off_diagonal: float, intercept: float) -> Array:
    """Return the weight of each entry's squared distance from the start, float64 [C, C + 1]."""
    shape = classes, classes + 1
    weights = np.full(shape, off_diagonal)
    np.fill_diagonal(weights[:, :classes], diagonal)
    weights[:, classes] = intercept
    return weights


def odir_weights(classes: int, odir: float, l2: float) -> Array:
    """Return ODIR's weights: odir / (C (C - 1)) off the diagonal, l2 / C for each intercept."""
    return penalty_weights(classes, 0.0, odir / (classes * (classes - 1)), l2 / classes)


def start_point(classes: int, beta: float) -> Array:
    """Return the temperature-scaled solution W = β I, b = 0: float64 [C, C + 1]."""
    return np.eye(classes, classes + 1) * beta


@dataclass(eq=False)
class LinearMapProblem:
    """Data and starting point of a fit; the penalties come with each call of `solve`."""

    inputs: Array
    """[n, C]"""
    labels: Array
    """[n]"""
    beta: float
    """The fit starts at the temperature-scaled solution W = β I, b = 0."""
    spread: float
    """The root mean square of the row-centred logits."""
    loss: Loss = "nll"
    counts: Array | None = None
    """float64 [n], the weights of the rows; None: all are 1."""
    curvature: ClassCurvature | ReducedHessian | None = None
    """None: `ClassCurvature` at the start."""

    def __post_init__(self) -> None:
        self.start = start_point(self.inputs.shape[1], self.beta)
        self.ridge = np.full_like(self.start, RIDGE * (self.spread or 1.0) ** 2)
        self.ridge[:, -1] = RIDGE
        self._origins: deque[tuple[Array, float, Array]] = deque(maxlen=WARM_STARTS)
        if self.curvature is None:
            self.curvature = ClassCurvature.at(self.inputs, self.beta, self.loss, self.counts)

    def solve(
        self,
        weights: Array,
        begin: Array | None = None,
        *,
        tolerance: float = PRINTED_DIGITS,
        max_iterations: int,
        give_up: Callable[[int, Array], bool] | None = None,
        pairs: Pairs | None = None,
    ) -> Minimum:
        """Minimise the mean loss + Σ weights (V - start)² + ridge, from `begin` or the start.

        The start is (β I, 0), so off the diagonal the penalties are those of V itself.
        """

        origin = self.start if begin is None else begin

        def objective(point: Array) -> tuple[float, Array]:
            at_origin = np.array_equal(point, origin)
            loss, gradient = (self._at_origin if at_origin else self._loss_and_gradient)(point)
            away = point - self.start
            pull, ridge = weights * away, self.ridge * away
            penalty = dot(pull, away) + 0.5 * dot(ridge, away)
            return loss + penalty, ridge + 2.0 * pull + gradient

        assert self.curvature is not None  # `__post_init__` computes it
        exact = self.inputs.dtype == np.float64
        with one_thread(self.inputs.size * self.inputs.shape[1] <= ONE_THREAD_WORK):
            return minimize(
                objective,
                origin,
                self.curvature.preconditioner(2 * weights + self.ridge),
                tolerance=tolerance,
                max_iterations=max_iterations,
                noise=0.0 if exact else FLOAT32_NOISE,
                give_up=give_up,
                pairs=pairs,
            )

    def _loss_and_gradient(self, point: Array) -> tuple[float, Array]:
        """Return the mean loss and its gradient [C, C + 1] at `point`, without penalties."""
        gradient = np.empty_like(point)
        data = self.inputs, self.labels, point, gradient
        return map_loss(*data, loss=self.loss, counts=self.counts), gradient

    def _at_origin(self, point: Array) -> tuple[float, Array]:
        """Return `_loss_and_gradient`, remembered: many fits of a search begin at one point."""
        for origin, loss, gradient in self._origins:
            if np.array_equal(point, origin):
                return loss, gradient
        loss, gradient = self._loss_and_gradient(point)
        self._origins.append((point, loss, gradient))
        return loss, gradient

    def solve_renewed(self, weights: Array, max_iterations: int) -> Minimum:
        """Return `solve` from the start; a slow fit takes the curvature anew on its way.

        A fit that is near its optimum after `RENEWED` iterations goes on as it began. Any other one
        takes the curvature at its present point, which stays in `self`, every `RENEWED` iterations.
        """
        fit = self.solve(weights, max_iterations=min(RENEWED, max_iterations))
        is_near, latest = fit.converged, fit.iterations
        while latest >= RENEWED and fit.iterations < max_iterations:
            left = max_iterations - fit.iterations
            if fit.decrement <= (SLOW_ENDS if 2 * left <= max_iterations else 0.0):
                break
            if not is_near:
                self.curvature = ClassCurvature.at(self.inputs, fit.point, self.loss, self.counts)
                left = min(RENEWED, left)
            more = self.solve(weights, fit.point, max_iterations=left, pairs=fit.pairs)
            latest = more.iterations
            fit = replace(
                more,
                iterations=fit.iterations + more.iterations,
                evaluations=fit.evaluations + more.evaluations,
            )
            if is_near:
                break
        return fit


def map_loss(
    inputs: Array,
    labels: Array,
    point: Array,
    gradient: Array | None = None,
    *,
    loss: Loss = "nll",
    counts: Array | None = None,
) -> float:
    """Return the mean loss of softmax(W x + b); write its gradient to `gradient` if given.

    The matrix products use the number type of `inputs` [n, C]. `labels` are [n], `point` and
    `gradient` float64 [C, C + 1], and `counts` float64 [n], the weights of the mean.
    """
    n, classes = inputs.shape
    shares = row_weights(counts, inputs)
    size = float(shares.sum())
    working = point.astype(inputs.dtype)
    matrix, shift = working[:, :classes], working[:, classes]

    def of_rows(start: int, stop: int) -> list[Any]:
        block = inputs[start:stop]
        mapped = block @ matrix.T
        mapped += shift
        value = block_residuals(mapped, labels[start:stop], shares[start:stop], loss)
        if gradient is None:
            return [value]
        # `mapped` now holds the gradient by the logits.
        slopes = np.empty_like(gradient)
        slopes[:, :classes] = mapped.T @ block
        slopes[:, classes] = mapped.sum(axis=0)
        return [value, slopes]

    elements = max(LOSS_ELEMENTS, min(classes**2, PRODUCT_ELEMENTS))
    total, *slopes = summed(of_rows, row_blocks(n, classes, elements))
    if gradient is not None:
        gradient[:] = slopes[0] / size
    return float(total) / size


class LinearMapCalibrator(Calibrator):
    """softmax(W x + b) for inputs x [n, C], which a subclass computes from the logits."""

    learned: ClassVar[Learned] = {"matrix_": Stored(("P", "P")), "intercept_": Stored(("P",))}

    takes_weights = True

    @abstractmethod
    def _map_inputs(self, logits: Array) -> Array:
        """Return x, float64 [n, C]."""

    def _keep(self, point: Array) -> None:
        self.matrix_: NDArray[np.float64] = point[:, :-1].copy()
        self.intercept_: NDArray[np.float64] = point[:, -1].copy()

    def _to_module(self, dtype: Any) -> Any:
        from ..export.affine import AffineSoftmax

        return AffineSoftmax(self.matrix_, self.intercept_, dtype)

    def _predict_proba(self, logits: Array) -> Array:
        out = np.empty(logits.shape)

        def of_rows(start: int, stop: int) -> None:
            inputs = self._map_inputs(logits[start:stop])
            out[start:stop] = softmax(inputs @ self.matrix_.T + self.intercept_)

        over_blocks(of_rows, row_blocks(len(logits), logits.shape[1], PRODUCT_ELEMENTS))
        return out
