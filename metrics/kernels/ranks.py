"""Rankings of the classes in every row of a matrix: in descending order, ties by class number.

Each value becomes a 64-bit key whose unsigned order is the descending order of the
doubles. The lowest bits of the keys give way to the class number, and NumPy's vectorised sort of
integers carries it along. The few rows with values that differ only in the lost bits are then
sorted again, as doubles.

Where neighbours within a distance are tied, their order among themselves is not needed. Values are
then put into cells that are much narrower than that distance, and cells and class numbers are
sorted together as short integers. All values too large for such a number share the first cell. Of
probabilities these are few; where they are many, the values are sorted as above.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from .buckets import ALL_BUT_SIGN
from .compiled import compiled
from .threads import over_blocks, row_blocks

PACKED = 1 << 16
"""Elements that are packed and sorted at a time, so that their memory stays in the cache."""
CELLS = 24
"""Cells per distance that is tied, or rather per 1.02 distances, for rounding.

Values fewer cells apart are tied; values in cells more than one further apart are not.
"""
MOST_LARGE = 32
"""Values per row, on average, up to which the first cell is sorted by insertion."""
MOST_SORTED = 400
"""Columns of a matrix up to which all are sorted where only the largest are needed."""
NEGATIVE_ZERO = np.int64(-(1 << 63))
SHORT = 32
"""Bits of a cell's number and the class number together."""


def descending_order(matrix: Array, tied: float = 0.0) -> Array:
    """Return the classes of each row in descending order, by number where neighbours are tied.

    Args:
        matrix: float64 [n, C].
        tied: neighbours in descending order that lie no further apart are tied.

    Returns:
        int32 [n, C].
    """
    return _order_of(matrix, tied)


def ascending_order(matrix: Array) -> Array:
    """Return the columns of each row in ascending order, equal ones by number: int32 [n, C]."""
    return _order_of(matrix, is_ascending=True)


def _order_of(matrix: Array, tied: float = 0.0, is_ascending: bool = False) -> Array:
    """Return either order; some rows at a time are negated, as a second matrix takes memory."""
    values = np.ascontiguousarray(matrix)
    order = np.empty(values.shape, np.int32)

    def work(start: int, stop: int) -> None:
        rows = values[start:stop]
        _rank_rows(-rows if is_ascending else rows, tied, order[start:stop])

    over_blocks(work, row_blocks(len(values), values.shape[1], PACKED))
    return order


def _plain_order(matrix: Array, tied: float) -> Array:
    """`descending_order` by sorts of doubles."""
    order = np.argsort(-matrix, axis=1, kind="stable")
    if not tied:
        return order
    ranked = np.take_along_axis(matrix, order, axis=1)
    starts = np.zeros(order.shape, np.int64)
    np.cumsum(ranked[:, :-1] - ranked[:, 1:] > tied, axis=1, out=starts[:, 1:])
    # A class keeps its place by the number of its group, so a stable sort by group is enough.
    group = np.empty_like(order)
    np.put_along_axis(group, order, starts, axis=1)
    return group.argsort(axis=1, kind="stable")


def _rank_rows(values: NDArray[np.float64], tied: float, order: NDArray[np.int32]) -> None:
    """Write `descending_order` of the rows of `values` [n, C] to `order`, on this thread alone."""
    bits = (values.shape[1] - 1).bit_length()
    if tied and math.isfinite(float(values.max()) - float(values.min())):
        cells = np.empty(values.shape, np.uint32)
        large = _pack_cells(values, float(values.min()), 1.02 * CELLS / tied, bits, cells)
        if large <= MOST_LARGE * len(values):
            cells.sort(axis=1)
            _order_cells(cells, bits, values, tied, order)
            return
    mask = np.uint64((1 << bits) - 1)
    packed, is_ranked = np.empty(values.shape, np.uint64), np.empty(len(values), np.bool_)
    _pack(values.view(np.int64), mask, packed)
    packed.sort(axis=1)
    _unpack(packed, mask, values, tied, order, is_ranked)
    if not is_ranked.all():
        order[~is_ranked] = _plain_order(values[~is_ranked], tied)


