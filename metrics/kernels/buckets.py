"""The range of a sorted running sum without the sort: buckets first, a sort where it matters.

The running sum of residuals is wanted at its extremes and at a few positions only. One pass throws
the points into buckets ordered by predicted utility and keeps per bucket the number of points and
the sums of the positive and of the negative residuals. The running sum is then known at every
bucket's border, and inside a bucket it can leave the range of its borders only where both signs
occur, by the positive or the negative part at most. Only buckets that can still hold an extreme or
that hold a wanted position are sorted, usually less than a percent of the points. Equal predictions
share a bucket, so borders cut no tie. The result is exact up to the rounding of sums. With a
tolerance, sums count in gaps of the predictions that are wider: a border counts where there is one
between its neighbours, and buckets that are narrower hold none. The extremes of all borders mostly
lie in such gaps; only where they do not is every border looked at.

Buckets are as wide as each other where predictions spread, and spaced by the logarithm of the
distance to the smallest or the largest prediction where they crowd: probabilities of a class crowd
near 0, top-K sums near 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from metrics.kernels.compiled import compiled, compiled_sums
from metrics.kernels.row_sort import SMALL, fill_keys, sort_keys

BITS = 5
"""2^BITS buckets per octave of the distance."""
OCTAVES = 64
BUCKETS = OCTAVES << BITS
SHIFT = 52 - BITS
CROWDED = 0.2
"""Predictions crowd if their mean is in this share of their range at either end. Ten classes have
means near 0.1 and crowd; payoffs by class are near 0.5 and spread."""
ALL_BUT_SIGN = np.int64(0x7FFFFFFFFFFFFFFF)


@compiled
def _grown(bits: Any) -> Any:
    """Turn a double's bits into an integer that grows with the double, and back."""
    return bits ^ ((bits >> 63) & ALL_BUT_SIGN)


@compiled
def _as_doubles(first: Any, second: Any) -> Any:
    """The doubles of two such integers."""
    bits = np.empty(2, np.int64)
    bits[0], bits[1] = _grown(first), _grown(second)
    values = bits.view(np.float64)
    return values[0], values[1]


@compiled_sums
def _extremes_and_sum(v: Any) -> Any:
    """Return the smallest, the largest and the sum of v, the sum in any order of adding up.

    Integers that grow with the doubles are compared: their extremes are found in vector lanes, as
    no NaN has to be thought of.
    """
    bits = v.view(np.int64)
    smallest, largest = ALL_BUT_SIGN, ~ALL_BUT_SIGN
    total = 0.0
    for i in range(v.size):
        grown = _grown(bits[i])
        smallest = min(smallest, grown)
        largest = max(largest, grown)
        total += v[i]
    low, high = _as_doubles(smallest, largest)
    return low, high, total


@compiled
def _fill_buckets(v: Any, distance: Any, bucket: Any) -> None:
    """Write the bucket of every point; a larger v never gets a smaller bucket."""
    smallest, largest, total = _extremes_and_sum(v)
    span = largest - smallest
    height = (total / v.size - smallest) / span if span > 0 else 0.0
    scale = (BUCKETS - 1) / span if span > 0 else 0.0
    if CROWDED < height < 1 - CROWDED and np.isfinite(scale):
        for i in range(v.size):
            bucket[i] = np.int32((v[i] - smallest) * scale)
    else:
        _fill_by_logarithm(v, smallest, largest, height > 0.5, distance, bucket)


@compiled
def _fill_by_logarithm(
    v: Any, smallest: float, largest: float, from_top: bool, distance: Any, bucket: Any
) -> None:
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
def _mark_gaps(v: Any, bucket: Any, tolerance: float, counts: Any) -> None:
    """Mark the buckets that end in a gap wider than the tolerance."""
    smallest, largest = np.full(BUCKETS, np.inf), np.full(BUCKETS, -np.inf)
    for i in range(v.size):
        smallest[bucket[i]] = min(smallest[bucket[i]], v[i])
        largest[bucket[i]] = max(largest[bucket[i]], v[i])
    following = np.inf
    for b in range(BUCKETS - 1, -1, -1):
        is_empty = largest[b] < smallest[b]
        counts[b] = not is_empty and following - largest[b] > tolerance
        following = min(following, smallest[b])


@compiled
def _cumulate(parts: Any, counts: Any, starts: Any) -> Any:
    """Write the sum of all points before each bucket, and after the last.

    Return its extremes at the borders that count, and the buckets that these borders follow.
    """
    total = low = high = 0.0
    after_low = after_high = -1
    starts[0] = 0.0
    for b in range(BUCKETS):
        total += parts[b, 0] - parts[b, 1]
        if counts[b] and total < low:
            low, after_low = total, b
        if counts[b] and total > high:
            high, after_high = total, b
        starts[b + 1] = total
    return low, high, after_low, after_high


