"""Rankings of the classes in every row of a matrix: in descending order, ties by class number.

On the CPU each value becomes a 64-bit key whose unsigned order is the descending order of the
doubles. The lowest bits of the keys give way to the class number, and NumPy's vectorised sort of
integers carries it along. The few rows with values that differ only in the lost bits are then
sorted again, as doubles.

Where neighbours within a distance are tied, their order among themselves is not needed. Values are
then put into cells that are a little narrower than that distance, and cells and class numbers are
sorted together as short integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .buckets import ALL_BUT_SIGN
from .compiled import compiled
from .threads import over_blocks, row_blocks

PACKED = 1 << 16
"""Elements that are packed and sorted at a time, so that their memory stays in the cache."""
CELLS = 1.02
"""Cells per distance that is tied: a little more than one, so that rounding unties no cell."""
FEW = 20
"""Classes that are sorted by insertion; more are marked and then read in order."""
MOST_SORTED = 400
"""Columns of a matrix up to which all are sorted where only the largest are needed."""
NEGATIVE_ZERO = np.int64(-(1 << 63))
SHORT, WIDE = 32, 62
"""Bits of a cell's number and the class number together, in one unsigned or signed integer."""


def descending_order(matrix: Tensor, tied: float = 0.0) -> Tensor:
    """Return the classes of each row in descending order, by number where neighbours are tied.

    Args:
        matrix: float64 [n, C].
        tied: neighbours in descending order that lie no further apart are tied.

    Returns:
        [n, C], int32 on the CPU, int64 elsewhere.
    """
    if matrix.device.type != "cpu":
        return descending_order_torch(matrix, tied)
    values = matrix.contiguous().numpy()
    order = np.empty(values.shape, np.int32)

    def work(start: int, stop: int) -> None:
        _rank_rows(values[start:stop], tied, order[start:stop])

    over_blocks(work, row_blocks(len(values), values.shape[1], PACKED))
    return torch.from_numpy(order)


def descending_order_torch(matrix: Tensor, tied: float) -> Tensor:
    """`descending_order` in plain torch: any device."""
    ranked, order = torch.sort(matrix, dim=1, descending=True, stable=True)
    if not tied:
        return order
    starts = torch.nn.functional.pad(ranked[:, :-1] - ranked[:, 1:] > tied, (1, 0))
    # A class keeps its place by the number of its group, so a stable sort by group is enough.
    group = torch.empty_like(order).scatter_(1, order, starts.cumsum(dim=1))
    return group.sort(dim=1, stable=True).indices


def _rank_rows(values: NDArray[np.float64], tied: float, order: NDArray[np.int32]) -> None:
    """Write `descending_order` of the rows of `values` [n, C] to `order`, on this thread alone."""
    bits = (values.shape[1] - 1).bit_length()
    if not tied:
        mask = np.uint64((1 << bits) - 1)
        packed, is_sorted = np.empty(values.shape, np.uint64), np.empty(len(values), np.bool_)
        _pack(values.view(np.int64), mask, packed)
        packed.sort(axis=1)
        _unpack(packed, mask, values, order, is_sorted)
        if not is_sorted.all():
            order[~is_sorted] = np.argsort(-values[~is_sorted], axis=1, kind="stable")
        return
    scale, smallest = CELLS / tied, float(values.min())
    last = (float(values.max()) - smallest) * scale + 1
    if not last < 1 << (WIDE - bits):
        order[:] = descending_order_torch(torch.from_numpy(values), tied).numpy()
        return
    is_short = last < 1 << (SHORT - bits)
    cells = np.empty(values.shape, np.uint32 if is_short else np.int64)
    _pack_cells(values, smallest, scale, int(last), bits, cells)
    cells.sort(axis=1)
    _order_cells(cells, bits, values, tied, order)


@compiled
def _pack_cells(
    values: Any, smallest: float, scale: float, last: int, bits: int, cells: Any
) -> None:
    """Write numbers of cells that grow as the values fall, with the class number in `bits`."""
    rows, columns = values.shape
    for row in range(rows):
        for k in range(columns):
            cell = last - np.int64((values[row, k] - smallest) * scale)
            cells[row, k] = (cell << bits) | k


@compiled
def _order_cells(cells: Any, bits: int, values: Any, tied: float, order: Any) -> None:
    """Write the order of rows from their sorted cells; the values of one cell are tied.

    The classes of a cell are already in order, so only groups of several cells are sorted.
    """
    rows, columns = cells.shape
    mask = (1 << bits) - 1
    is_member = np.zeros(columns, np.int64)
    for row in range(rows):
        classes, v = order[row], values[row]
        for k in range(columns):
            classes[k] = cells[row, k] & mask
        group, first, lowest, spans = 0, 0, np.inf, False
        while first < columns:
            cell, last = cells[row, first] >> bits, first
            highest, smallest = -np.inf, np.inf
            while last < columns and cells[row, last] >> bits == cell:
                highest, smallest = max(highest, v[classes[last]]), min(smallest, v[classes[last]])
                last += 1
            if lowest - highest > tied:
                if spans:
                    _sort_group(classes[group:first], is_member)
                group = first
            spans = group < first
            first, lowest = last, smallest
        if spans:
            _sort_group(classes[group:], is_member)