@compiled
def _pack_cells(values: Any, smallest: float, scale: float, bits: int, cells: Any) -> int:
    """Write numbers of cells that grow as the values fall, with the class number in `bits`.

    Returns how many values are in the first cell.
    """
    rows, columns = values.shape
    last, large = (1 << (SHORT - bits)) - 1, 0
    for row in range(rows):
        for k in range(columns):
            cell = last - np.int64(min((values[row, k] - smallest) * scale, last))
            cells[row, k] = (cell << bits) | k
            large += cell == 0
    return large


@compiled
def _order_cells(cells: Any, bits: int, values: Any, tied: float, order: Any) -> None:
    """Write the order of rows from their sorted cells, which are changed.

    Groups of tied classes are numbered along the cells. Then the classes take the places of their
    groups, by number.
    """
    rows, columns = cells.shape
    mask, shift, one = np.uint32((1 << bits) - 1), np.uint32(bits), np.uint32(1)
    group_of = np.empty(columns, np.uint32)
    place = np.empty(columns + 1, np.uint32)  # of each group's next class
    for row in range(rows):
        c, v, group, is_mixed = cells[row], values[row], np.uint32(0), False
        _sort_first_cell(c, v, mask)
        place[0], place[1] = 0, 1
        group_of[c[0] & mask] = group
        for k in range(1, columns):
            apart = (c[k] >> shift) - (c[k - 1] >> shift)
            is_new = apart > CELLS
            is_rough = c[k - 1] <= mask or (apart >= CELLS and apart <= CELLS + 1)
            if is_rough:
                is_new = _gap(c, k, v, mask, shift) > tied
            is_mixed |= not is_new and (is_rough or apart > 0)
            group += one if is_new else np.uint32(0)
            place[group + one] = k + 1  # the last one written is where the next group starts
            group_of[c[k] & mask] = group
        for k in range(columns):
            if is_mixed:
                order[row, place[group_of[k]]] = k
                place[group_of[k]] += one
            else:
                order[row, k] = c[k] & mask


@compiled
def _sort_first_cell(cells: Any, v: Any, mask: Any) -> None:
    """Sort by insertion the cell that has all large values, whatever their distances."""
    k = 1
    while k < cells.size and cells[k] <= mask:
        moving, j = cells[k], k
        while j > 0 and v[cells[j - 1]] < v[moving]:
            cells[j] = cells[j - 1]
            j -= 1
        cells[j] = moving
        k += 1


@compiled
def _gap(cells: Any, k: int, v: Any, mask: Any, shift: Any) -> float:
    """Return the distance of the values before place k from those after it.

    Within a cell, other than the first, values are in no order.
    """
    i, j = k - 1, k
    lowest, highest = v[cells[i] & mask], v[cells[j] & mask]
    while i > 0 and cells[i] > mask and cells[i - 1] >> shift == cells[i] >> shift:
        i -= 1
        lowest = min(lowest, v[cells[i] & mask])
    while j + 1 < cells.size and cells[j] > mask and cells[j + 1] >> shift == cells[j] >> shift:
        j += 1
        highest = max(highest, v[cells[j] & mask])
    return lowest - highest


@compiled
def _pack(bits: Any, mask: Any, packed: Any) -> None:
    """Write keys that grow as the values fall, with the class number in the bits of `mask`.

    `bits` are those of the values, as integers.
    """
    rows, columns = bits.shape
    for row in range(rows):
        for k in range(columns):
            # -0.0 and 0.0 are two bit patterns and one value, so they must tie.
            number = bits[row, k] if bits[row, k] != NEGATIVE_ZERO else 0
            # Negative doubles grow downwards in their bits, positive ones upwards.
            falling = number if number < 0 else number ^ ALL_BUT_SIGN
            packed[row, k] = (np.uint64(falling) & ~mask) | np.uint64(k)


