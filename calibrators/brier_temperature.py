"""The temperature of least Brier score, over all temperatures.

The Brier score B(β) of softmax(βz), β = 1/T, is smooth but not convex, and may have several minima.
In log β it is a mean of bumps and slopes, one for each row and class, each at least about a factor
of e wide. So B is computed on a grid by factors of two over twelve powers of ten, from at most
`SCANNED` logits. Newton's iteration then descends, on all rows, from every grid point that lies
below its neighbours, and the lowest minimum wins.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from calibrators.solvers.root import solve_increasing
from metrics.kernels.softmax import row_weights
from metrics.kernels.threads import row_blocks

EPS = float(np.finfo(np.float64).eps)
SCANNED = 1 << 18
"""From twice this many logits on, the grid is computed from every second row, or fewer."""
BLOCK = 1 << 18
"""Logits of a block, whose copies in float64 stay in the cache."""


class BrierMoments(NamedTuple):
    """B(β), its first two derivatives, and the size of slope that rounding alone can produce."""

    score: float
    slope: float
    curvature: float
    rounding: float


def _terms(logits: Tensor, labels: Tensor, beta: float) -> Tensor:
    """Return score, slope, curvature and the size of the slope's terms of every row: [4, n].

    With d = z - max z, p = softmax(βd), m = Σ p d, v = Σ p d² - m² and q_k = Σ p² d^k, y the label:
    score q_0 - 2 p_y + 1, half the slope q_1 - m q_0 - p_y (d_y - m), half the curvature
    2 (q_2 - 2 m q_1 + m² q_0) - v q_0 - p_y ((d_y - m)² - v).
    """
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
    shares = row_weights(weights, logits)
    totals = torch.zeros(4, dtype=torch.float64, device=logits.device)
    for start, stop in row_blocks(len(logits), logits.shape[1], BLOCK):
        rows = slice(start, stop)
        totals += _terms(logits[rows], labels[rows], beta) @ shares[rows]
    score, slope, curvature, size = (totals / shares.sum()).tolist()
    return BrierMoments(score, slope, curvature, 4 * EPS * size)


@dataclass(frozen=True)
class LeastBrier:
    """The best β, B there, the passes over the logits, and an outcome of `TemperatureFit`."""

    beta: float
    score: float
    evaluations: int
    outcome: str


def least_brier(
    logits: Tensor, labels: Tensor, low: float, high: float, weights: Tensor | None = None
) -> LeastBrier:
    """Return the β in [low, high] of least Brier score for `logits`, `labels`, `weights` [n].

    The outcome is "uninformative" at the low end of the range and "bound" at the high end, where
    the score is least there.
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
    scanned = slice(None, None, max(1, logits.numel() // SCANNED))
    shares = None if weights is None else weights[scanned]
    sample = logits[scanned], labels[scanned]
    scores = [brier_moments(*sample, beta, shares).score for beta in grid]
    ends = {low: "uninformative", high: "bound"}
    best = min(ends, key=lambda beta: at(beta).score)
    outcome = ends[best]
    for i in range(1, len(grid) - 1):
        if scores[i - 1] > scores[i] <= scores[i + 1]:
            beta, reached = solve_increasing(slope, grid[i], grid[i - 1], grid[i + 1])
            if at(beta).score < at(best).score:
                best, outcome = beta, "optimum" if reached else "unconverged"
    return LeastBrier(best, at(best).score, len(grid) + len(seen), outcome)