@compiled
def _sort_group(classes: Any, is_member: Any) -> None:
    """Sort a part of a row; `is_member` [C] has zeros before and after."""
    if classes.size <= FEW:
        for k in range(1, classes.size):
            moving, j = classes[k], k
            while j > 0 and classes[j - 1] > moving:
                classes[j] = classes[j - 1]
                j -= 1
            classes[j] = moving
        return
    is_member[classes] = 1
    place = 0
    for j in range(is_member.size):
        if place < classes.size:
            classes[place] = j
        place += is_member[j]
        is_member[j] = 0


@compiled
def _pack(bits: Any, mask: Any, packed: Any) -> None:
    """Write keys that grow as the values fall, with the class number in the bits of `mask`.

    `bits` are those of the values, as integers.
    """
    rows, columns = bits.shape
    for row in range(rows):
        for k in range(columns):
            # -0.0 and 0.0 are two bit patterns and one value, so they must tie.
            own = bits[row, k] if bits[row, k] != NEGATIVE_ZERO else 0
            # Negative doubles grow downwards in their bits, positive ones upwards.
            falling = own if own < 0 else own ^ ALL_BUT_SIGN
            packed[row, k] = (np.uint64(falling) & ~mask) | np.uint64(k)


@compiled
def _unpack(packed: Any, mask: Any, values: Any, order: Any, is_sorted: Any) -> None:
    """Write the order of rows from their sorted keys, and whether it also sorts their values."""
    rows, columns = packed.shape
    for row in range(rows):
        v, classes, wrong = values[row], order[row], 0
        for k in range(columns):
            classes[k] = packed[row, k] & mask
        for k in range(1, columns):  # all are counted: without a branch
            before, after = v[classes[k - 1]], v[classes[k]]
            wrong += before < after
            wrong += (before == after) & (classes[k - 1] > classes[k])
        is_sorted[row] = wrong == 0


def places_of(labels: Tensor, order: Tensor) -> Tensor:
    """Return the position of each label in its row of `order`: int64 [n], 0 if it is not there."""
    return (order == labels[:, None]).to(torch.uint8).argmax(dim=1)


def sorted_rows(matrix: Tensor) -> Tensor:
    """Return each row in ascending order; NumPy sorts in vector lanes where no order is wanted."""
    if matrix.device.type != "cpu":
        return matrix.sort(dim=1).values
    return torch.from_numpy(np.sort(matrix.numpy(), axis=1))


def ranks_of(labels: Tensor, matrix: Tensor) -> Tensor:
    """Return the zero-based rank of each label in its row, int64 [n], without a sort."""
    if matrix.device.type == "cpu":
        ranks = np.empty(len(matrix), np.int64)
        _count_before(matrix.contiguous().numpy(), labels.to(torch.int64).numpy(), ranks)
        return torch.from_numpy(ranks)
    own = matrix.gather(1, labels.to(torch.int64)[:, None])
    before = torch.arange(matrix.shape[1], device=matrix.device) < labels[:, None]
    return ((matrix > own) | ((matrix == own) & before)).sum(dim=1)


@compiled
def _count_before(matrix: Any, labels: Any, ranks: Any) -> None:
    for i in range(labels.size):
        row, label, count = matrix[i], labels[i], 0
        own = row[label]
        for j in range(row.size):
            count += row[j] > own
        for j in range(label):
            count += row[j] == own
        ranks[i] = count


def top_classes(matrix: Tensor) -> Tensor:
    """Return the column of each row's largest value, the first of equal ones: int64 [n]."""
    if matrix.device.type != "cpu":
        return matrix.max(dim=1).indices
    return torch.from_numpy(matrix.numpy().argmax(axis=1))  # .6 of the time of torch


def largest_values(matrix: Tensor, count: int) -> Tensor:
    """Return the `count` largest values of each row in descending order: [n, count].

    NumPy's sort and partition are vectorised, so they are faster than torch's `topk`.
    """
    if matrix.device.type != "cpu":
        return matrix.topk(count, dim=1).values
    values, rest = matrix.numpy(), matrix.shape[1] - count
    if matrix.shape[1] > MOST_SORTED and 2 * count < matrix.shape[1]:
        values = np.partition(values, rest, axis=1)[:, rest:]
        rest = 0
    return torch.from_numpy(np.sort(values, axis=1)[:, rest:]).flip(1)
