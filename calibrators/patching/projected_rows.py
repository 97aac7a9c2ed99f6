"""Rows of a forecast after a step along u⃗ and the projection onto the simplex.

On the CPU compiled loops do it row by row, without intermediate matrices. Elsewhere torch does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from calibrators.patching.projection import project_row, project_rows_torch
from calibrators.patching.state import MOVED_ELEMENTS, PatchedForecast
from calibrators.patching.utilities import Vectors
from metrics.kernels.compiled import compiled, compiled_sums
from metrics.kernels.threads import over_blocks, row_blocks


def moved_rows(state: PatchedForecast, rows: Tensor, vectors: Vectors, step: float) -> Tensor:
    """Return Π_simplex(p + step u⃗) of k `rows`: float64 [k, C]."""
    if not state.on_cpu:
        return _moved_torch(state, rows, vectors, step)
    moved = state.probabilities.new_empty(len(rows), state.probabilities.shape[1])
    _move_rows(*_arrays(state, rows, vectors), vectors.by_rank, step, moved.numpy())
    return moved


def displacement(
    state: PatchedForecast, rows: Tensor, vectors: Vectors, step: float
) -> tuple[float, float]:
    """Return Σ<p - y, d> and Σ‖d‖² over `rows`, where d are the displacements by a step.

    The sum of Brier scores would change by exactly 2 Σ<p - y, d> + Σ‖d‖².
    """
    if not state.on_cpu:
        p = state.probabilities[rows]
        d = _moved_torch(state, rows, vectors, step) - p
        of_label = d.gather(1, state.labels[rows, None])
        return float((d * p).sum() - of_label.sum()), float(d.square().sum())
    sums, labels = np.empty((len(rows), 2)), state.labels.numpy()

    def work(start: int, stop: int) -> None:
        block = slice(start, stop)
        given = _arrays(state, rows[block], vectors.of(block))
        _try_rows(*given, vectors.by_rank, step, labels, sums[block])

    over_blocks(work, row_blocks(len(rows), state.probabilities.shape[1], MOVED_ELEMENTS))
    slope, square = sums.sum(axis=0)
    return float(slope), float(square)


def _moved_torch(state: PatchedForecast, rows: Tensor, vectors: Vectors, step: float) -> Tensor:
    """`moved_rows` in plain torch: any device; the reference for the compiled one."""
    p = state.probabilities[rows]
    push = step * vectors.table
    if not vectors.by_rank:
        return project_rows_torch(p + push)
    classes = state.order[rows, : push.shape[1]].to(torch.int64)
    return project_rows_torch(p.scatter_add(1, classes, push.expand(len(p), -1)))


def _arrays(state: PatchedForecast, rows: Tensor, vectors: Vectors) -> list[NDArray[Any]]:
    """Return the first arguments of the kernels below."""
    tensors = state.probabilities, state.order, rows, vectors.table
    return [tensor.numpy() for tensor in tensors]


@compiled
def _move_row(p: Any, order: Any, vector: Any, by_rank: bool, step: float, moved: Any) -> None:
    """Write the projection of p + step u⃗ onto the simplex."""
    moved[:] = p
    for k in range(vector.size):
        moved[order[k] if by_rank else k] += step * vector[k]
    project_row(moved)


@compiled
def _move_rows(
    p: Any, order: Any, rows: Any, table: Any, by_rank: bool, step: float, moved: Any
) -> None:
    """Write `moved` [k, C] of k `rows`; the arguments are those of `_arrays`."""
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
