"""Pooled scaling: the log-linear pool of temperature scaling and the maps N and B.

    ℓ       ln q, q the temperature-scaled softmax with a share 1/(n + 1) of the uniform forecast
    fit     N and B on all points, and five times without a fifth (`maps.py`)
    pool    p ∝ exp(w_1 ℓ + w_2 N + w_3 B), w by the held-out NLL + 640,000/n³ |w - (1, 0, 0)|²
    choose  the pool, if its held-out NLL is two standard errors below the temperature's

The scores are linear in the parameters, so a pool of maps is again one map.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from calibrators.base import Calibrator
from calibrators.losses import residuals
from calibrators.modules import AffineSoftmax, order_of
from calibrators.patching.tuning import FOLDS, folds_of
from calibrators.pooled.features import TIED, Features
from calibrators.pooled.maps import (
    Data,
    MapPoint,
    identity,
    preconditioner_b,
    preconditioner_n,
    solve,
    widened,
)
from calibrators.solvers.lbfgs import dot, minimize
from calibrators.temperature import TemperatureScaling
from metrics.kernels.softmax import softmax

RIDGE = 640_000.0
"""Times 1/n³, the weight of the squared distance of w from (1, 0, 0): .08 for 200 points."""
NOISE = 2.0
"""Standard errors by which the pool's held-out NLL must be below that of temperature scaling."""
MATRIX_WORK = 2_000_000_000
"""n C² up to which B is a member. Beyond, its fits would take longer than everything else."""


@dataclass(eq=False, repr=False)
class PooledScaling(Calibrator):
    """softmax(W ℓ + a + φ(ℓ) θ), a pool of three maps, or temperature scaling if as good.

    Args:
        seed: of the folds.

    Attributes:
        inverse_temperature_, uniform_share_: 1/T and 1/(n + 1).
        pool_: float64 [3], the weights w of temperature, N and B; [2] without B.
        theta_, shift_, slopes_: float64, the pool's `MapPoint`; empty for temperature scaling.
        gain_, gain_error_: by how much the held-out NLL of the pool is below that of temperature
            scaling, and its standard error.
        cross_fitted: float64 [n, C], the probabilities of the calibration points by maps that were
            fitted without them; it is not saved.
    """

    seed: int = 0

    def _fit(self, logits: Tensor, labels: Tensor) -> None:
        n, classes = logits.shape
        temperature = TemperatureScaling()
        temperature._fit(logits, labels)
        self.inverse_temperature_, self.uniform_share_ = 1 / temperature.temperature_, 1 / (n + 1)
        self.pool_: NDArray[np.float64] = np.ones(1)
        self.theta_ = self.shift_ = self.slopes_ = np.empty(0)
        self.gain_ = self.gain_error_ = 0.0
        self.cross_fitted = softmax(logits, self.inverse_temperature_)
        if n < 2 * FOLDS:
            return
        inputs = log_mixture(logits, self.inverse_temperature_, self.uniform_share_)
        members, held_out = cross_fit(Data(inputs, Features.of(inputs), labels), self.seed)
        weights = pool_weights(held_out, labels)
        pooled = softmax(torch.einsum("m,mnc->nc", weights, held_out))
        at = labels[:, None]
        gains = (pooled.gather(1, at) / self.cross_fitted.gather(1, at)).log()
        self.gain_, self.gain_error_ = float(gains.mean()), float(gains.std()) / n**0.5
        if not self.gain_ > NOISE * self.gain_error_:
            return
        point = MapPoint.of(weights @ members, classes)
        kept = (part.cpu().numpy() for part in (weights, point.theta, point.shift, point.slopes))
        self.pool_, self.theta_, self.shift_, self.slopes_ = kept
        self.cross_fitted = pooled

    def _predict_proba(self, logits: Tensor) -> Tensor:
        if not len(self.theta_):
            return softmax(logits, self.inverse_temperature_)
        inputs = log_mixture(logits, self.inverse_temperature_, self.uniform_share_)
        parts = self.theta_, self.shift_, self.slopes_
        point = MapPoint(*(torch.as_tensor(part, device=logits.device) for part in parts))
        return softmax(point.scores(inputs, Features.of(inputs)))

    def _to_module(self, dtype: torch.dtype) -> nn.Module:
        if not len(self.theta_):
            return AffineSoftmax(self.inverse_temperature_, 0.0, dtype)
        return PooledModule(self, dtype)


