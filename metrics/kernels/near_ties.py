"""Rankings that do not hang on the last bit: near-equal neighbours in the order of their class.

On the CPU each probability becomes the number of a cell narrower than the tolerance, so those that
share a cell are tied. One integer holds cell and class, and NumPy's vectorised sort of integers
puts both in order; 32 bits suffice for a tolerance of 2.4e-7 and 1024 classes. What is left are the
borders between cells, where the probabilities tell whether the tie goes on.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrics.kernels.compiled import compiled
from metrics.kernels.threads import over_row_blocks

PACKED = 1 << 16
"""Probabilities that are packed and sorted at a time: their memory stays in the cache."""


def places_of(labels: Tensor, order: Tensor) -> Tensor:
    """Return where each label stands in its row of `order`: int64 [n], 0 if nowhere."""
    return (order == labels[:, None]).to(torch.uint8).argmax(dim=1)


def near_tie_order(probabilities: Tensor, tied: float) -> Tensor:
    """Return the classes of each row in descending order, by number where neighbours are tied.

    Args:
        probabilities: float64 [n, C] in [0, 1], but for rounding.
        tied: > 0; neighbours in descending order that lie no further apart are tied.

    Returns:
        [n, C], int32 on the CPU, int64 elsewhere.
    """
    if probabilities.device.type != "cpu":
        return near_tie_order_torch(probabilities, tied)
    p = probabilities.contiguous().numpy()
    order = np.empty(p.shape, np.int32)
    over_row_blocks(
        lambda start, stop: rank_rows(p[start:stop], tied, order[start:stop]), len(p), p.size
    )
    return torch.from_numpy(order)


def rank_rows(p: NDArray[np.float64], tied: float, order: NDArray[np.int32]) -> None:
    """Write `near_tie_order` of the rows of `p` [n, C] to `order`, on this thread alone."""
    cell_bits, class_bits = bits_of(p.shape[1], tied)
    keys = np.uint32 if cell_bits + class_bits <= 32 else np.uint64
    rows = max(1, min(len(p), PACKED // p.shape[1]))
    packed = np.empty((rows, p.shape[1]), keys)
    for first in range(0, len(p), rows):
        some = p[first : first + rows]
        found = packed[: len(some)]
        pack_cells(some, cell_bits, class_bits, found)
        found.sort(axis=1)
        unpack_order(found, some, tied, class_bits, order[first : first + rows])


def bits_of(classes: int, tied: float) -> tuple[int, int]:
    """Return how many bits number the cells of width 2^-bits < tied, and the classes."""
    return math.floor(-math.log2(tied)) + 1, (classes - 1).bit_length()


def near_tie_order_torch(probabilities: Tensor, tied: float) -> Tensor:
    """`near_tie_order` in plain torch: any device."""
    ranked, order = torch.sort(probabilities, dim=1, descending=True, stable=True)
    starts = torch.nn.functional.pad(ranked[:, :-1] - ranked[:, 1:] > tied, (1, 0))
    # A class keeps its place by the number of its group, so a stable sort by group is enough.
    group = torch.empty_like(order).scatter_(1, order, starts.cumsum(dim=1))
    return group.sort(dim=1, stable=True).indices


@compiled
def pack_cells(p: Any, cell_bits: int, class_bits: int, packed: Any) -> None:
    """Write keys that grow as p falls, from cell to cell, and with the class in each."""
    cells = 2.0**cell_bits
    top = (1 << cell_bits) - 1
    for i in range(p.shape[0]):
        for j in range(p.shape[1]):
            cell = min(max(int(p[i, j] * cells), 0), top)
            packed[i, j] = ((top - cell) << class_bits) | j


@compiled
def unpack_order(packed: Any, p: Any, tied: float, class_bits: int, order: Any) -> None:
    """Write the order of rows from their sorted keys."""
    classes = p.shape[1]
    mask = (np.int64(1) << class_bits) - 1
    starts = np.empty(classes + 1, np.int32)
    for i in range(p.shape[0]):
        groups = cells = 0
        lowest = np.inf
        start = 0
        while start < classes:
            cell = np.int64(packed[i, start]) >> class_bits
            smallest, largest = np.inf, -np.inf
            stop = start
            while stop < classes and np.int64(packed[i, stop]) >> class_bits == cell:
                j = np.int64(packed[i, stop]) & mask
                order[i, stop] = j
                smallest = min(smallest, p[i, j])
                largest = max(largest, p[i, j])
                stop += 1
            if not lowest - largest <= tied:
                starts[groups] = start
                groups += 1
            cells += 1
            lowest = smallest
            start = stop
        if groups < cells:
            starts[groups] = classes
            _order_groups(order[i], starts[: groups + 1])


@compiled
def _order_groups(order: Any, starts: Any) -> None:
    """Put the classes within each group, from one of `starts` to the next, in order."""
    group = np.empty(order.size, np.int32)
    for g in range(starts.size - 1):
        for k in range(starts[g], starts[g + 1]):
            group[order[k]] = g
    for j in range(order.size):
        order[starts[group[j]]] = j
        starts[group[j]] += 1
