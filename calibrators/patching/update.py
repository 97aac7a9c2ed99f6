"""How a patch moves the points of a witness, and how far: f ← Π_simplex(f - η ξ u⃗)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from calibrators.patching.audit import Witness
from calibrators.patching.state import MOVED_ELEMENTS, PatchedForecast
from calibrators.patching.utilities import Vectors
from metrics.kernels.compiled import compiled
from metrics.kernels.projection import project_row, project_rows_torch
from metrics.kernels.threads import over_blocks, row_blocks

GRID = 2.0**40
"""`on_grid` rounds to multiples of 1 / GRID, which is far above rounding errors in float64."""

MAX_HALVINGS = 40
ROUNDING = 1e-9
"""Armijo's test accepts decreases that are too small by this share, so rounding does not decide."""


class Step(NamedTuple):
    """A step size η and the change of the summed loss that it brings."""

    size: float
    change: float


class Update(Protocol):
    """How Algorithm 1 moves points and chooses steps; the audits are the same for every update."""

    def loss(self, state: PatchedForecast) -> float:
        """Return the mean loss that every step lowers."""

    def step(self, state: PatchedForecast, witness: Witness, vectors: Vectors) -> Step | None:
        """Return the step η > 0 (line 8) and its change; None if no step lowers the loss."""

    def moved(self, state: PatchedForecast, rows: Tensor, vectors: Vectors, step: float) -> Tensor:
        """Return the new probabilities of `rows` after a step along u⃗, of either sign: [k, C].

        Threads call it for blocks of rows. The result of a row depends on that row alone.
        """


@dataclass(frozen=True)
class ProjectedDescent:
    """The paper's update, which lowers the Brier score.

    Args:
        step_size: largest η that the line search tries.
        armijo: share of the linearly predicted decrease of the Brier score that η must achieve.
        theory: whether to take η = err / C (Proposition A.1) without a search.
    """

    step_size: float
    armijo: float = 0.5
    theory: bool = False

    def loss(self, state: PatchedForecast) -> float:
        """Return the Brier score."""
        return float(state.losses("brier").mean())

    def step(self, state: PatchedForecast, witness: Witness, vectors: Vectors) -> Step | None:
        """Halve η from `first_step` on, or take theory's η."""
        n, classes = state.probabilities.shape

        def try_step(eta: float) -> tuple[float, float]:
            return self.displacement(state, witness.rows, vectors, -witness.sign * eta)

        if self.theory:
            eta = witness.error / classes
            slope, square = try_step(eta)
            return Step(eta, 2 * slope + square) if 2 * slope + square < 0 else None
        spread = vectors.spread(classes)
        first = first_step(witness.error * n / len(witness.rows), spread, self.step_size)
        return armijo_step(try_step, first, self.armijo)

    def moved(self, state: PatchedForecast, rows: Tensor, vectors: Vectors, step: float) -> Tensor:
        """Return Π_simplex(p + step u⃗) of `rows`."""
        p = state.probabilities[rows]
        push = step * vectors.table
        if vectors.by_rank:
            classes = state.order[rows, : push.shape[1]].to(torch.int64)
            p.scatter_add_(1, classes, push.expand(len(p), -1))
        else:
            p += push
        if p.device.type != "cpu":
            return project_rows_torch(p)
        _project_rows(p.numpy())
        return p

    def displacement(
        self, state: PatchedForecast, rows: Tensor, vectors: Vectors, step: float
    ) -> tuple[float, float]:
        """Return Σ<p - y, d> and Σ‖d‖² over `rows`, where d are the displacements by a step.

        The sum of Brier scores would change by exactly 2 Σ<p - y, d> + Σ‖d‖².
        """

        def sums_of_rows(start: int, stop: int) -> Tensor:
            block = slice(start, stop)
            p = state.probabilities[rows[block]]
            d = self.moved(state, rows[block], vectors.of(block), step).sub_(p)
            of_label = d.gather(1, state.labels[rows[block], None])[:, 0]
            vecdot = torch.linalg.vecdot
            return torch.stack([vecdot(d, p) - of_label, vecdot(d, d)])

        blocks = row_blocks(len(rows), state.probabilities.shape[1], MOVED_ELEMENTS)
        # NumPy's sum, because the last bit of torch's depends on the number of threads.
        sums = torch.cat(over_blocks(sums_of_rows, blocks), dim=1).cpu().numpy()
        slope, square = sums.sum(axis=1)
        return float(slope), float(square)


def armijo_step(
    try_step: Callable[[float], tuple[float, float]], first: float, armijo: float
) -> Step | None:
    """Halve η, from `first` on, until the Brier score falls by `armijo` of the linear prediction.

    Args:
        try_step: maps η to (Σ<p - y, d>, Σ‖d‖²), where d are the displacements after projection.
            The summed Brier score then changes by exactly twice the first plus the second.

    Returns:
        The step, or None if none of `MAX_HALVINGS` steps lowers the score enough.
    """
    eta = first
    for _ in range(MAX_HALVINGS):
        slope, square = try_step(eta)
        change = 2 * slope + square
        # Projection bends the path, so the decrease is measured against the displacement itself.
        if slope < 0 and change <= (armijo - ROUNDING) * 2 * slope:
            return Step(eta, change)
        eta /= 2
    return None


def first_step(error_on_rows: float, spread: float, step_size: float) -> float:
    """Return the largest step_size / 2^k, k >= 0, up to four times the best unprojected step.

    `spread` is the mean of ‖u⃗ - mean u⃗‖² over the rows. Without the simplex's borders the Brier
    score would fall most at η* = mean error / `spread`, and would not fall beyond 2η*. Borders
    shorten the displacement, so the factor is four. Larger steps are not worth a trial.
    """
    if spread <= 0:
        return step_size
    halvings = math.ceil(math.log2(step_size * spread / (4 * error_on_rows)) - ROUNDING)
    return step_size / 2 ** max(0, halvings)


def on_grid(moved: Tensor, before: Tensor) -> Tensor:
    """Return `moved` [n, C], with rows that differ from `before` rounded to multiples of 2^-40.

    Projection makes plateaus of entries that are equal except for rounding. The metrics have no
    tolerance, so their ranks and bins would order such entries by the last bit.
    """
    changed = (moved != before).any(dim=1, keepdim=True)
    return torch.where(changed, (moved * GRID).round_().div_(GRID), moved)


@compiled
def _project_rows(points: Any) -> None:
    for k in range(points.shape[0]):
        project_row(points[k])