class PooledModule(nn.Module):
    """Logits [n, C] to the pool's probabilities [n, C], for `torch.export` and ONNX."""

    def __init__(self, fitted: PooledScaling, dtype: torch.dtype) -> None:
        super().__init__()
        self.beta, self.share = fitted.inverse_temperature_, fitted.uniform_share_
        self.theta = nn.Buffer(torch.tensor(fitted.theta_, dtype=dtype))
        self.shift = nn.Buffer(torch.tensor(fitted.shift_, dtype=dtype))
        self.slopes = nn.Buffer(torch.tensor(fitted.slopes_, dtype=dtype))

    def forward(self, logits: Tensor) -> Tensor:
        """[n, C] -> [n, C]"""
        q = torch.softmax(logits.to(self.shift.dtype) * self.beta, dim=1)
        inputs = (q * (1 - self.share) + self.share / q.shape[1]).log()
        features = Features.of(inputs, order_of(inputs, TIED))
        point = MapPoint(self.theta, self.shift, self.slopes)
        return torch.softmax(point.scores(inputs, features), dim=1)


def log_mixture(logits: Tensor, beta: float, share: float) -> Tensor:
    """Return ℓ = ln((1 - share) softmax(β z) + share / C), float64 [n, C]."""
    q = softmax(logits, beta)
    return q.mul_(1 - share).add_(share / q.shape[1]).log_()


def cross_fit(data: Data, seed: int) -> tuple[Tensor, Tensor]:
    """Return the members, fitted on all points, [M, size], and their held-out scores [M, n, C].

    T is that of all points, because one parameter hardly adapts to a single fifth. So ℓ, the
    features and the preconditioners are computed once. Every fit without a fifth starts at the
    fit to all points.
    """
    n, classes = data.inputs.shape
    start = identity(classes, False, data.inputs.device)
    of_n = preconditioner_n(data)
    fits = [(solve(data, start, of_n), of_n)]
    if n * classes**2 <= MATRIX_WORK:
        of_b = preconditioner_b(data, of_n)
        fits.append((solve(data, widened(fits[0][0], classes), of_b), of_b))
    scores = data.inputs.expand(1 + len(fits), -1, -1).clone()
    for kept, held in folds_of(data.labels, seed):
        fitted, scored = data.rows(kept), data.rows(held)
        for member, (begin, precondition) in enumerate(fits, 1):
            point = MapPoint.of(solve(fitted, begin, precondition), classes)
            scores[member, held] = point.scores(scored.inputs, scored.features)
    members = [start, *(point for point, _ in fits)]
    size = len(members[-1])
    return torch.stack([m if len(m) == size else widened(m, classes) for m in members]), scores


def pool_weights(scores: Tensor, labels: Tensor) -> Tensor:
    """Return the weights [M] of the members with the held-out `scores` [M, n, C]."""
    count, n, _ = scores.shape
    alone, ridge = torch.eye(count).to(scores)[0], RIDGE / n**3

    def objective(weights: Tensor) -> tuple[float, Tensor]:
        pooled = torch.einsum("m,mnc->nc", weights, scores)
        loss = residuals(pooled, labels)  # now `pooled` holds the gradient by the scores
        away = weights - alone
        gradient = torch.einsum("mnc,nc->m", scores, pooled) / n
        return loss / n + ridge * dot(away, away), gradient.add_(away, alpha=2 * ridge)

    p = softmax(scores[0])
    centred = scores - (scores * p).sum(dim=2, keepdim=True)
    hessian = torch.einsum("mnc,knc,nc->mk", centred, centred, p) / n
    root = torch.linalg.cholesky(hessian + 2 * ridge * torch.eye(count).to(hessian))
    newton = lambda gradients: torch.cholesky_solve(gradients.T, root).T  # noqa: E731
    return minimize(objective, alone, newton, max_iterations=100).point
