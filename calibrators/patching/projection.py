"""Euclidean projection onto the probability simplex, and rows of a forecast after a projected step.

The projection of x is max(x - τ, 0) with τ such that the entries sum to one. Compiled loops on the
CPU go row by row, without intermediate matrices, and find τ by Michelot's active set: start with
all entries, drop those at or below the current τ, repeat. That needs no sort and two to five
passes.

All of this happens on a grid (`metrics.kernels.grid`): the entries, the step along each coordinate
and τ are multiples of 2^-32. Their sums and differences are then exact. So entries that the steps
make equal are equal, on every processor. Otherwise the last bit would decide which of them are
among the K most probable, or which class a user chooses.
"""

from typing import Any

import numpy as np

from utility_calibration.metrics.arrays import Array
from utility_calibration.metrics.kernels.compiled import compiled, compiled_sums
from utility_calibration.metrics.kernels.grid import CELL, SHIFT
from utility_calibration.metrics.kernels.threads import over_blocks, row_blocks

from .state import MOVED_ELEMENTS, PatchedForecast
from .utilities import Vectors


def moved_rows(state: PatchedForecast, rows: Array, vectors: Vectors, step: float) -> Array:
    """Return Π_simplex(p + step u⃗) of k `rows`, in multiples of 2^-32: float64 [k, C]."""
    p = state.probabilities
    moved = np.empty((len(rows), p.shape[1]))
    _move_rows(*_arrays(state, rows, vectors), step, moved)
    return moved


def displacement(
    state: PatchedForecast, rows: Array, vectors: Vectors, step: float
) -> tuple[float, float]:
    """Return Σ w <p - y, d> and Σ w ‖d‖² over `rows`, where d are the displacements by a step.

    The weighted sum of Brier scores would change by exactly 2 Σ w <p - y, d> + Σ w ‖d‖².
    """
    sums, labels = np.empty((len(rows), 2)), state.labels

    def work(start: int, stop: int) -> None:
        block = slice(start, stop)
        arrays = _arrays(state, rows[block], vectors.of(block))
        _try_rows(*arrays, step, labels, sums[block])

    over_blocks(work, row_blocks(len(rows), state.probabilities.shape[1], MOVED_ELEMENTS))
    sums *= state.shares[rows, None]
    slope, square = sums.sum(axis=0)
    return float(slope), float(square)


def _arrays(state: PatchedForecast, rows: Array, vectors: Vectors) -> list[Any]:
    """Return the first arguments of the kernels."""
    table = np.ascontiguousarray(vectors.table)
    return [state.probabilities, state.order, rows, table, vectors.by_rank]


@compiled_sums
def project_row(x: Any) -> None:
    """Project `x` [C], multiples of 2^-32, in place; they then sum to one up to C times as much.

    Sums may be reordered into vector lanes: no branch, no infinity.
    """
    active = x.size
    total = 0.0
    for j in range(x.size):
        total += x[j]
    tau = np.floor((total - 1.0) / active / CELL) * CELL
    while True:
        total = 0.0
        remaining = 0
        for j in range(x.size):
            above = x[j] > tau
            total += x[j] if above else 0.0
            remaining += above
        # τ grows from pass to pass, so the active set only shrinks. Rounding can break that by an
        # ulp (hence >=), and can make all entries equal to τ (hence 0).
        if remaining >= active or remaining == 0:
            break
        active = remaining
        tau = np.floor((total - 1.0) / active / CELL) * CELL
    for j in range(x.size):
        x[j] = max(x[j] - tau, 0.0)


@compiled
def _move_row(p: Any, order: Any, vector: Any, by_rank: bool, step: float, moved: Any) -> None:
    for k in range(p.size):
        moved[k] = (p[k] + SHIFT) - SHIFT  # `grid.on_grid`
    for k in range(vector.size):
        moved[order[k] if by_rank else k] += (step * vector[k] + SHIFT) - SHIFT
    project_row(moved)


@compiled
def _move_rows(
    p: Any, order: Any, rows: Any, table: Any, by_rank: bool, step: float, moved: Any
) -> None:
    """Write `moved` [k, C] of k `rows`."""
    for k, i in enumerate(rows):
        _move_row(p[i], order[i], table[k % len(table)], by_rank, step, moved[k])


@compiled
def _try_rows(
    p: Any, order: Any, rows: Any, table: Any, by_rank: bool, step: float, labels: Any, sums: Any
) -> None:
    """Write <p - y, d> and ‖d‖² of each of k `rows`, [k, 2], where d is its displacement."""
    moved = np.empty(p.shape[1])
    for k, i in enumerate(rows):
        _move_row(p[i], order[i], table[k % len(table)], by_rank, step, moved)
        slope, square = _displacement(p[i], moved)
        sums[k, 0] = slope - (moved[labels[i]] - p[i, labels[i]])
        sums[k, 1] = square


@compiled_sums
def _displacement(p: Any, moved: Any) -> tuple[float, float]:
    """Return <p, d> and ‖d‖² of a row."""
    slope = square = 0.0
    for j in range(p.size):
        d = moved[j] - p[j]
        slope += d * p[j]
        square += d * d
    return slope, square
