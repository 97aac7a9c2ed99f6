"""Structured matrix and vector scaling (Berta, Holzmüller, Jordan, Bach 2026, arXiv 2511.03685).

Temperature scaling comes first. An affine map of its log-probabilities then corrects what a
temperature cannot. Penalties hold the map near the identity, the stronger the fewer points there
are per parameter. For ten classes and a few thousand points this is among the best maps known.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.kernels.softmax import softmax
from utility_calibration.metrics.kernels.threads import one_thread

from .base import Calibrator
from .dirichlet import linear_map
from .dirichlet.linear_map import LinearMapCalibrator, LinearMapProblem
from .dirichlet.reduced import ReducedHessian
from .solvers.lbfgs import Minimum, warn_unless_converged
from .solvers.temperature import fit_temperature
from .stored import POSITIVE, SHARE, Learned
from .vector import VectorMapCalibrator, VectorMapProblem


class _OfMixture(Calibrator):
    """What both share: the inputs ln q of their maps, and penalties with positive strengths."""

    learned: ClassVar[Learned] = {"inverse_temperature_": POSITIVE, "uniform_share_": SHARE}

    inverse_temperature_: float
    uniform_share_: float

    def _fit_mixture(self, logits: Array, labels: Array, weights: Array | None) -> float:
        """Check the strengths, keep T and ε as attributes, and return C / n.

        All penalties have this factor; n is the number of points, or the sum of their weights.
        """
        for name in ("diagonal", "off_diagonal", "intercept"):
            if not getattr(self, name, 1.0) > 0:
                raise InputError(f"{getattr(self, name)}", field=name, fixes="give a number > 0")
        points = float(len(labels) if weights is None else weights.sum())
        temperature = fit_temperature(logits, labels, weights=weights)
        self.inverse_temperature_, self.uniform_share_ = temperature.beta, 1 / (points + 1)
        return logits.shape[1] / points

    def _map_inputs(self, logits: Array) -> Array:
        q, share = softmax(logits, self.inverse_temperature_), self.uniform_share_
        return np.log(q * (1 - share) + share / q.shape[1])

    def _to_module(self, dtype: Any) -> Any:
        from .export.affine import after_mixture

        linear = super()._to_module(dtype)
        return after_mixture(self.inverse_temperature_, self.uniform_share_, linear, dtype)


@dataclass(eq=False, repr=False)
class StructuredMatrixScaling(_OfMixture, LinearMapCalibrator):
    """softmax(W ln q + b), with q = (1 - ε) softmax(z / T) + ε / C and ε = 1 / (n + 1).

    T is that of temperature scaling. W [C, C] and b [C] minimise the convex objective

        mean NLL + C/n · (Σ_j (W_jj - 1)² + Σ_j b_j²) + C (C - 1)/n · Σ_{j≠k} W_jk²,

    where each of the three sums is also multiplied by its strength. L-BFGS starts at W = I, b = 0,
    which is temperature scaling except for ε; the share ε of the uniform keeps ln q finite.

    >>> logits, labels = [[4.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 0.0]], [0, 0, 1, 1]
    >>> StructuredMatrixScaling().fit(logits, labels).predict_proba([[4.0, 0.0]]).round(2)
    array([[0.66, 0.34]])

    Args:
        diagonal, off_diagonal, intercept: strengths of the penalties, > 0; the paper takes 1.
        max_iterations: of L-BFGS.
        inputs: what X is.

    Attributes:
        inverse_temperature_, uniform_share_: 1/T and ε.
        matrix_, intercept_: float64 [C, C] and [C], W and b.
        nll_: mean NLL of the calibration data in nats.
    """

    one_thread_up_to = 1 << 19  # a pass takes 7 ms at 7,000 x 100, and threads begin within .2
    diagonal: float = 1.0
    off_diagonal: float = 1.0
    intercept: float = 1.0
    max_iterations: int = 500

    def _fit(self, logits: Array, labels: Array, weights: Array | None = None) -> None:
        n, classes = logits.shape
        share = self._fit_mixture(logits, labels, weights)
        x = self._map_inputs(logits)
        spread = float(np.sqrt(np.square(x - x.mean(axis=1, keepdims=True)).mean()))
        off_diagonal = self.off_diagonal * share * (classes - 1)
        strengths = self.diagonal * share, off_diagonal, self.intercept * share
        penalties = linear_map.penalty_weights(classes, *strengths)
        with one_thread(x.size * classes <= linear_map.ONE_THREAD_WORK):
            curvature = ReducedHessian.at(x.astype(np.float32), weights)
        inputs: Array = x.astype(linear_map.products_type(n, classes), copy=False)

        def solved(about: ReducedHessian | None) -> Minimum:
            problem = LinearMapProblem(inputs, labels, 1.0, spread, "nll", weights, about)
            return problem.solve(penalties, max_iterations=self.max_iterations)

        try:
            best = solved(curvature)
        except np.linalg.LinAlgError:
            # Tiny penalties, as beside one huge weight, are lost in the rounding of the sums.
            best = solved(None)
        warn_unless_converged(best, "StructuredMatrixScaling")
        self.nll_ = linear_map.map_loss(x, labels, best.point, counts=weights)
        self._keep(best.point)


@dataclass(eq=False, repr=False)
class StructuredVectorScaling(_OfMixture, VectorMapCalibrator):
    """softmax(w ⊙ ln q + b), with the q of `StructuredMatrixScaling` and no matrix.

    w, b [C] minimise the mean NLL + C/n · (diagonal Σ_j (w_j - 1)² + intercept Σ_j b_j²).

    >>> logits, labels = [[4.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 0.0]], [0, 0, 1, 1]
    >>> StructuredVectorScaling().fit(logits, labels).predict_proba([[4.0, 0.0]]).round(2)
    array([[0.66, 0.34]])

    Args:
        diagonal, intercept, max_iterations, inputs: as in `StructuredMatrixScaling`.

    Attributes:
        inverse_temperature_, uniform_share_, nll_: as in `StructuredMatrixScaling`.
        scale_, shift_: float64 [C], w and b.
    """

    diagonal: float = 1.0
    intercept: float = 1.0
    max_iterations: int = 500

    def _fit(self, logits: Array, labels: Array, weights: Array | None = None) -> None:
        share = self._fit_mixture(logits, labels, weights)
        problem = VectorMapProblem(self._map_inputs(logits), labels, weights)
        # The solver has ½ · ridge · distance², the penalty of the paper no ½: hence twice C / n.
        ridges = self.diagonal * 2 * share, self.intercept * 2 * share
        best = problem.solve(1.0, ridges, self.max_iterations)
        warn_unless_converged(best, "StructuredVectorScaling")
        self.nll_ = problem.loss_and_gradient(best.point)[0]
        self.scale_, self.shift_ = best.point