@compiled
def _follows_gap(v: Any, bucket: Any, last: Any, tolerance: float) -> bool:
    """Whether the points after bucket `last` lie further than the tolerance from those up to it."""
    bits = v.view(np.int64)
    below, above = ~ALL_BUT_SIGN, ALL_BUT_SIGN
    for i in range(v.size):
        grown = _grown(bits[i])
        below = max(below, grown if bucket[i] <= last else ~ALL_BUT_SIGN)
        above = min(above, grown if bucket[i] > last else ALL_BUT_SIGN)
    if below == ~ALL_BUT_SIGN or above == ALL_BUT_SIGN:
        return True  # before the first, or after the last point
    low, high = _as_doubles(below, above)
    return high - low > tolerance


@compiled
def _mark_extremes(parts: Any, starts: Any, low: float, high: float, is_open: Any) -> None:
    """Mark the buckets inside which the running sum may leave [low, high]."""
    for b in range(BUCKETS):
        is_open[b] = starts[b] + parts[b, 0] > high or starts[b] - parts[b, 1] < low


@compiled
def _without_narrow(v: Any, bucket: Any, index: Any, m: int, tolerance: float) -> int:
    """Keep of the m points `index` those in buckets that may hold a gap; return how many."""
    smallest, largest = np.full(BUCKETS, np.inf), np.full(BUCKETS, -np.inf)
    for k in range(m):
        i = index[k]
        smallest[bucket[i]] = min(smallest[bucket[i]], v[i])
        largest[bucket[i]] = max(largest[bucket[i]], v[i])
    kept = 0
    for k in range(m):
        b = bucket[index[k]]
        index[kept] = index[k]
        kept += largest[b] - smallest[b] > tolerance
    return kept


@compiled
def _mark_edges(
    bucket: Any, starts: Any, edges: Any, before: Any, at_edges: Any, is_open: Any
) -> None:
    """Write the sums at edges that are borders of buckets; mark the buckets of all others.

    Also writes the number of points before each bucket, unless no edge asks for it.
    """
    n = bucket.size
    inside = False
    for k in range(edges.size):
        at_edges[k] = starts[BUCKETS] if edges[k] == n else 0.0
        inside = inside or 0 < edges[k] < n
    if not inside:
        return
    for i in range(n):
        before[bucket[i] + 1] += 1
    for b in range(BUCKETS):
        before[b + 1] += before[b]
    for k in range(edges.size):
        b = _last_at_most(before, edges[k])
        at_edges[k] = starts[b]
        is_open[b] = is_open[b] or before[b] != edges[k]


@compiled
def _last_at_most(before: Any, place: int) -> int:
    """The last b with before[b] <= place; NumPy's own search takes seconds to compile."""
    first, last = 0, before.size - 1
    while first < last:
        middle = (first + last + 1) // 2
        if before[middle] <= place:
            first = middle
        else:
            last = middle - 1
    return first


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
    tolerance: float,
    counts: Any,
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
        following = index[order[min(k + 1, m - 1)]]
        if k == m - 1 or bucket[following] != current:
            ends = counts[current]
        else:
            ends = v[following] - v[i] > tolerance
        if ends:
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
    scratch: Any,
    places: Any,
    at_edges: Any,
    tolerance: float,
) -> Any:
    """Return the extremes of the running sum of payoffs[codes] - v in the order of v [n].

    They are taken at the end of all points, and where the next v is further than the tolerance.
    Writes to `at_edges` the sum after `edges` (increasing, 0 … n) points, ties in the given order.
    `scratch` float64 [3, n] and `places` int32 [4, n] are working memory.
    """
    n = v.size
    bucket = places[0]
    _fill_buckets(v, scratch[0], bucket)
    parts = np.zeros((BUCKETS, 2))
    for i in range(n):
        residual = payoffs[codes[i]] - v[i]
        parts[bucket[i], 1 if residual < 0 else 0] += abs(residual)
    counts = np.ones(BUCKETS, np.bool_)
    starts = np.empty(BUCKETS + 1)
    low, high, after_low, after_high = _cumulate(parts, counts, starts)
    # Mostly the extremes lie in wide gaps anyway; only where they do not all gaps are looked at.
    if tolerance > 0 and not (
        _follows_gap(v, bucket, np.int32(after_low), tolerance)
        and _follows_gap(v, bucket, np.int32(after_high), tolerance)
    ):
        _mark_gaps(v, bucket, tolerance, counts)
        low, high, _, _ = _cumulate(parts, counts, starts)
    is_open = np.empty(BUCKETS + 1, np.bool_)  # the last one stands for the position n
    _mark_extremes(parts, starts, low, high, is_open)
    before = np.zeros(BUCKETS + 1, np.int64)
    _mark_edges(bucket, starts, edges, before, at_edges, is_open)
    m = 0
    for i in range(n):
        places[1, m] = i
        m += is_open[bucket[i]]
    if m > SMALL and tolerance > 0 and edges.size == 0:  # ties of many points are not worth a sort
        m = _without_narrow(v, bucket, places[1], m, tolerance)
    if m == 0:
        return low, high
    given = v, payoffs, codes, edges, starts, before, scratch, places, m, at_edges
    inside = _walk_open(*given, tolerance, counts)
    return min(low, inside[0]), max(high, inside[1])
