"""The order of a row of probabilities, repaired after it moved.

A move leaves most of a ranking as it was, so the order from before is the start: nothing to do, or
a few insertions. Patches along sampled utilities shuffle the small probabilities. Those rows are
thrown into buckets by the logarithm of the probability, after which a few insertions are enough.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.kernels.compiled import compiled
from metrics.kernels.row_sort import fill_keys, insertion_order, rank_by, sort_keys

FEW = 64
"""Up to so many classes insertions are as fast as anything."""
IN_ORDER = 15 / 16
"""Share of neighbours in the right order from which on a few insertions can be hoped for."""
MOVES = 4
"""Insertions per probability that cost as much as a sort."""
BITS = 6
"""2^BITS buckets per octave of the probability."""
BUCKETS = 2048
"""They reach 32 octaves below the largest probability; all smaller ones share the last."""
SHIFT = 52 - BITS


@compiled
def repair_order(
    p: Any, order: Any, ranked: Any, shuffled: bool, values: Any, keys: Any, uints: Any, ints: Any
) -> None:
    """Sort the classes in `order` by (p descending, class); write ranked = p[order].

    `shuffled`: do not expect much of the order from before.
    `values`, `keys` float64 [C], `uints` uint64 [C], `ints` int32 [3, C]: working memory.
    """
    few = p.size <= FEW
    if few or not shuffled:
        rises, swaps = rank_by(p, order, ranked)
        if rises + swaps == 0:
            return
        if few or rises < (1 - IN_ORDER) * p.size:
            positive = _zeros_last(p, order, ranked, ints[0])
            if insertion_order(ranked, order, positive, (FEW if few else 1) * p.size):
                return
    classes, places, spare = ints[0], ints[1], ints[2]
    positive = _positive_first(p, order, values, classes, spare)
    if not _by_buckets(values[:positive], classes, order, ranked, places):
        fill_keys(values[:positive], True, keys, places)
        sort_keys(keys[:positive].view(np.uint64), places[:positive], uints, spare)
        for k in range(positive):
            order[k] = classes[places[k]]
            ranked[k] = values[places[k]]
    ranked[positive:] = 0.0


@compiled
def _positive_first(p: Any, order: Any, values: Any, classes: Any, zeros: Any) -> int:
    """Write the positive p and their classes; the other classes go to the end of `order`."""
    positive = zero = 0
    for j in range(p.size):  # without a branch: what is not wanted is overwritten by the next one
        values[positive] = p[j]
        classes[positive] = j
        zeros[zero] = j
        above = 1 if p[j] > 0 else 0
        positive += above
        zero += 1 - above
    order[positive:] = zeros[:zero]
    return positive


@compiled
def _by_buckets(values: Any, classes: Any, order: Any, ranked: Any, bucket: Any) -> bool:
    """Write both, sorted, to the start of `order` and `ranked`; False if they crowd too much."""
    bits = values.view(np.int64)
    greatest = np.int64(0)
    for k in range(values.size):
        greatest = max(greatest, bits[k])
    deepest = np.int64(0)
    for k in range(values.size):
        depth = min((greatest >> SHIFT) - (bits[k] >> SHIFT), BUCKETS - 1)
        deepest = max(deepest, depth)
        bucket[k] = depth
    starts = np.zeros(deepest + 2, np.int32)
    for k in range(values.size):
        starts[bucket[k] + 1] += 1
    for b in range(deepest + 1):
        starts[b + 1] += starts[b]
    for k in range(values.size):
        place = starts[bucket[k]]
        starts[bucket[k]] = place + 1
        order[place] = classes[k]
        ranked[place] = values[k]
    return insertion_order(ranked, order, values.size, MOVES * values.size)


@compiled
def _zeros_last(p: Any, order: Any, ranked: Any, spare: Any) -> int:
    """Move the zeros of `p` to the end of both, by class; return the number of other entries.

    A projection makes hundreds of entries zero at once, which then stand in the order of their
    former sizes: sorting them one by one would cost as much as sorting the row anew.
    """
    positive = 0
    for k in range(p.size):
        spare[positive] = order[k]
        ranked[positive] = ranked[k]
        positive += 1 if ranked[k] > 0 else 0
    if positive == p.size:
        return positive
    order[:positive] = spare[:positive]
    ranked[positive:] = 0.0
    place = positive
    for j in range(p.size):
        if place < p.size:
            order[place] = j
        place += 1 if p[j] == 0 else 0
    return positive