@compiled
def _unpack(packed: Any, mask: Any, values: Any, tied: float, order: Any, is_ranked: Any) -> None:
    """Write the order of rows from their sorted keys, and whether it is also that of their values.

    Classes whose values are tied must be in the order of their numbers, too.
    """
    rows, columns = packed.shape
    for row in range(rows):
        v, classes, misplaced = values[row], order[row], 0
        for k in range(columns):
            classes[k] = packed[row, k] & mask
        for k in range(1, columns):  # all are counted: without a branch
            before, after = v[classes[k - 1]], v[classes[k]]
            misplaced += before < after
            misplaced += (before - after <= tied) & (classes[k - 1] > classes[k])
        is_ranked[row] = misplaced == 0


def places_of(labels: Array, order: Array) -> Array:
    """Return the position of each label in its row of `order`: int64 [n], 0 if it is not there."""
    return (order == labels[:, None]).argmax(axis=1)


def ranks_of(labels: Array, matrix: Array) -> Array:
    """Return the zero-based rank of each label in its row, int64 [n], without a sort."""
    ranks = np.empty(len(matrix), np.int64)
    _count_before(np.ascontiguousarray(matrix), labels.astype(np.int64, copy=False), ranks)
    return ranks


@compiled
def _count_before(matrix: Any, labels: Any, ranks: Any) -> None:
    for i in range(labels.size):
        row, label, count = matrix[i], labels[i], 0
        value = row[label]
        for j in range(row.size):
            count += row[j] > value
        for j in range(label):
            count += row[j] == value
        ranks[i] = count


def largest_values(matrix: Array, count: int) -> Array:
    """Return the `count` largest values of each row in descending order: [n, count]."""
    values, rest = matrix, matrix.shape[1] - count
    if matrix.shape[1] > MOST_SORTED and 2 * count < matrix.shape[1]:
        values = np.partition(values, rest, axis=1)[:, rest:]
        rest = 0
    return np.sort(values, axis=1)[:, rest:][:, ::-1]


def places_above(sums: Array, shares: Array) -> Array:
    """Return for shares [R, n] of the last sum the first place whose sum is larger: int64 [R, n].

    `sums` [n, C] ascend in each row; a share of one has the last place.
    """
    sums, shares = np.ascontiguousarray(sums), np.ascontiguousarray(shares.T)
    places = np.empty(shares.shape, np.int64)

    def work(start: int, stop: int) -> None:
        _find_places(sums[start:stop], shares[start:stop], places[start:stop])

    over_blocks(work, row_blocks(len(sums), max(sums.shape[1], shares.shape[1])))
    return places.T


@compiled
def _find_places(sums: Any, shares: Any, places: Any) -> None:
    last = sums.shape[1] - 1
    for i in range(sums.shape[0]):
        row, whole = sums[i], sums[i, last]
        for k in range(shares.shape[1]):
            target = shares[i, k] * whole
            low, high = 0, last
            while low < high:
                middle = (low + high) >> 1
                if row[middle] > target:
                    high = middle
                else:
                    low = middle + 1
            places[i, k] = low


def ranked_sums(matrix: Array, order: Array) -> Array:
    """Return the running sums of each row's values in their `order`: [n, C]."""
    return _in_order(_sum_ranked, matrix, order)


def ranked_values(matrix: Array, order: Array) -> Array:
    """Return each row's values in their `order`: [n, C]."""
    return _in_order(_take_ranked, matrix, order)


def _in_order(kernel: Any, matrix: Array, order: Array) -> Array:
    """Return what a kernel makes of values [n, C] in their order, whose type may be shorter."""
    values, made = np.ascontiguousarray(matrix), np.empty(matrix.shape)

    def work(start: int, stop: int) -> None:
        places = order[start:stop].astype(np.int32, copy=False)  # one type is compiled
        kernel(values[start:stop], places, made[start:stop])

    over_blocks(work, row_blocks(*values.shape))
    return made


@compiled
def _sum_ranked(matrix: Any, order: Any, sums: Any) -> None:
    for i in range(matrix.shape[0]):
        row, places, out, total = matrix[i], order[i], sums[i], 0.0
        for k in range(places.size):
            total += row[places[k]]
            out[k] = total


@compiled
def _take_ranked(matrix: Any, order: Any, ranked: Any) -> None:
    for i in range(matrix.shape[0]):
        row, places, out = matrix[i], order[i], ranked[i]
        for k in range(places.size):
            out[k] = row[places[k]]
