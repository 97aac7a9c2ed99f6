"""The temperature of least Brier score, over all temperatures.

The Brier score B(β) of softmax(βz), β = 1/T, is smooth but not convex, and may have several minima.
In log β it is a mean of bumps and slopes, one for each row and class, each at least about a factor
of e wide. So B is read off on a grid by factors of two over twelve powers of ten, Newton's
iteration descends from every grid point that lies below its neighbours, and the lowest end wins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from calibrators.row_means import row_means
from calibrators.solvers.root import solve_increasing
from metrics.kernels.compiled import compiled_sums
from metrics.kernels.softmax import exponential

EPS = float(np.finfo(np.float64).eps)


class BrierMoments(NamedTuple):
    """B(β), its first two derivatives, and the size of slope that rounding alone can produce."""

    score: float
    slope: float
    curvature: float
    rounding: float


@compiled_sums
def brier_sums(logits: Any, labels: Any, weights: Any, beta: float, out: Any) -> None:
    """Write to `out` [4] the weighted sums over rows of score, slope, curvature, the slope's terms.

    With d = z - max z, p = softmax(βd), m = Σ p d, v = Σ p d² - m² and q_k = Σ p² d^k, y the label:
    score q_0 - 2 p_y + 1, half the slope q_1 - m q_0 - p_y (d_y - m), half the curvature
    2 (q_2 - 2 m q_1 + m² q_0) - v q_0 - p_y ((d_y - m)² - v).
    """
    score = slope = curvature = size = 0.0
    for i in range(logits.shape[0]):
        row = logits[i]
        largest = row[0]
        for j in range(row.size):
            largest = max(largest, row[j])
        s0 = s1 = s2 = t0 = t1 = t2 = 0.0
        for j in range(row.size):
            d = np.float64(row[j]) - np.float64(largest)
            weight = exponential(beta * d)
            s0 += weight
            s1 += weight * d
            s2 += weight * d * d
            square = weight * weight
            t0 += square
            t1 += square * d
            t2 += square * d * d
        m = s1 / s0
        v = s2 / s0 - m * m
        norm = s0 * s0
        q0, q1, q2 = t0 / norm, t1 / norm, t2 / norm
        of_label = np.float64(row[labels[i]]) - np.float64(largest)
        p = exponential(beta * of_label) / s0
        away = of_label - m
        share = weights[i]
        score += share * (q0 - 2.0 * p + 1.0)
        slope += share * (2.0 * (q1 - m * q0 - p * away))
        curved = 2.0 * (q2 - 2.0 * m * q1 + m * m * q0) - v * q0 - p * (away * away - v)
        curvature += share * (2.0 * curved)
        size += share * (2.0 * (abs(q1) + abs(m * q0) + abs(p * away)))
    out[0] = score
    out[1] = slope
    out[2] = curvature
    out[3] = size


def _brier_sums_torch(logits: Tensor, labels: Tensor, beta: float) -> Tensor:
    """The terms of `brier_sums` row by row, on any device: float64 [4, n]."""
    d = logits.double()
    d = d - d.amax(dim=1, keepdim=True)
    p = torch.softmax(beta * d, dim=1)
    m = (p * d).sum(dim=1)
    v = (p * d * d).sum(dim=1) - m * m
    squares = p * p
    q0, q1, q2 = squares.sum(dim=1), (squares * d).sum(dim=1), (squares * d * d).sum(dim=1)
    at = labels[:, None]
    p_label, away = p.gather(1, at)[:, 0], d.gather(1, at)[:, 0] - m
    score = q0 - 2 * p_label + 1
    slope = 2 * (q1 - m * q0 - p_label * away)
    curved = 2 * (q2 - 2 * m * q1 + m * m * q0) - v * q0 - p_label * (away * away - v)
    size = 2 * (q1.abs() + (m * q0).abs() + (p_label * away).abs())
    return torch.stack([score, slope, 2 * curved, size])


def brier_moments(
    logits: Tensor, labels: Tensor, beta: float, weights: Tensor | None = None
) -> BrierMoments:
    """Return the `BrierMoments` of `logits` [n, C], `labels`, `weights` [n] at `beta`, float64."""
    means = row_means(brier_sums, _brier_sums_torch, logits, labels, beta, weights)
    score, slope, curvature, size = means
    return BrierMoments(score, slope, curvature, 4 * EPS * size)


@dataclass(frozen=True)
class LeastBrier:
    """The β found, B there, the passes over the logits, and an outcome of `TemperatureFit`."""

    beta: float
    score: float
    evaluations: int
    outcome: str


def least_brier(
    logits: Tensor, labels: Tensor, low: float, high: float, weights: Tensor | None = None
) -> LeastBrier:
    """Return the β in [low, high] of least Brier score for `logits`, `labels`, `weights` [n].

    At an end of the range where the score only falls towards it: "uninformative" (the low end) or
    "bound".
    """
    seen: dict[float, BrierMoments] = {}

    def at(beta: float) -> BrierMoments:
        if beta not in seen:
            seen[beta] = brier_moments(logits, labels, beta, weights)
        return seen[beta]

    def slope(beta: float) -> tuple[float, float, bool]:
        m = at(beta)
        return m.slope, m.curvature, abs(m.slope) <= m.rounding

    grid = np.geomspace(low, high, math.ceil(math.log2(high / low)) + 1).tolist()
    scores = [at(beta).score for beta in grid]
    ends = {low: "uninformative", high: "bound"}
    best = min(ends, key=lambda beta: at(beta).score)
    outcome = ends[best]
    for i in range(1, len(grid) - 1):
        if scores[i - 1] > scores[i] <= scores[i + 1]:
            beta, reached = solve_increasing(slope, grid[i], grid[i - 1], grid[i + 1])
            if at(beta).score < at(best).score:
                best, outcome = beta, "optimum" if reached else "unconverged"
    return LeastBrier(best, at(best).score, len(seen), outcome)
