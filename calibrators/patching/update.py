"""How a patch moves the points of a witness, and how far: f ← Π_simplex(f - η ξ u⃗)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from calibrators.patching.audit import Witness
from calibrators.patching.state import PatchedForecast
from calibrators.patching.utilities import Vectors
from metrics.kernels.compiled import compiled, compiled_sums
from metrics.kernels.projection import project_row, project_rows_torch
from metrics.kernels.threads import over_blocks, row_blocks

GRID = 2.0**40
"""`on_grid` rounds to multiples of 1 / GRID, a distance far above rounding in float64."""

MAX_HALVINGS = 40
ROUNDING = 1e-9
"""Armijo's test allows this share of the predicted decrease less, so rounding does not decide."""


class Step(NamedTuple):
    """A step size η and the change of the summed loss that it brings."""

    size: float
    change: float


class Update(Protocol):
    """How Algorithm 1 moves points and chooses steps; the audits are the same for every update."""

    def loss(self, state: PatchedForecast) -> float:
        """Return the mean loss that every step lowers."""

    def step(
        self, state: PatchedForecast, witness: Witness, rows: Tensor, vectors: Vectors
    ) -> Step | None:
        """Return how far to go (line 8), a positive size; None if no step lowers the loss."""

    def moved(self, state: PatchedForecast, rows: Tensor, vectors: Vectors, step: float) -> Tensor:
        """Return the new probabilities of `rows` after a step along u⃗, of either sign: [k, C].

        It is called for blocks of rows, on threads. Every row depends on itself alone.
        """


@dataclass(frozen=True)
class ProjectedDescent:
    """The paper's update, which lowers the Brier score.

    Args:
        step_size: largest η that the line search tries.
        armijo: share of the linearly predicted decrease of the Brier score that η must achieve.
        theory: take η = err / C (Proposition A.1) without a search.
    """

    step_size: float
    armijo: float = 0.5
    theory: bool = False

    def loss(self, state: PatchedForecast) -> float:
        """Return the Brier score."""
        p, labels = state.probabilities, state.labels[:, None]
        # ‖p - y‖² = ‖p‖² - 2 p_y + 1, which needs no matrix of outcomes.
        return float((p.square().sum(dim=1) - 2 * p.gather(1, labels)[:, 0] + 1).mean())

    def step(
        self, state: PatchedForecast, witness: Witness, rows: Tensor, vectors: Vectors
    ) -> Step | None:
        """Halve η from `first_step` on, or take theory's η."""
        n, classes = state.probabilities.shape

        def try_step(eta: float) -> tuple[float, float]:
            return displacement(state, rows, vectors, -witness.sign * eta)

        if self.theory:
            eta = witness.error / classes
            slope, square = try_step(eta)
            return Step(eta, 2 * slope + square) if 2 * slope + square < 0 else None
        spread = vectors.spread(classes)
        first = first_step(witness.error * n / len(rows), spread, self.step_size)
        return armijo_step(try_step, first, self.armijo)

    def moved(self, state: PatchedForecast, rows: Tensor, vectors: Vectors, step: float) -> Tensor:
        """Return Π_simplex(p + step u⃗) of `rows`."""
        p, order = state.probabilities, state.order
        if rows.device.type != "cpu":
            return _moved_torch(state, rows, vectors, step)
        moved = torch.empty(len(rows), p.shape[1], dtype=p.dtype)
        arrays = (x.numpy() for x in (p, order, rows, vectors.table, vectors.of_row))
        _move_rows(*arrays, vectors.by_rank, step, moved.numpy())
        return moved


