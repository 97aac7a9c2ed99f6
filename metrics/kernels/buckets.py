"""The range of a sorted running sum without the sort: buckets first, a sort where it matters.

Only the extremes of the running sum of residuals are needed. One pass assigns the points to buckets
ordered by predicted utility and keeps, for each bucket, the sums of the positive and of the
negative residuals. The running sum is then known at every bucket's border, and inside a bucket it
can leave the range of its borders only where both signs occur, by the positive or the negative part
at most. Only buckets that can still hold an extreme are sorted, usually less than a percent of the
points. Equal predictions share a bucket, so borders cut no tie. The result is exact up to the
rounding of sums.

With a tolerance, an interval may end only where two neighbouring predictions differ by more than
it. A bucket's border is such a place if the gap across it is wide enough; a bucket narrower than
the tolerance contains none.

Buckets are spaced by the logarithm of the distance to the smallest or the largest prediction, the
one nearer to the mean, where predictions crowd: probabilities of a class near 0, top-K sums near 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiled import compiled, compiled_sums

BITS = 6
"""2^BITS buckets per octave of the distance."""
OCTAVES = 32
BUCKETS = OCTAVES << BITS
SHIFT = 52 - BITS
ALL_BUT_SIGN = np.int64(0x7FFFFFFFFFFFFFFF)


@compiled
def _grown(bits: Any) -> Any:
    """Turn a double's bits into an integer that grows with the double, and back."""
    return bits ^ ((bits >> 63) & ALL_BUT_SIGN)


@compiled
def key_of(distance: Any, shift: int) -> Any:
    """Return the number of a distance's bucket: the leading bits of a double grow with it.

    They grow like its logarithm, with straight lines between powers of two.
    """
    return np.float64(distance).view(np.int64) >> shift


@compiled_sums
def _extremes_and_sum(v: Any) -> Any:
    """Return extremes and sum of v; integers, which have no NaN, are compared in vector lanes."""
    bits = v.view(np.int64)
    smallest, largest = ALL_BUT_SIGN, ~ALL_BUT_SIGN
    total = 0.0
    for i in range(v.size):
        grown = _grown(bits[i])
        smallest = min(smallest, grown)
        largest = max(largest, grown)
        total += v[i]
    extremes = np.empty(2, np.int64)
    extremes[0], extremes[1] = _grown(smallest), _grown(largest)
    values = extremes.view(np.float64)
    return values[0], values[1], total


@compiled
def _fill_buckets(v: Any, distance: Any, bucket: Any) -> None:
    """Write the bucket of every point; a larger v never gets a smaller bucket."""
    smallest, largest, total = _extremes_and_sum(v)
    from_top = total / v.size - smallest > largest - total / v.size
    for i in range(v.size):
        # -0.0 - 0.0 is negative zero, whose bits would send it to a bucket of its own.
        distance[i] = (largest - v[i] if from_top else v[i] - smallest) + 0.0
    last = key_of(largest - smallest, SHIFT)
    for i in range(v.size):
        key = max(key_of(distance[i], SHIFT) - last + (BUCKETS - 1), 0)
        bucket[i] = BUCKETS - 1 - key if from_top else key


@compiled
def _number(bucket: Any) -> int:
    """Number the buckets that hold points from 0, in their order, and return how many there are."""
    numbers = np.zeros(BUCKETS, np.int32)
    for b in bucket:
        numbers[b] = 1
    count = 0
    for b in range(BUCKETS):
        count += numbers[b]
        numbers[b] = count - 1
    for i in range(bucket.size):
        bucket[i] = numbers[bucket[i]]
    return count


@compiled
def _mark_gaps(v: Any, bucket: Any, tolerance: float, ends: Any, is_wide: Any) -> None:
    """Mark the buckets that end in a gap wider than the tolerance, and those that may hold one."""
    extremes = np.empty((ends.size, 2))
    extremes[:, 0] = np.inf
    extremes[:, 1] = -np.inf
    for i in range(v.size):
        of_bucket = extremes[bucket[i]]
        of_bucket[0] = min(of_bucket[0], v[i])
        of_bucket[1] = max(of_bucket[1], v[i])
    following = np.inf
    for b in range(ends.size - 1, -1, -1):
        smallest, largest = extremes[b]
        ends[b] = largest >= smallest and following - largest > tolerance
        is_wide[b] = largest - smallest > tolerance
        following = min(following, smallest)


@compiled
def _walk_open(
    v: Any, table: Any, codes: Any, starts: Any, bucket: Any, rows: Any, tolerance: float, ends: Any
) -> Any:
    """Sort the points `rows` of the open buckets and walk through them."""
    ordered = rows[np.argsort(v[rows], kind="mergesort")]
    low = high = total = 0.0
    current = -1
    for k in range(ordered.size):
        i = ordered[k]
        if bucket[i] != current:
            current = bucket[i]
            total = starts[current]
        total += table[codes[i]] - v[i]
        following = ordered[min(k + 1, ordered.size - 1)]
        if k == ordered.size - 1 or bucket[following] != current:
            is_end = ends[current]
        else:
            is_end = v[following] - v[i] > tolerance
        if is_end:
            low, high = min(low, total), max(high, total)
    return low, high


@compiled
def range_by_buckets(
    v: Any, payoffs: Any, codes: Any, scratch: Any, places: Any, tolerance: float, least: float
) -> Any:
    """Return the extremes of the running sum of payoffs[codes] - v in the order of v [n].

    They are taken at the end of all points, and where the next v is further than the tolerance. If
    bounds on them show that their range is below `least`, the bounds are returned.
    `scratch` float64 [n] and `places` int32 [2, n] are working memory.
    """
    n = v.size
    bucket, index = places[0], places[1]
    _fill_buckets(v, scratch, bucket)
    # Of few points, most buckets are empty, and steps bucket by bucket would take most of the time.
    count = _number(bucket) if n < BUCKETS else BUCKETS
    parts = np.zeros((count, 2))  # the sums of positive and of negative residuals
    for i in range(n):
        residual = payoffs[codes[i]] - v[i]
        parts[bucket[i], 1 if residual < 0 else 0] += abs(residual)
    starts = np.zeros(count + 1)  # the sum of all points before each bucket
    lowest = highest = 0.0  # whatever the order inside each bucket
    for b in range(count):
        lowest = min(lowest, starts[b] - parts[b, 1])
        highest = max(highest, starts[b] + parts[b, 0])
        starts[b + 1] = starts[b] + (parts[b, 0] - parts[b, 1])
    if highest - lowest < least:
        return lowest, highest
    ends, is_wide = np.ones(count, np.bool_), np.ones(count, np.bool_)
    if tolerance > 0:
        _mark_gaps(v, bucket, tolerance, ends, is_wide)
    low = high = 0.0
    for b in range(count):
        if ends[b]:
            low, high = min(low, starts[b + 1]), max(high, starts[b + 1])
    is_open = np.zeros(count, np.bool_)
    for b in range(count):  # those inside which the running sum may leave [low, high]
        beyond = starts[b] + parts[b, 0] > high or starts[b] - parts[b, 1] < low
        is_open[b] = beyond and is_wide[b]
    m = 0
    for i in range(n):
        index[m] = i
        m += is_open[bucket[i]]
    if m == 0:
        return low, high
    inside = _walk_open(v, payoffs, codes, starts, bucket, index[:m], tolerance, ends)
    return min(low, inside[0]), max(high, inside[1])
