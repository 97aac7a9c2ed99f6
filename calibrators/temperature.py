"""Temperature scaling, solved exactly (Guo et al. 2017).

softmax(z / T) with the T > 0 that minimises the negative log-likelihood of the calibration data.
In the inverse temperature β = 1/T the problem is convex in one variable, so a safeguarded Newton
iteration reaches the optimum to machine precision; one pass over the logits gives value, slope and
curvature together. `brier_temperature` minimises the Brier score, which is not convex.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor

from calibrators.base import Calibrator
from calibrators.brier_temperature import brier_moments, least_brier
from calibrators.inputs import Inputs
from calibrators.losses import Loss, check_loss
from calibrators.modules import ScaledSoftmax, constant
from calibrators.solvers.root import solve_increasing
from metrics.kernels.compiled import compiled_sums
from metrics.kernels.softmax import exponential, has_kernels, row_weights, softmax
from metrics.kernels.threads import over_blocks, row_blocks

SMALLEST, LARGEST = 1e-6, 1e6
"""Bounds of β times the logits' spread (root mean square of the row-centred logits)."""
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Moments:
    """Weighted means over the rows at one β, with d = z - max z and p = softmax(βz)."""

    log_total: float  # log Σ exp(βd)
    expected: float  # Σ p d
    of_label: float  # d at the label
    variance: float  # Σ p d² - (Σ p d)²: the curvature of the NLL in β
    beta: float

    @property
    def nll(self) -> float:
        return self.log_total - self.beta * self.of_label

    @property
    def slope(self) -> float:
        return self.expected - self.of_label

    @property
    def rounding(self) -> float:
        """The size of slope that rounding alone can produce."""
        return 4 * EPS * (abs(self.expected) + abs(self.of_label))


@dataclass(frozen=True)
class TemperatureFit:
    """The inverse temperature, the loss and the NLL there, and how the search ended."""

    beta: float
    loss: float
    nll: float
    spread: float
    evaluations: int
    outcome: str  # "optimum", "separable", "uninformative", "constant", "bound" or "unconverged"


OUTCOMES = {
    "separable": "the calibration data hold no error, so the likelihood grows without bound as "
    "T -> 0; T was set where the mean NLL is log((n+2)/(n+1))",
    "uninformative": "the logits do not favour the labels on the calibration data, so the best "
    "temperature is infinite; T was set to its upper bound",
    "constant": "the logits are the same for all classes, so every temperature is as good; T = 1",
    "bound": "the best temperature lies outside the bounds; T was set to the nearest bound",
    "unconverged": "Newton's iteration stopped before the slope vanished; check the logits",
}


@compiled_sums
def moment_sums(logits: Any, labels: Any, weights: Any, beta: float, out: Any) -> None:
    """Write the weighted sums over rows of the four `Moments` to `out` [4]."""
    log_total = expected = of_label = variance = 0.0
    for i in range(logits.shape[0]):
        row = logits[i]
        largest = row[0]
        for j in range(row.size):
            largest = max(largest, row[j])
        s0 = s1 = s2 = 0.0
        for j in range(row.size):
            d = np.float64(row[j]) - np.float64(largest)
            weight = exponential(beta * d)
            s0 += weight
            s1 += weight * d
            s2 += weight * d * d
        mean = s1 / s0
        share = weights[i]
        log_total += share * math.log(s0)
        expected += share * mean
        of_label += share * (np.float64(row[labels[i]]) - np.float64(largest))
        variance += share * max(s2 / s0 - mean * mean, 0.0)
    out[0] = log_total
    out[1] = expected
    out[2] = of_label
    out[3] = variance


def moments(logits: Tensor, labels: Tensor, beta: float, weights: Tensor | None = None) -> Moments:
    """Return the `Moments` of `logits` [n, C], `labels`, `weights` [n] at `beta`, in float64."""
    shares = row_weights(weights, logits)
    if has_kernels(logits):
        arrays = [x.contiguous().numpy() for x in (logits, labels, shares)]

        def sums_of(start: int, stop: int) -> NDArray[np.float64]:
            out = np.empty(4)
            moment_sums(*(x[start:stop] for x in arrays), beta, out)
            return out

        parts = over_blocks(sums_of, row_blocks(*logits.shape))
        totals = [math.fsum(part[k] for part in parts) for k in range(4)]
    else:
        totals = _sums_by_torch(logits, labels, shares, beta)
    size = float(shares.sum())
    log_total, expected, of_label, variance = (total / size for total in totals)
    return Moments(log_total, expected, of_label, variance, beta)


def _sums_by_torch(logits: Tensor, labels: Tensor, shares: Tensor, beta: float) -> list[float]:
    """`moment_sums` on any device."""
    totals = torch.zeros(4, dtype=torch.float64, device=logits.device)
    for start, stop in row_blocks(len(logits), logits.shape[1], 1 << 24):
        d = logits[start:stop].double()
        d = d - d.amax(dim=1, keepdim=True)
        weight = torch.exp(beta * d)
        total = weight.sum(dim=1)
        mean = (weight * d).sum(dim=1) / total
        variance = ((weight * d * d).sum(dim=1) / total - mean * mean).clamp_(min=0)
        of_label = d.gather(1, labels[start:stop, None])[:, 0]
        totals += torch.stack([total.log(), mean, of_label, variance]) @ shares[start:stop]
    return list(totals.tolist())


