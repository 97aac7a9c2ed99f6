"""Pooled scaling: the log-linear pool of temperature scaling and the maps N and B.

    ℓ       ln q, q the temperature-scaled softmax with a share 1/(n + 1)² of the uniform forecast
    fit     N and B on all points, and five times without a fifth (`maps.py`)
    pool    p ∝ exp(w_1 ℓ + w_2 N + w_3 B), w by the held-out NLL + 3,200/n² |w - (1, 0, 0)|²

The scores are linear in the parameters, so a pool of maps is again one map.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from utility_calibration.metrics.kernels.softmax import softmax
from utility_calibration.metrics.kernels.threads import one_thread

from ..base import Calibrator
from ..losses import residuals
from ..modules import log_mixture, order_of
from ..patching.tuning import FOLDS, folds_of
from ..solvers.lbfgs import dot, minimize
from ..stored import POSITIVE, SHARE, Learned
from ..temperature import TemperatureScaling
from . import maps

RIDGE = 3200.0  # times 1/n² the weight of |w - (1, 0, 0)|²: .08 for 200 points
MATRIX_WORK = 2_000_000_000  # n C² up to which B is a member; beyond, its fits take longest


@dataclass(eq=False, repr=False)
class PooledScaling(Calibrator):
    """softmax(W ℓ + a + φ(ℓ) θ), a pool of temperature scaling and two maps with shape and rank.

    Args:
        seed: of the folds.

    Attributes:
        inverse_temperature_, uniform_share_: 1/T and 1/(n + 1)².
        pool_: float64 [3], the weights w of temperature, N and B; [2] without B.
        map_: float64, the pool as a point of `maps`.
        cross_fitted: float64 [n, C], the probabilities of the calibration points by maps that were
            fitted without them; it is not saved.
    """

    learned: ClassVar[Learned] = {"inverse_temperature_": POSITIVE, "uniform_share_": SHARE}

    seed: int = 0

    def _fit(self, logits: Tensor, labels: Tensor) -> None:
        n = len(labels)
        temperature = TemperatureScaling()
        temperature._fit(logits, labels)
        self.inverse_temperature_ = 1 / temperature.temperature_
        self.uniform_share_ = 1 / (n + 1) ** 2
        inputs = self._map_inputs(logits)
        data = maps.Data(inputs, maps.Features.of(inputs), labels)
        members, held_out = cross_fit(data, self.seed)
        weights = pool_weights(held_out, labels)
        self.cross_fitted = softmax((weights @ held_out.flatten(1)).view_as(logits))
        self.pool_, self.map_ = weights.cpu().numpy(), (weights @ members).cpu().numpy()

    def _map_inputs(self, logits: Tensor) -> Tensor:
        return log_mixture(softmax(logits, self.inverse_temperature_), self.uniform_share_)

    def _predict_proba(self, logits: Tensor) -> Tensor:
        inputs = self._map_inputs(logits)
        point = maps.MapPoint.of(torch.as_tensor(self.map_, device=logits.device), logits.shape[1])
        return softmax(point.scores(inputs, maps.Features.of(inputs)))

    def _to_module(self, dtype: torch.dtype) -> nn.Module:
        return PooledModule(self, dtype)


class PooledModule(nn.Module):
    """Logits [n, C] to the pool's probabilities [n, C], for `torch.export` and ONNX."""

    map: Tensor

    def __init__(self, fitted: PooledScaling, dtype: torch.dtype) -> None:
        super().__init__()
        self.beta, self.share = fitted.inverse_temperature_, fitted.uniform_share_
        self.register_buffer("map", torch.tensor(fitted.map_, dtype=dtype))

    def forward(self, logits: Tensor) -> Tensor:
        """[n, C] -> [n, C]"""
        q = torch.softmax(logits.to(self.map.dtype) * self.beta, dim=1)
        inputs = log_mixture(q, self.share)
        features = maps.Features.of(inputs, order_of(inputs, maps.TIED))
        point = maps.MapPoint.of(self.map, q.shape[1])
        return torch.softmax(point.scores(inputs, features), dim=1)


def cross_fit(data: maps.Data, seed: int) -> tuple[Tensor, Tensor]:
    """Return the members, fitted on all points, [M, size], and their held-out scores [M, n, C].

    T is that of all points, because one parameter hardly adapts to a single fifth. So ℓ, the
    features and the preconditioners are computed once. Every fit without a fifth starts at the
    fit to all points, with the curvature that it found. Fewer than ten points have the temperature
    as the only member.
    """
    n, classes = data.inputs.shape
    members, fits = [maps.identity(classes, False, data.inputs.device)], []
    if n >= 2 * FOLDS:
        of_n = maps.preconditioner_n(data)
        fits.append((maps.solve(data, members[0], of_n), of_n))
        if n * classes**2 <= MATRIX_WORK:
            of_b, begin = maps.preconditioner_b(data, of_n), maps.widened(fits[0][0].point, classes)
            fits.append((maps.solve(data, begin, of_b), of_b))
    members += [fit.point for fit, _ in fits]
    scores = data.inputs.expand(len(members), -1, -1).clone()
    for kept, held in folds_of(data.labels, seed) if fits else ():
        fitted, scored = data.rows(kept), data.rows(held)
        for member, (fit, precondition) in enumerate(fits, 1):
            without = maps.solve(fitted, fit.point, precondition, fit.pairs).point
            point = maps.MapPoint.of(without, classes)
            scores[member, held] = point.scores(scored.inputs, scored.features)
    size = len(members[-1])
    return torch.stack([m if len(m) == size else maps.widened(m, classes) for m in members]), scores


def pool_weights(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the weights [M] of the members with the held-out `scores` [M, n, C]."""
    count, n, classes = scores.shape
    alone, ridge = torch.eye(count).to(scores)[0], RIDGE / n**2
    flat = scores.flatten(1)

    def objective(weights: Tensor) -> tuple[float, Tensor]:
        pooled = (weights @ flat).view(n, classes)
        loss = residuals(pooled, labels)  # now `pooled` holds the gradient by the scores
        away = weights - alone
        gradient = flat @ pooled.flatten() / n
        return loss / n + ridge * dot(away, away), gradient.add_(away, alpha=2 * ridge)

    p = softmax(scores[0])
    centred = scores - (scores * p).sum(dim=2, keepdim=True)
    hessian = (centred * p).flatten(1) @ centred.flatten(1).T / n
    root = torch.linalg.cholesky(hessian + 2 * ridge * torch.eye(count).to(hessian))

    def newton(gradients: Tensor) -> Tensor:
        return torch.cholesky_solve(gradients.T, root).T

    with one_thread():  # the last bit would depend on the number of threads
        return minimize(objective, alone, newton, max_iterations=100).point
