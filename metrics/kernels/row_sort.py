"""Sorting the rows of a matrix on the CPU: exact, stable sorts of float64.

Each value becomes a 64-bit key whose unsigned order is the order of the doubles. Then

* short rows (the probabilities of a point): the lowest bits of the keys give way to the index, and
  NumPy's vectorised sort of integers carries it along. Values that differ in the lost bits only are
  put in order by insertion;
* long rows (the predictions of a utility): three counting passes over the upper 33 bits (sign,
  exponent, 21 bits of mantissa) put all but near-equal values in place, and the few groups that
  agree in those bits are finished by their lower 31 bits. Three scattered writes of 12 bytes per
  element, where a comparison sort has log2(n) passes.

Equal values keep the order of their indices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrics.kernels.compiled import compiled
from metrics.kernels.threads import over_row_blocks

DIGIT_BITS = 11
BUCKETS = 1 << DIGIT_BITS
UPPER_SHIFT = 64 - 3 * DIGIT_BITS
SMALL = 160
"""Up to so many elements comparing all with all beats three passes with 2048 buckets each."""
PACKED = 1 << 16
"""Elements that are packed and sorted at a time: their memory stays in the cache."""
INSERTIONS = 2
"""A row that needs more insertions than this times its length is sorted anew."""


@compiled
def fill_keys(values: Any, descending: bool, keys: Any, order: Any) -> None:
    """Map doubles to integers of the same order (reversed if `descending`); order = 0, 1, …"""
    for i in range(values.size):
        # Adding 0.0 turns -0.0 into 0.0: two bit patterns, one value, so they must tie.
        keys[i] = np.float64(values[i]) + 0.0
    bits = keys.view(np.int64)
    unsigned = keys.view(np.uint64)
    for i in range(values.size):
        b = bits[i]
        # Negative doubles grow downwards in their bits: flip them all; set the sign bit otherwise.
        flipped = ~b if b < 0 else b ^ np.int64(-0x8000000000000000)
        unsigned[i] = np.uint64(~flipped) if descending else np.uint64(flipped)
        order[i] = i


@compiled
def sort_few(
    keys: Any, order: Any, keys_spare: Any, order_spare: Any, start: int, stop: int
) -> None:
    """Sort `keys[start:stop]` with `order`, stably: a key's place is the number of smaller ones.

    Quadratic, but a loop of comparisons without a branch runs in vector lanes.
    """
    order_spare[start:stop] = -1
    for i in range(start, stop):
        key = keys[i]
        smaller = 0
        for k in range(start, stop):
            smaller += 1 if keys[k] < key else 0
        place = start + smaller
        while order_spare[place] >= 0:  # taken by an equal key that came before
            place += 1
        keys_spare[place] = key
        order_spare[place] = order[i]
    keys[start:stop] = keys_spare[start:stop]
    order[start:stop] = order_spare[start:stop]


@compiled
def radix_pass(
    keys: Any, order: Any, keys_out: Any, order_out: Any, start: int, stop: int, shift: int
) -> bool:
    """One stable counting pass by the digit at `shift`; False if all digits agree (no move)."""
    counts = np.zeros(BUCKETS + 1, np.int32)
    mask = np.uint64(BUCKETS - 1)
    move = np.uint64(shift)
    for i in range(start, stop):
        counts[np.int64((keys[i] >> move) & mask) + 1] += 1
    if counts[np.int64((keys[start] >> move) & mask) + 1] == stop - start:
        return False
    for bucket in range(BUCKETS):
        counts[bucket + 1] += counts[bucket]
    for i in range(start, stop):
        key = keys[i]
        digit = np.int64((key >> move) & mask)
        to = start + counts[digit]
        counts[digit] += 1
        keys_out[to] = key
        order_out[to] = order[i]
    return True


@compiled
def radix_sort(
    keys: Any, order: Any, keys_spare: Any, order_spare: Any, start: int, stop: int, shift: int
) -> None:
    """Sort `keys[start:stop]` by the 33 bits from `shift` upwards, stably, in place."""
    a, ia, b, ib = keys, order, keys_spare, order_spare
    swapped = False
    for digit in range(3):
        if radix_pass(a, ia, b, ib, start, stop, shift + digit * DIGIT_BITS):
            a, b = b, a
            ia, ib = ib, ia
            swapped = not swapped
    if swapped:
        keys[start:stop] = keys_spare[start:stop]
        order[start:stop] = order_spare[start:stop]


@compiled
def sort_keys(keys: Any, order: Any, keys_spare: Any, order_spare: Any) -> None:
    """Sort the whole of `keys` (uint64) with `order`, by (key, index)."""
    n = keys.size
    if n <= SMALL:
        sort_few(keys, order, keys_spare, order_spare, 0, n)
        return
    radix_sort(keys, order, keys_spare, order_spare, 0, n, UPPER_SHIFT)
    upper = np.uint64(UPPER_SHIFT)
    start = 0
    while start < n:
        stop = start + 1
        all_equal = True
        while stop < n and keys[stop] >> upper == keys[start] >> upper:
            all_equal = all_equal and keys[stop] == keys[start]
            stop += 1
        if not all_equal:
            if stop - start <= SMALL:
                sort_few(keys, order, keys_spare, order_spare, start, stop)
            else:
                radix_sort(keys, order, keys_spare, order_spare, start, stop, 0)
        start = stop


@compiled
def argsort_rows(values: Any, descending: bool, order: Any) -> None:
    """Write the stable argsort of every row of `values` [rows, n] to `order` int32 [rows, n]."""
    rows, n = values.shape
    keys = np.empty(n, np.float64)
    keys_spare = np.empty(n, np.uint64)
    order_spare = np.empty(n, np.int32)
    for row in range(rows):
        fill_keys(values[row], descending, keys, order[row])
        sort_keys(keys.view(np.uint64), order[row], keys_spare, order_spare)


@compiled
def rank_by(values: Any, order: Any, ranked: Any) -> Any:
    """Write ranked = values[order]; count the neighbours in the wrong order.

    Return how many have the larger value second, and how many equal ones the smaller index.
    """
    for k in range(order.size):
        ranked[k] = values[order[k]]
    rises = swaps = 0
    for k in range(1, order.size):  # all are counted: without a branch, in vector lanes
        rises += ranked[k - 1] < ranked[k]
        swaps += (ranked[k - 1] == ranked[k]) & (order[k - 1] > order[k])
    return rises, swaps


@compiled
def insertion_order(ranked: Any, order: Any, count: int, budget: int) -> bool:
    """Sort the first `count` of both by (value descending, index).

    Return False, with all of them still there, if that takes more than `budget` moves.
    """
    for k in range(1, count):
        value, j = ranked[k], order[k]
        place = k
        while place > 0 and (
            ranked[place - 1] < value or (ranked[place - 1] == value and order[place - 1] > j)
        ):
            ranked[place] = ranked[place - 1]
            order[place] = order[place - 1]
            place -= 1
        ranked[place] = value
        order[place] = j
        budget -= k - place
        if budget < 0:
            return False
    return True


@compiled
def _pack(values: Any, mask: Any, packed: Any) -> None:
    """Write descending keys with the index in the bits of `mask`."""
    columns = values.shape[1]
    order = np.empty(columns, np.int32)
    for row in range(values.shape[0]):
        keys = packed[row].view(np.float64)
        fill_keys(values[row], True, keys, order)
        for k in range(columns):
            packed[row, k] = (packed[row, k] & ~mask) | np.uint64(k)


@compiled
def _unpack(packed: Any, mask: Any, values: Any, order: Any) -> None:
    columns = values.shape[1]
    ranked = np.empty(columns)
    for row in range(values.shape[0]):
        for k in range(columns):
            order[row, k] = np.int32(packed[row, k] & mask)
        rises, swaps = rank_by(values[row], order[row], ranked)
        if rises + swaps == 0:
            continue
        if not insertion_order(ranked, order[row], columns, INSERTIONS * columns):
            argsort_rows(values[row : row + 1], True, order[row : row + 1])


def argsort_short_rows(values: NDArray[Any], order: NDArray[np.int32]) -> None:
    """Write the stable descending argsort of every row of `values` [rows, n] to `order`."""
    columns = values.shape[1]
    mask = np.uint64((1 << (columns - 1).bit_length()) - 1)
    rows = max(1, min(len(values), PACKED // columns))
    packed = np.empty((rows, columns), np.uint64)
    for start in range(0, len(values), rows):
        part = values[start : start + rows]
        keys = packed[: len(part)]
        _pack(part, mask, keys)
        keys.sort(axis=1)
        _unpack(keys, mask, part, order[start : start + rows])


def descending_order(matrix: Tensor) -> Tensor:
    """Return the stable descending argsort of each row: int32 [rows, n], int64 elsewhere."""
    if matrix.device.type != "cpu":
        return torch.sort(matrix, dim=1, descending=True, stable=True).indices
    values = matrix.contiguous().numpy()
    order = np.empty(values.shape, np.int32)

    def work(start: int, stop: int) -> None:
        argsort_short_rows(values[start:stop], order[start:stop])

    over_row_blocks(work, values.shape[0], values.size)
    return torch.from_numpy(order)


def sorted_rows(matrix: Tensor) -> Tensor:
    """Return each row in ascending order; NumPy sorts in vector lanes where no order is wanted."""
    if matrix.device.type != "cpu":
        return matrix.sort(dim=1).values
    return torch.from_numpy(np.sort(matrix.numpy(), axis=1))