def fit_temperature(
    logits: Tensor, labels: Tensor, loss: Loss = "likelihood", weights: Tensor | None = None
) -> TemperatureFit:
    """Return the exact minimiser of `loss` over β = 1/T for `logits`, `labels`, `weights` [n]."""
    if loss == "likelihood":
        return _fit_likelihood(logits, labels, weights)
    zero = moments(logits, labels, 0.0, weights)
    spread = math.sqrt(zero.variance)
    if spread == 0 or zero.of_label == 0:  # constant, or separable
        begin = _fit_likelihood(logits, labels, weights)
        score = brier_moments(logits, labels, begin.beta, weights).score
        return replace(begin, loss=score, evaluations=begin.evaluations + 2)
    least = least_brier(logits, labels, SMALLEST / spread, LARGEST / spread, weights)
    nll = moments(logits, labels, least.beta, weights).nll
    return TemperatureFit(
        least.beta, least.score, nll, spread, least.evaluations + 2, least.outcome
    )


class _Search:
    """Counts the passes over logits, labels and weights [n], and makes the fit of them."""

    def __init__(self, logits: Tensor, labels: Tensor, weights: Tensor | None) -> None:
        self.logits, self.labels, self.weights = logits, labels, weights
        self.seen: list[Moments] = []
        self.spread = math.sqrt(self.at(0.0).variance)

    def at(self, beta: float) -> Moments:
        """Return the `Moments` at `beta`, by a pass over the logits."""
        self.seen.append(moments(self.logits, self.labels, beta, self.weights))
        return self.seen[-1]

    def slope(self, beta: float) -> tuple[float, float, bool]:
        """Return the NLL's slope for `solve_increasing`."""
        m = self.at(beta)
        return m.slope, m.variance, abs(m.slope) <= m.rounding

    def fit(self, beta: float, outcome: str) -> TemperatureFit:
        """Return the fit that ends at `beta`."""
        nll = next((m.nll for m in self.seen if m.beta == beta), None)
        if nll is None:
            nll = self.at(beta).nll
        return TemperatureFit(beta, nll, nll, self.spread, len(self.seen), outcome)


def _fit_likelihood(
    logits: Tensor, labels: Tensor, weights: Tensor | None = None
) -> TemperatureFit:
    """Return the minimiser of the NLL.

    One pass at β = 0 decides the boundary cases before the iteration. The optimum is zero or less
    if the slope there is not negative, and infinite for separable data.
    """
    search = _Search(logits, labels, weights)
    zero, spread = search.seen[0], search.spread
    if spread == 0:
        return search.fit(1.0, "constant")
    low, high = SMALLEST / spread, LARGEST / spread
    if zero.slope >= -zero.rounding:
        return search.fit(low, "uninformative")
    start = min(max(1.0, 0.1 / spread), 10 / spread)
    if zero.of_label == 0:
        return _fit_separable(search, start, high)
    beta, reached = solve_increasing(search.slope, start, 0.0, high)
    if not low < beta < 0.999 * high:
        return search.fit(min(max(beta, low), high), "bound")
    return search.fit(beta, "optimum" if reached else "unconverged")


def _fit_separable(search: _Search, start: float, high: float) -> TemperatureFit:
    """Return the β at which the mean NLL is log((n+2)/(n+1)); every label has its row's maximum.

    By the rule of succession, n hits in n trials support a confidence of (n+1)/(n+2), and this is
    the NLL of that confidence.
    """
    n = len(search.labels) if search.weights is None else float(search.weights.sum())
    target = math.log((n + 2) / (n + 1))

    def excess(beta: float) -> tuple[float, float, bool]:
        m = search.at(beta)
        if m.nll <= 0:
            return math.inf, 0.0, False
        value = math.log(target / m.nll)
        return value, -m.slope / m.nll, abs(value) < 1e-12

    beta, reached = solve_increasing(excess, start, 0.0, high)
    if reached and beta < 0.999 * high:
        return search.fit(beta, "separable")
    return search.fit(high, "bound")


class TemperatureScaling(Calibrator):
    """softmax(z / T) with the exact maximum-likelihood temperature T > 0 (Guo et al. 2017).

    `loss="brier"` minimises the calibration data's Brier score instead, over all T.

    The inverse temperature lies within 1e-6 and 1e6 divided by the logits' spread (root mean square
    of the row-centred logits), so the result does not depend on the logits' unit. Where no interior
    optimum exists (no errors in the data, logits that do not favour the labels, constant logits) a
    `ConvergenceWarning` says so in one line, and what was returned instead; see `fit_temperature`.

    Parameters
    ----------
    loss : "likelihood" or "brier"
    inputs : "logits" or "probabilities", what X is

    Attributes
    ----------
    temperature_ : float, T
    loss_ : float, the loss on the calibration data, the least over all T
    nll_ : float, mean negative log-likelihood of the calibration data, nats
    outcome_ : str, "optimum" or the boundary case
    n_evaluations_ : int, passes over the logits
    """

    temperature_: float
    loss_: float
    nll_: float
    outcome_: str
    n_evaluations_: int
    takes_weights = True

    def __init__(self, loss: Loss = "likelihood", inputs: Inputs = "logits") -> None:
        self.loss = loss
        self.inputs = inputs

    def _fit(self, logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> None:
        check_loss(self.loss)
        fit = fit_temperature(logits, labels, self.loss, weights)
        if fit.outcome != "optimum":
            message = f"TemperatureScaling: {OUTCOMES[fit.outcome]} (T = {1 / fit.beta:.4g})"
            warnings.warn(message, ConvergenceWarning, stacklevel=3)  # the caller of fit
        self.temperature_ = 1 / fit.beta
        self.loss_, self.nll_ = fit.loss, fit.nll
        self.outcome_ = fit.outcome
        self.n_evaluations_ = fit.evaluations

    def _predict_proba(self, logits: Tensor) -> Tensor:
        return softmax(logits, 1 / self.temperature_)

    def _to_module(self, dtype: torch.dtype) -> ScaledSoftmax:
        return ScaledSoftmax(constant(1 / self.temperature_, dtype), constant(0.0, dtype))
