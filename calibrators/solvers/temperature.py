"""The temperature of least loss: softmax(z / T) with T > 0, solved exactly.

The unknown is the inverse temperature β = 1/T. One pass over the logits gives the loss with its
slope and curvature. Safeguarded Newton steps end where the slope is zero to machine precision.

The negative log-likelihood is convex in β. The Brier score of softmax(βz) is smooth but may have
several minima. As a function of log β it is a mean of bumps and slopes, one for each row and class,
each at least about a factor of e wide. So it is computed on a grid of powers of two over twelve
powers of ten, from a sample of rows (`SCANNED`). Newton's iteration then descends, on all rows,
from every grid point whose score is below its neighbours'. The lowest minimum is the result.
"""

import math
from dataclasses import dataclass

import numpy as np

from utility_calibration.metrics.arrays import Array

from ..extremes import row_extremes
from ..losses import Loss
from .moments import Moments, moments
from .root import solve_increasing

SMALLEST, LARGEST = 1e-6, 1e6
"""Bounds of β times the logits' spread (root mean square of the row-centred logits)."""
FIRST_ROWS = 500
"""Of four times so many rows or more, Newton's iteration first takes every k-th, with the largest k
that leaves so many. It then takes 5 to 7 passes over all rows in place of 6 to 9: ten fits to 7,000
points of 10 and of 100 classes."""
SCANNED = 1 << 18
"""The grid is computed from every k-th row, with the largest k that leaves so many logits."""


@dataclass(frozen=True)
class TemperatureFit:
    """The best inverse temperature, its loss and its NLL, and how the search ended.

    spread: root mean square of the row-centred logits.
    """

    beta: float
    loss: float
    nll: float
    spread: float
    evaluations: int
    outcome: str  # "optimum", or a key of `OUTCOMES`


OUTCOMES = {
    "separable": "all calibration points are classified right, so the loss falls without end as "
    "T -> 0; T was set where the mean NLL is log((n+2)/(n+1))",
    "uninformative": "the logits do not favour the true classes of the calibration points, so the "
    "best temperature is infinite; T was set to its upper bound",
    "constant": "the logits are the same for all classes, so every temperature is as good; T = 1",
    "bound": "the best temperature lies outside the bounds; T was set to the nearest bound",
    "unconverged": "the fit stopped before the best temperature was found; check the logits",
}


class Passes:
    """The moments of a data set at any β. Each is computed once, by a pass over the logits."""

    def __init__(self, logits: Array, labels: Array, loss: Loss, weights: Array | None) -> None:
        self.logits, self.labels, self.loss, self.weights = logits, labels, loss, weights
        self.seen: dict[tuple[float, Loss], Moments] = {}

    def at(self, beta: float, loss: Loss | None = None) -> Moments:
        """Return the moments of `loss`, by default of the loss that is minimised."""
        key = beta, loss or self.loss
        if key not in self.seen:
            self.seen[key] = moments(self.logits, self.labels, *key, self.weights)
        return self.seen[key]

    def of_every(self, step: int) -> "Passes":
        """Return those of every `step`-th row."""
        weights = None if self.weights is None else self.weights[::step]
        logits = np.ascontiguousarray(self.logits[::step])
        return Passes(logits, self.labels[::step], self.loss, weights)

    def slope(self, beta: float) -> tuple[float, float, bool]:
        """Return slope and curvature for `solve_increasing`, and whether the slope is zero."""
        m = self.at(beta)
        return m.slope, m.curvature, abs(m.slope) <= m.rounding


def fit_temperature(
    logits: Array, labels: Array, loss: Loss = "nll", weights: Array | None = None
) -> TemperatureFit:
    """Return the exact minimiser of `loss` over β = 1/T for `logits`, `labels`, `weights` [n].

    Two boundary cases are recognised before the iteration: constant logits, by a pass at β = 0, and
    separable data, by the labels. The likelihood of separable data is best at β = ∞.
    """
    passes = Passes(logits, labels, loss, weights)
    spread = math.sqrt(passes.at(0.0, "nll").curvature)
    of_label = logits[np.arange(len(logits)), labels]
    if spread == 0:
        beta, outcome = 1.0, "constant"
    elif bool((of_label == row_extremes(logits)[1]).all()):
        beta, outcome = _separable(passes, spread)
    elif loss == "brier":
        beta, outcome = least_brier(passes, SMALLEST / spread, LARGEST / spread)
    else:
        beta, outcome = _least_nll(passes, spread)
    least, nll = passes.at(beta).loss, passes.at(beta, "nll").loss
    return TemperatureFit(beta, least, nll, spread, len(passes.seen), outcome)


def _first_beta(spread: float) -> float:
    return min(max(1.0, 0.1 / spread), 10 / spread)


def _least_nll(passes: Passes, spread: float) -> tuple[float, str]:
    """Return the β of least NLL and the outcome; the smallest β if the loss rises from 0 on."""
    low, high = SMALLEST / spread, LARGEST / spread
    zero = passes.at(0.0)
    if zero.slope >= -zero.rounding:
        return low, "uninformative"
    first = _first_beta(spread)
    step = len(passes.labels) // FIRST_ROWS
    if step >= 4:
        near, reached = solve_increasing(passes.of_every(step).slope, first, 0.0, high)
        first = near if reached else first
    beta, reached = solve_increasing(passes.slope, first, 0.0, high)
    if not low < beta < 0.999 * high:
        return min(max(beta, low), high), "bound"
    return beta, "optimum" if reached else "unconverged"


def _separable(passes: Passes, spread: float) -> tuple[float, str]:
    """Return the β at which the mean NLL is log((n+2)/(n+1)), for data without an error.

    This is the NLL of the confidence (n+1)/(n+2), which n hits in n trials support by the rule of
    succession.
    """
    high = LARGEST / spread
    n = len(passes.labels) if passes.weights is None else float(passes.weights.sum())
    target = math.log1p(1 / (n + 1))  # also of weights whose sum has no room for the 1

    def excess(beta: float) -> tuple[float, float, bool]:
        m = passes.at(beta, "nll")
        if m.loss <= 0:
            return math.inf, 0.0, False
        value = math.log(target / m.loss)
        return value, -m.slope / m.loss, abs(value) < 1e-12

    beta, reached = solve_increasing(excess, _first_beta(spread), 0.0, high)
    return (beta, "separable") if reached and beta < 0.999 * high else (high, "bound")


def least_brier(passes: Passes, low: float, high: float) -> tuple[float, str]:
    """Return the β in [low, high] of least Brier score and the outcome.

    The outcome is "uninformative" if the score is least at the low end of the range, and "bound" if
    it is least at the high end.
    """
    grid = np.geomspace(low, high, math.ceil(math.log2(high / low)) + 1).tolist()
    sample = passes.of_every(max(1, passes.logits.size // SCANNED))
    scores = [sample.at(beta).loss for beta in grid]
    ends = {low: "uninformative", high: "bound"}
    best = min(ends, key=lambda beta: passes.at(beta).loss)
    outcome = ends[best]
    for i in range(1, len(grid) - 1):
        if scores[i - 1] > scores[i] <= scores[i + 1]:
            beta, reached = solve_increasing(passes.slope, grid[i], grid[i - 1], grid[i + 1])
            if passes.at(beta).loss < passes.at(best).loss:
                best, outcome = beta, "optimum" if reached else "unconverged"
    return best, outcome
