"""Pooled scaling: the log-linear pool of the maps O, N and B.

    ℓ       ln q, q the temperature-scaled softmax with a small share of the uniform forecast
    fit     O, N and B on all points, and five times without a fifth (`maps.py`)
    pool    p ∝ exp(w_1 O + w_2 N + w_3 B), w by the held-out NLL + 3,200/n² |w - (1, 0, 0)|²

If points have weights, every mean is weighted, and n is the sum of the weights. A fold is a fifth
of the rows: a point of weight 3 is in one fold, while three rows may be in three.

The scores are linear in the parameters, so a pool of maps is again one map.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.kernels.softmax import softmax
from utility_calibration.metrics.kernels.threads import over_blocks, row_blocks

from ..base import Calibrator
from ..losses import residuals, row_weights
from ..patching.tuning import FOLDS, folds_of
from ..solvers.lbfgs import dot, minimize
from ..stored import POSITIVE, SHARE, Learned
from ..temperature import TemperatureScaling
from . import maps

RIDGE = 3200.0  # times 1/n² the weight of |w - (1, 0, 0)|²: .08 for 200 points
MATRIX_WORK = 2_000_000_000  # n C² up to which B is a member; beyond, its fits take longest


@dataclass(eq=False, repr=False)
class PooledScaling(Calibrator):
    """softmax(W ℓ + a + φ(ℓ) θ), a pool of a map with shifts and two with shape and rank.

    >>> logits, labels = [[4.0, 0.0], [4.0, 0.0], [0.0, 4.0], [4.0, 0.0]], [0, 0, 1, 1]
    >>> PooledScaling().fit(logits, labels).predict_proba([[4.0, 0.0]]).round(2)
    array([[0.74, 0.26]])

    Args:
        seed: of the folds.

    Attributes:
        inverse_temperature_, uniform_share_: 1/T, and 1/(n + 1)² or 1/(n + 1).
        pool_: float64 [3], the weights w of O, N and B; [2] without B; [1], of the temperature,
            where there are fewer than ten points.
        map_: float64, the pool as a point of `maps`.
        cross_fitted: float64 [n, C], the probabilities of the calibration points by maps that were
            fitted without them; it is not saved.
    """

    takes_weights = True
    learned: ClassVar[Learned] = {"inverse_temperature_": POSITIVE, "uniform_share_": SHARE}

    seed: int = 0

    def _fit(self, logits: Array, labels: Array, weights: Array | None = None) -> None:
        temperature = TemperatureScaling()
        temperature._fit(logits, labels, weights)
        self.inverse_temperature_ = 1 / temperature.temperature_
        weights = row_weights(weights, logits)
        self.uniform_share_ = self._likelier_share(logits, labels, weights)
        inputs = self._map_inputs(logits)
        data = maps.Data(inputs, maps.Features.of(inputs), labels, weights)
        members, held_out = cross_fit(data, self.seed)
        of_members = pool_weights(held_out, labels, weights)
        self.cross_fitted = softmax(
            (of_members @ held_out.reshape(len(held_out), -1)).reshape(logits.shape)
        )
        self.pool_, self.map_ = of_members, of_members @ members

    def _likelier_share(self, logits: Array, labels: Array, weights: Array) -> float:
        """Return 1/(n + 1)², or 1/(n + 1) if that makes the calibration points more likely.

        The larger one limits what a sure error costs, but takes sureness from good forecasts.
        """
        n, classes = float(weights.sum()), logits.shape[1]
        q = softmax(logits, self.inverse_temperature_)[np.arange(len(labels)), labels]

        def log_likelihood(share: float) -> float:
            return float((weights * np.log((1 - share) * q + share / classes)).sum())

        return max(1 / (n + 1) ** 2, 1 / (n + 1), key=log_likelihood)

    def _map_inputs(self, logits: Array) -> Array:
        q, share = softmax(logits, self.inverse_temperature_), self.uniform_share_

        def work(start: int, stop: int) -> None:
            part = q[start:stop]
            part *= 1 - share
            part += share / q.shape[1]
            np.log(part, out=part)

        over_blocks(work, row_blocks(*q.shape))
        return q

    def _predict_proba(self, logits: Array) -> Array:
        inputs = self._map_inputs(logits)
        point = maps.MapPoint.of(self.map_, logits.shape[1])
        return softmax(point.scores(inputs, maps.Features.of(inputs)))

    def _to_module(self, dtype: Any) -> Any:
        from ..export.pooled import PooledModule

        return PooledModule(self, dtype)


def cross_fit(data: maps.Data, seed: int) -> tuple[Array, Array]:
    """Return the members, fitted on all points, [M, size], and their held-out scores [M, n, C].

    T is that of all points, because one parameter hardly adapts to a single fifth. So ℓ, the
    features and the preconditioners are computed once. Every fit without a fifth starts at the
    fit to all points, with the curvature that it found. Fewer than ten points have the identity, so
    temperature scaling, as the only member.
    """
    n, classes = data.inputs.shape
    identity = maps.identity(classes, False)
    if n < 2 * FOLDS:
        return identity[None], data.inputs[None]
    hessian, plain = maps.hessian_n(data), data.without_features()
    of_o, of_n = maps.preconditioner_o(hessian, classes), maps.preconditioner_n(hessian)
    fits = [
        (plain, maps.solve(plain, identity, of_o), of_o),
        (data, maps.solve(data, identity, of_n), of_n),
    ]
    if n * classes**2 <= MATRIX_WORK:
        of_b, begin = maps.preconditioner_b(data, of_n), maps.widened(fits[1][1].point, classes)
        fits.append((data, maps.solve(data, begin, of_b), of_b))
    members = [fit.point for _, fit, _ in fits]
    scores = np.empty((len(members), n, classes))
    for outside, inside in folds_of(data.labels, seed):
        for member, (points, fit, precondition) in enumerate(fits):
            fitted, scored = points.rows(outside), points.rows(inside)
            without = maps.solve(fitted, fit.point, precondition, fit.pairs).point
            point = maps.MapPoint.of(without, classes)
            scores[member, inside] = point.scores(scored.inputs, scored.features)
    size = len(members[-1])
    return np.stack([m if len(m) == size else maps.widened(m, classes) for m in members]), scores


def pool_weights(scores: Array, labels: Array, weights: Array) -> Array:
    """Return the weights [M] of the members with the held-out `scores` [M, n, C].

    The points have `labels` and `weights` [n].
    """
    count, n = len(scores), float(weights.sum())
    alone, ridge = np.eye(count)[0], RIDGE / n**2
    flat = scores.reshape(count, -1)

    def objective(members: Array) -> tuple[float, Array]:
        pooled = (members @ flat).reshape(scores.shape[1:])
        loss = residuals(pooled, labels, weights)  # now `pooled` holds the gradient by the scores
        away = members - alone
        gradient = flat @ pooled.ravel() / n
        return loss / n + ridge * dot(away, away), gradient + 2 * ridge * away

    p = softmax(scores[0])
    centred = scores - (scores * p).sum(axis=2, keepdims=True)
    p *= weights[:, None]
    hessian = (centred * p).reshape(count, -1) @ centred.reshape(count, -1).T / n
    root = cho_factor(hessian + 2 * ridge * np.eye(count), lower=True)

    def newton(gradients: Array) -> Array:
        return cho_solve(root, gradients.T).T

    return minimize(objective, alone, newton, max_iterations=100).point