def armijo_step(
    try_step: Callable[[float], tuple[float, float]], first: float, armijo: float
) -> Step | None:
    """Halve η, from `first` on, until the Brier score falls by `armijo` of the linear prediction.

    Args:
        try_step: η ↦ (Σ<p - y, d>, Σ‖d‖²) for the displacements d that η brings, after projection.
            The summed Brier score then changes by exactly twice the first plus the second.

    Returns:
        None if no step of 40 halvings lowers the score.
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
    """Return step_size / 2^k, k >= 0, the largest not above four times the best unprojected step.

    Without the simplex's borders the Brier score falls most at η* = mean error / `spread`, with
    `spread` the mean of ‖u⃗ - mean u⃗‖² over the rows, and does not fall beyond 2η*. Borders shorten
    the displacement, therefore the factor is four. Larger steps are not worth a trial.
    """
    if spread <= 0:
        return step_size
    halvings = math.ceil(math.log2(step_size * spread / (4 * error_on_rows)) - ROUNDING)
    return step_size / 2 ** max(0, halvings)


def on_grid(moved: Tensor, before: Tensor) -> Tensor:
    """Return `moved` [n, C], in multiples of 2^-40 in the rows that differ from `before`.

    Projection makes plateaus, entries that are equal except for rounding. The metrics have no
    tolerance, so their ranks and bins would order such entries by the last bit.
    """
    changed = (moved != before).any(dim=1, keepdim=True)
    return torch.where(changed, (moved * GRID).round_().div_(GRID), moved)


def displacement(
    state: PatchedForecast, rows: Tensor, vectors: Vectors, step: float
) -> tuple[float, float]:
    """Return Σ<p - y, d> and Σ‖d‖² over `rows` for d, the displacement by a step along u⃗.

    The sum of Brier scores would change by exactly 2 Σ<p - y, d> + Σ‖d‖².
    """
    if rows.device.type != "cpu":
        before, of_label = state.probabilities[rows], state.labels[rows][:, None]
        d = _moved_torch(state, rows, vectors, step) - before
        return float((d * before).sum() - d.gather(1, of_label).sum()), float(d.square().sum())
    classes, count = state.probabilities.shape[1], len(rows)
    arrays = (state.probabilities, state.order, state.labels, rows, vectors.table, vectors.of_row)
    p, order, labels, chosen, table, of_row = (array.numpy() for array in arrays)
    sums = np.empty((count, 2))

    def work(start: int, stop: int) -> None:
        block = slice(start, stop)
        step_of_rows = table, of_row[block], vectors.by_rank, step
        _try_rows(p, order, labels, chosen[block], *step_of_rows, sums[block])

    over_blocks(work, row_blocks(count, classes))
    slope, square = sums.sum(axis=0)
    return float(slope), float(square)


def _moved_torch(state: PatchedForecast, rows: Tensor, vectors: Vectors, step: float) -> Tensor:
    p = state.probabilities[rows]
    push = step * vectors.table[vectors.of_row]
    if not vectors.by_rank:
        return project_rows_torch(p + push)
    classes = state.order[rows][:, : push.shape[1]].to(torch.int64)
    return project_rows_torch(p.scatter_add(1, classes, push))


@compiled
def _moved_row(p: Any, order: Any, vector: Any, by_rank: bool, step: float, x: Any) -> None:
    """x = projection of p + step · u⃗ onto the simplex."""
    if by_rank:
        for j in range(p.size):
            x[j] = p[j]
        for k in range(vector.size):
            x[order[k]] += step * vector[k]
    else:
        for j in range(p.size):
            x[j] = p[j] + step * vector[j]
    project_row(x)


@compiled
def _move_rows(
    p: Any, order: Any, rows: Any, table: Any, of_row: Any, by_rank: bool, step: float, moved: Any
) -> None:
    for k in range(rows.size):
        _moved_row(p[rows[k]], order[rows[k]], table[of_row[k]], by_rank, step, moved[k])


@compiled_sums
def _displacement(p: Any, x: Any) -> tuple[float, float]:
    """Return <p, x - p> and ‖x - p‖²."""
    slope = square = 0.0
    for j in range(x.size):
        moved = x[j] - p[j]
        slope += moved * p[j]
        square += moved * moved
    return slope, square


@compiled
def _try_rows(
    p: Any,
    order: Any,
    labels: Any,
    rows: Any,
    table: Any,
    of_row: Any,
    by_rank: bool,
    step: float,
    sums: Any,
) -> None:
    x = np.empty(p.shape[1])
    for k in range(rows.size):
        i = rows[k]
        _moved_row(p[i], order[i], table[of_row[k]], by_rank, step, x)
        slope, square = _displacement(p[i], x)
        sums[k, 0] = slope - (x[labels[i]] - p[i, labels[i]])
        sums[k, 1] = square
