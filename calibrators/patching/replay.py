"""All fitted patches on new points: every row walks through them by itself, in compiled code.

The same rules as `algorithm.Patch.apply`, without its tensors for each patch: one point takes as
long as its own arithmetic. Rows are ranked only where a patch asks for ranks. For the CPU, and for
payoffs by class or by rank.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from calibrators.patching.state import TIED_RANKS
from metrics.kernels.compiled import compiled, compiled_sums
from metrics.kernels.near_ties import bits_of, pack_cells, unpack_order
from metrics.kernels.projection import project_row
from metrics.kernels.row_sort import sort_keys
from metrics.kernels.threads import over_row_blocks

INSERTIONS = 4
"""A ranking that takes more insertions than this times its length is sorted anew."""


class Patches(NamedTuple):
    """T patches as arrays.

    payoffs: float64 [T, C]; by_rank: bool [T], whether they belong to ranks, not to classes;
    lows, highs, steps: float64 [T], the interval of v and the signed step along the payoff.
    """

    payoffs: NDArray[np.float64]
    by_rank: NDArray[np.bool_]
    lows: NDArray[np.float64]
    highs: NDArray[np.float64]
    steps: NDArray[np.float64]


def replay(probabilities: Tensor, patches: Patches, projected: bool) -> Tensor:
    """Return the patched `probabilities`, float64 [n, C] on the CPU.

    projected: rows move by projection (`update.ProjectedDescent`), else by tilting.
    """
    p = probabilities.clone(memory_format=torch.contiguous_format).numpy()
    classes = p.shape[1]
    pushes = patches.steps[:, None] * patches.payoffs
    if not projected:  # a number common to all classes cancels, but could overflow before
        pushes = np.exp(pushes - pushes.max(axis=1, initial=-np.inf, keepdims=True))
    weights = patches.payoffs.copy()  # of the probabilities, or of the top-K sums
    weights[:, :-1] -= patches.by_rank[:, None] * patches.payoffs[:, 1:]
    spans = _spans(weights)
    given = weights, spans, pushes, *patches[1:4], projected, *bits_of(classes, TIED_RANKS)

    def work(start: int, stop: int) -> None:
        _replay_rows(p[start:stop], *given, TIED_RANKS)

    over_row_blocks(work, len(p), p.size * max(1, len(spans)))
    return torch.from_numpy(p)


def _spans(weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the first nonzero weight and the end of the last one: int64 [T, 2]."""
    given = weights != 0
    first = given.argmax(axis=1)
    last = weights.shape[1] - given[:, ::-1].argmax(axis=1)
    return np.column_stack([first, last])


@compiled_sums
def _predicted(weights: Any, values: Any, first: int, last: int) -> float:
    total = 0.0
    for k in range(first, last):
        total += weights[k] * values[k]
    return total


@compiled_sums
def _normalize(p: Any) -> None:
    total = 0.0
    for j in range(p.size):
        total += p[j]
    for j in range(p.size):
        p[j] /= total


@compiled
def _move_row(p: Any, push: Any, order: Any, by_rank: bool, projected: bool) -> None:
    """Add or multiply `push`, by class or by rank, and return to the simplex."""
    for k in range(p.size):
        j = order[k] if by_rank else k
        if projected:
            p[j] += push[k]
        else:
            p[j] *= push[k]
    if projected:
        project_row(p)
    else:
        _normalize(p)


@compiled
def _insert(keys: Any) -> bool:
    """Sort nearly sorted keys; False, with all of them still there, if they are not."""
    left = INSERTIONS * keys.size
    for k in range(1, keys.size):
        key, place = keys[k], k
        while place > 0 and keys[place - 1] > key:
            keys[place] = keys[place - 1]
            place -= 1
        keys[place] = key
        left -= k - place
        if left < 0:
            return False
    return True


@compiled
def _replay_rows(
    p: Any,
    weights: Any,
    spans: Any,
    pushes: Any,
    by_rank: Any,
    lows: Any,
    highs: Any,
    projected: bool,
    cell_bits: int,
    class_bits: int,
    tied: float,
) -> None:
    n, classes = p.shape
    packed, keys = np.empty((1, classes), np.uint64), np.empty((1, classes), np.uint64)
    order, spare = np.empty((1, classes), np.int32), np.empty((2, classes), np.int32)
    order[0] = np.arange(classes)
    sums = np.empty(classes)
    for i in range(n):
        row = p[i : i + 1]
        is_ranked = False
        for t in range(lows.size):
            if by_rank[t] and not is_ranked:
                pack_cells(row, cell_bits, class_bits, packed)
                for k in range(classes):  # a patch leaves most classes in their order
                    keys[0, k] = packed[0, order[0, k]]
                if not _insert(keys[0]):
                    sort_keys(keys[0], spare[0], packed[0], spare[1])
                unpack_order(keys, row, tied, class_bits, order)
                total = 0.0
                for k in range(classes):
                    total += row[0, order[0, k]]
                    sums[k] = total
                is_ranked = True
            values = sums if by_rank[t] else row[0]
            v = _predicted(weights[t], values, spans[t, 0], spans[t, 1])
            if lows[t] <= v <= highs[t]:
                _move_row(row[0], pushes[t], order[0], by_rank[t], projected)
                is_ranked = False
