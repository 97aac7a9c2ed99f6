"""The order of a row of probabilities, repaired after it moved.

A move leaves most of a ranking as it was, so the order from before is the start: nothing to do, or
a few insertions, or, where a projection turned the row around, a sort.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.compiled import compiled
from metrics.row_sort import fill_keys, insertion_order, rank_by, sort_keys


@compiled
def repair_order(
    p: Any, order: Any, ranked: Any, values: Any, keys: Any, keys_spare: Any, spare: Any
) -> None:
    """Sort the classes in `order` by (p descending, class); write ranked = p[order].

    `values`, `keys` float64 [C], `keys_spare` uint64 [C], `spare` int32 [3, C]: working memory.
    """
    if rank_by(p, order, ranked):
        return
    positive = _zeros_last(p, order, ranked, spare[0])
    if not insertion_order(ranked, order, positive):
        _sort_positive(p, order, ranked, values, keys, keys_spare, spare)


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


@compiled
def _sort_positive(
    p: Any, order: Any, ranked: Any, values: Any, keys: Any, keys_spare: Any, spare: Any
) -> None:
    """Write the classes with p > 0 to the start of `order`, sorted by (p descending, class)."""
    place, place_spare, classes = spare[0], spare[1], spare[2]
    m = 0
    for j in range(p.size):
        if p[j] > 0:
            values[m] = p[j]
            classes[m] = j
            m += 1
    fill_keys(values[:m], True, keys, place)
    sort_keys(keys[:m].view(np.uint64), place[:m], keys_spare, place_spare)
    for k in range(m):
        order[k] = classes[place[k]]
        ranked[k] = values[place[k]]
