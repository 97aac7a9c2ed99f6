"""The range of a sorted running sum without the sort: buckets first, a sort where it matters.

Only the extremes of the running sum of residuals are needed. One pass assigns the points to buckets
ordered by predicted utility and keeps, for each bucket, the sums of the positive and of the
negative residuals. The running sum is then known at every bucket's border. Inside a bucket it can
exceed the larger border, or fall below the smaller, only if the bucket has residuals of both signs.
It then lies between the start minus the negative part and the start plus the positive part. Only
buckets that can still hold an extreme are sorted. Equal predictions share a bucket, so borders cut
no tie. The result is exact up to the rounding of sums.

With a tolerance, an interval may end only where two neighbouring predictions differ by more than
it. A bucket's border is such a place if the gap across it is wide enough; a bucket narrower than
the tolerance contains none.

Buckets are spaced by the logarithm of the distance to the smallest or the largest prediction, the
one nearer to the mean, where predictions crowd: probabilities of a class near 0, top-K sums near 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .compiled import compiled, compiled_sums

BITS = 6
"""2^BITS buckets per octave of the distance."""
OCTAVES = 32
BUCKETS = OCTAVES << BITS
SHIFT = 52 - BITS
ALL_BUT_SIGN = np.int64(0x7FFFFFFFFFFFFFFF)


def memory_of(points: int) -> tuple[NDArray[Any], ...]:
    """Return the working memory of `ranges_by_buckets` for n points.

    A kernel that makes arrays itself takes longer to compile.
    """
    extremes, (bucket, index) = np.empty(2), np.empty((2, points), np.int32)
    parts, limits = np.empty((2, BUCKETS, 2))
    flags, of_points = np.empty((2, BUCKETS), np.bool_), (np.empty(points), bucket, index)
    of_buckets = np.empty(BUCKETS, np.int32), parts, limits, np.empty(BUCKETS + 1), *flags
    return extremes, extremes.view(np.int64), *of_points, *of_buckets


@compiled
def key_of(distance: Any, shift: int) -> Any:
    """Return the number of a distance's bucket: the leading bits of a double grow with it.

    They grow like its logarithm, with straight lines between powers of two.
    """
    return np.float64(distance).view(np.int64) >> shift


@compiled
def _grown(bits: Any) -> Any:
    """Turn a double's bits into an integer that grows with the double, and back."""
    return bits ^ ((bits >> 63) & ALL_BUT_SIGN)


@compiled_sums
def sum_and_extremes(v: Any, bits: Any, extremes: Any) -> Any:
    """Return the sum of v, and write the bits of its extremes.

    Integers have no NaN, so they are compared in vector lanes.
    """
    smallest, largest = ALL_BUT_SIGN, ~ALL_BUT_SIGN
    total = 0.0
    for i in range(v.size):
        grown = _grown(bits[i])
        smallest = min(smallest, grown)
        largest = max(largest, grown)
        total += v[i]
    extremes[0], extremes[1] = _grown(smallest), _grown(largest)
    return total


@compiled_sums
def _largest_part(v: Any, table: Any, codes: Any) -> Any:
    """Return the larger of the sums of positive and of negative residuals: no interval has more.

    Both follow from Σ |u - v| and Σ (u - v), which are summed in vector lanes, without a branch.
    """
    absolute = net = 0.0
    for i in range(v.size):
        residual = table[codes[i]] - v[i]
        absolute += abs(residual)
        net += residual
    return (absolute + abs(net)) / 2


@compiled
def _fill_buckets(
    v: Any, total: float, smallest: float, largest: float, distance: Any, bucket: Any
) -> None:
    """Write the bucket of every point; a larger v never gets a smaller bucket."""
    from_top = total / v.size - smallest > largest - total / v.size
    for i in range(v.size):
        # -0.0 - 0.0 is negative zero, whose bits would send it to a bucket of its own.
        distance[i] = (largest - v[i] if from_top else v[i] - smallest) + 0.0
    last = key_of(largest - smallest, SHIFT)
    for i in range(v.size):
        key = max(key_of(distance[i], SHIFT) - last + (BUCKETS - 1), 0)
        bucket[i] = BUCKETS - 1 - key if from_top else key


@compiled
def _number(bucket: Any, numbers: Any) -> int:
    """Number the buckets that hold points from 0, in their order, and return how many there are.

    numbers: int32 [2048], working memory.
    """
    numbers[:] = 0
    for i in range(bucket.size):
        numbers[bucket[i]] = 1
    count = 0
    for b in range(BUCKETS):
        count += numbers[b]
        numbers[b] = count - 1
    for i in range(bucket.size):
        bucket[i] = numbers[bucket[i]]
    return count


