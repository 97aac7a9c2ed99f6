"""The range of a sorted running sum without the sort: buckets first, a sort where it matters.

The running sum of residuals is wanted at its extremes and at a few positions only. One pass throws
the points into buckets ordered by predicted utility and keeps per bucket the number of points and
the sums of the positive and of the negative residuals. The running sum is then known at every
bucket's border, and inside a bucket it can leave the range of its borders only where both signs
occur, by the positive or the negative part at most. Only buckets that can still hold an extreme or
that hold a wanted position are sorted, usually less than a percent of the points. Equal predictions
share a bucket, so borders cut no tie. The result is exact up to the rounding of sums.

Buckets are spaced by the logarithm of the distance to the smallest or the largest prediction,
whichever the mean is closer to: probabilities of a class crowd near 0, top-K sums near 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.compiled import compiled
from metrics.row_sort import fill_keys, sort_keys

BITS = 5
"""2^BITS buckets per octave of the distance."""
OCTAVES = 64
BUCKETS = OCTAVES << BITS
SHIFT = 52 - BITS


@compiled
def _fill_buckets(v: Any, distance: Any, bucket: Any) -> None:
    """Write the bucket of every point; a larger v never gets a smaller bucket."""
    smallest = largest = v[0]
    total = 0.0
    for i in range(v.size):
        smallest = min(smallest, v[i])
        largest = max(largest, v[i])
        total += v[i]
    from_top = total > 0.5 * (smallest + largest) * v.size
    for i in range(v.size):
        # -0.0 - 0.0 is negative zero, whose bits would send it to a bucket of its own.
        distance[i] = (largest - v[i] if from_top else v[i] - smallest) + 0.0
    # A double's bits grow like its logarithm, with straight lines between powers of two.
    bits = distance.view(np.int64)
    greatest = np.empty(1)
    greatest[0] = largest - smallest
    last = greatest.view(np.int64)[0] >> SHIFT
    for i in range(v.size):
        key = max((bits[i] >> SHIFT) - last + (BUCKETS - 1), 0)
        bucket[i] = BUCKETS - 1 - key if from_top else key


@compiled
def _cumulate(parts: Any, counts: Any, before: Any, starts: Any) -> Any:
    """Write number and sum of all points before each bucket.

    Return the extremes of the running sum at borders, and bounds on them anywhere.
    """
    total = low = high = least = most = 0.0
    position = np.int64(0)
    before[0] = 0
    starts[0] = 0.0
    for b in range(BUCKETS):
        position += counts[b]
        least = min(least, total - parts[b, 1])
        most = max(most, total + parts[b, 0])
        total += parts[b, 0] - parts[b, 1]
        low = min(low, total)
        high = max(high, total)
        before[b + 1] = position
        starts[b + 1] = total
    return low, high, least, most


@compiled
def _mark_open(
    parts: Any, before: Any, starts: Any, extremes: Any, edges: Any, at_edges: Any, is_open: Any
) -> int:
    """Mark the buckets to be sorted, return their number; take `at_edges` from the borders.

    `before` and `starts` have one entry more than there are buckets.
    """
    low, high = extremes
    open_buckets = edge = 0
    for b in range(BUCKETS):
        mixed = parts[b, 0] > 0 and parts[b, 1] > 0
        beyond = starts[b] + parts[b, 0] > high or starts[b] - parts[b, 1] < low
        is_open[b] = mixed and beyond
        while edge < edges.size and edges[edge] <= before[b]:
            at_edges[edge] = starts[b]
            edge += 1
        while edge < edges.size and edges[edge] < before[b + 1]:
            is_open[b] = True
            edge += 1
        open_buckets += is_open[b]
    at_edges[edge:] = starts[BUCKETS]
    return open_buckets


@compiled
def _walk_open(
    v: Any,
    payoffs: Any,
    codes: Any,
    edges: Any,
    starts: Any,
    before: Any,
    scratch: Any,
    places: Any,
    m: int,
    at_edges: Any,
) -> Any:
    """Sort the m points `places[1]` of the open buckets and walk through them."""
    keys_spare, chosen, keys = scratch[0].view(np.uint64), scratch[1], scratch[2]
    bucket, index, order, order_spare = places[0], places[1], places[2], places[3]
    for k in range(m):
        chosen[k] = v[index[k]]
    fill_keys(chosen[:m], False, keys, order)
    unsigned = keys.view(np.uint64)
    sort_keys(unsigned[:m], order[:m], keys_spare, order_spare)
    low = high = total = 0.0
    current = -1
    place = np.int64(0)
    edge = 0
    for k in range(m):
        i = index[order[k]]
        if bucket[i] != current:
            current = bucket[i]
            total = starts[current]
            place = before[current]
        total += payoffs[codes[i]] - v[i]
        place += 1
        if k == m - 1 or unsigned[k] != unsigned[k + 1]:
            low = min(low, total)
            high = max(high, total)
        while edge < edges.size and edges[edge] <= place:
            if edges[edge] == place:
                at_edges[edge] = total
            edge += 1
    return low, high


@compiled
def range_by_buckets(
    v: Any,
    payoffs: Any,
    codes: Any,
    edges: Any,
    worth: float,
    scratch: Any,
    places: Any,
    at_edges: Any,
) -> Any:
    """Return the extremes of the running sum of payoffs[codes] - v in the order of v [n].

    If their difference is found to be at most `worth`, the search may end there and return narrower
    ones; a negative `worth` asks for the extremes in any case.
    Writes to `at_edges` the sum after `edges` (increasing, 0 … n) points, ties in the given order.
    `scratch` float64 [3, n] and `places` int32 [4, n] are working memory.
    """
    n = v.size
    bucket = places[0]
    _fill_buckets(v, scratch[0], bucket)
    parts = np.zeros((BUCKETS, 2))
    counts = np.zeros(BUCKETS, np.int64)
    for i in range(n):
        residual = payoffs[codes[i]] - v[i]
        parts[bucket[i], 1 if residual < 0 else 0] += abs(residual)
        counts[bucket[i]] += 1
    before = np.empty(BUCKETS + 1, np.int64)
    starts = np.empty(BUCKETS + 1)
    low, high, least, most = _cumulate(parts, counts, before, starts)
    if most - least <= worth:
        return low, high
    is_open = np.empty(BUCKETS, np.bool_)
    if _mark_open(parts, before, starts, (low, high), edges, at_edges, is_open) == 0:
        return low, high
    m = 0
    for i in range(n):
        places[1, m] = i
        m += is_open[bucket[i]]
    inside = _walk_open(v, payoffs, codes, edges, starts, before, scratch, places, m, at_edges)
    return min(low, inside[0]), max(high, inside[1])