@compiled
def _mark_gaps(v: Any, bucket: Any, tolerance: float, limits: Any, ends: Any, is_wide: Any) -> None:
    """Mark the buckets that end in a gap wider than the tolerance, and those that may hold one."""
    for b in range(ends.size):
        limits[b, 0], limits[b, 1] = np.inf, -np.inf
    for i in range(v.size):
        of_bucket = limits[bucket[i]]
        of_bucket[0] = min(of_bucket[0], v[i])
        of_bucket[1] = max(of_bucket[1], v[i])
    following = np.inf
    for b in range(ends.size - 1, -1, -1):
        smallest, largest = limits[b, 0], limits[b, 1]
        ends[b] = largest >= smallest and following - largest > tolerance
        is_wide[b] = largest - smallest > tolerance
        following = min(following, smallest)


@compiled
def _sort(keys: Any, places: Any) -> None:
    """Sort keys, and places where keys are equal: Shell's sort (gaps of Knuth 1973).

    numba's own sorts take over a second to compile.
    """
    gap = 1
    while gap < places.size // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, places.size):
            key, place, j = keys[i], places[i], i
            while j >= gap:
                other = keys[j - gap]
                if other < key or (other == key and places[j - gap] < place):
                    break
                keys[j], places[j] = other, places[j - gap]
                j -= gap
            keys[j], places[j] = key, place
        gap //= 3


@compiled
def _walk_open(
    v: Any, table: Any, codes: Any, starts: Any, bucket: Any, rows: Any, keys: Any,
    tolerance: float, ends: Any,
) -> Any:  # fmt: skip
    """Sort the points `rows` of the open buckets and walk through them."""
    for k in range(rows.size):
        keys[k] = v[rows[k]]
    _sort(keys, rows)
    low = high = total = 0.0
    current = -1
    for k in range(rows.size):
        i = rows[k]
        if bucket[i] != current:
            current = bucket[i]
            total = starts[current]
        total += table[codes[i]] - v[i]
        following = rows[min(k + 1, rows.size - 1)]
        if k == rows.size - 1 or bucket[following] != current:
            is_end = ends[current]
        else:
            is_end = v[following] - v[i] > tolerance
        if is_end:
            low, high = min(low, total), max(high, total)
    return low, high


@compiled
def ranges_by_buckets(
    predicted: Any, bits: Any, payoffs: Any, codes: Any, memory: Any,
    tolerance: float, margin: float, known: float, ranges: Any,
) -> None:  # fmt: skip
    """Write the ranges [b] of the running sums of payoffs[codes] - v in the order of v [b, n].

    The running sum is read after the last point, and wherever the next v is more than `tolerance`
    away. If bounds on a range show that it is smaller than the largest by `margin`, the bound is
    written. The largest is of these ranges and of `known`.
    bits: those of v, as integers. memory: `memory_of`.
    """
    # In the order of `memory_of`: two views of the extremes, three arrays by point, then by bucket.
    extremes, extreme_bits, distance, bucket, index, numbers = memory[:6]
    parts, limits, starts, of_ends, of_open = memory[6:]
    rows, n = predicted.shape
    widest = known
    for row in range(rows):
        v, table = predicted[row], payoffs[row]
        if widest > margin:
            # Of a thousand classes most are too rare to have the largest error, whatever the order.
            largest_part = _largest_part(v, table, codes)
            if largest_part < widest - margin:
                ranges[row] = largest_part
                continue
        total = sum_and_extremes(v, bits[row], extreme_bits)
        _fill_buckets(v, total, extremes[0], extremes[1], distance, bucket)
        # Of few points, most buckets are empty, and steps by bucket would take most of the time.
        count = _number(bucket, numbers) if n < BUCKETS else BUCKETS
        parts[:count] = 0.0
        for i in range(n):
            residual = table[codes[i]] - v[i]
            parts[bucket[i], 1 if residual < 0 else 0] += abs(residual)
        low = high = 0.0  # bounds, whatever the order inside each bucket
        starts[0] = 0.0
        for b in range(count):
            low = min(low, starts[b] - parts[b, 1])
            high = max(high, starts[b] + parts[b, 0])
            starts[b + 1] = starts[b] + (parts[b, 0] - parts[b, 1])
        if high - low >= widest - margin:
            ends, is_open = of_ends[:count], of_open[:count]
            ends[:] = is_open[:] = True
            if tolerance > 0:
                _mark_gaps(v, bucket, tolerance, limits, ends, is_open)
            low = high = 0.0
            for b in range(count):
                if ends[b]:
                    low, high = min(low, starts[b + 1]), max(high, starts[b + 1])
            for b in range(count):  # those inside which the running sum may leave [low, high]
                is_above = starts[b] + parts[b, 0] > high
                is_open[b] &= is_above | (starts[b] - parts[b, 1] < low)
            m = 0
            for i in range(n):
                # A filter without branches: the next i overwrites a point of no open bucket.
                index[m] = i
                m += is_open[bucket[i]]
            inside = _walk_open(
                v, table, codes, starts, bucket, index[:m], distance, tolerance, ends
            )
            low, high = min(low, inside[0]), max(high, inside[1])
        ranges[row] = high - low
        widest = max(widest, ranges[row])
