"""Ranges of sorted running sums under many draws of the labels.

Most draws give a point the same label, because a forecast is sure of most points. So all draws
share one running sum, that of each point's usual outcome. A draw keeps only the difference that its
unusual outcomes make: one update per unusual outcome, instead of one lookup in the payoffs for each
point and draw. Between two unusual outcomes all draws change by the same amount. So we track the
extremes of the shared sum and add each draw's difference once per stretch.

A point's unusual outcomes are in the order of their codes. A class or a K of the K most probable
classes pays the same for most codes. Runs of such codes are skipped at both ends, so few outcomes
are read. At a thousand classes a point may have hundreds of runs, of which a search by doubled
steps reads few; at ten classes its first steps are those of a plain walk.

Running extremes are stored as `min(…) + 0.0`. Without the addition, the compiler stores only where
the extreme changes, and such masked stores are four times as slow on AMD processors with AVX2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .compiled import compiled
from .threads import row_blocks


def draws_of(codes: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Split the outcome codes [n, R] of n points in R draws into usual and unusual ones.

    Returns:
        usual: [n], a frequent code of each point.
        unusual: [k], the other codes with their draws, point by point in ascending order. The upper
            half of an entry's bits is the code, the lower half is the draw.
        runs: [r + 1], where each run of entries with one point and one code starts in `unusual`.
        run_codes: [r], the code of each run.
        first_runs: [n + 1], where the runs of each point start in `runs`.
    """
    n, draws = codes.shape
    usual, starts = np.zeros(n, codes.dtype), np.zeros(n + 1, np.int64)
    _find_usual(codes, usual, starts)
    np.cumsum(starts, out=starts)
    kind: Any = np.uint32 if codes.itemsize == 2 and draws <= 1 << 16 else np.uint64
    unusual = np.empty(starts[-1], kind)
    numbers, shift = np.arange(draws, dtype=kind), kind(4 * unusual.itemsize)
    for start, stop in row_blocks(n, draws):
        entries = (codes[start:stop].astype(kind) << shift) | numbers
        entries.sort(axis=1)
        is_unusual = (entries >> shift) != usual[start:stop, None]
        unusual[starts[start] : starts[stop]] = entries[is_unusual]
    is_first, of_entries = np.ones(len(unusual) + 1, np.bool_), unusual >> shift
    np.not_equal(of_entries[1:], of_entries[:-1], out=is_first[1:-1])
    is_first[starts] = True
    runs = np.flatnonzero(is_first)
    run_codes = of_entries[runs[:-1]].astype(np.uint32)
    return usual, unusual, runs, run_codes, np.searchsorted(runs, starts)


@compiled
def _find_usual(codes: Any, usual: Any, counts: Any) -> None:
    """Write the code of most draws, if more than half agree, and how many others there are."""
    n, draws = codes.shape
    for i in range(n):
        lead = 0  # of the candidate over all other codes (Boyer and Moore)
        for draw in range(draws):
            if lead == 0:
                usual[i] = codes[i, draw]
            lead += 1 if codes[i, draw] == usual[i] else -1
        for draw in range(draws):
            counts[i + 1] += codes[i, draw] != usual[i]


@compiled
def ranges_of_draws(
    predicted: Any, orders: Any, payoffs: Any, outcomes: Any, edges: Any, sums: Any
) -> None:
    """Write to `sums` low, high [b, R] and at_edges [b, R, E]: those of `prefix_range`, by utility.

    orders [b, n] sorts the rows of `predicted`; edges [1, E] increase. `outcomes` are those of
    `draws_of`, and the weights of the points, [n].
    """
    usual, unusual, runs, run_codes, first_runs, weights = outcomes
    low, high, at_edges = sums
    rows, n = predicted.shape
    draws = low.shape[1]
    away, before = np.empty(draws), np.empty(draws)
    equal_from, equal_to = np.empty((2, payoffs.shape[1]), np.int64)
    for row in range(rows):
        smallest, largest = low[row], high[row]
        v, order, table = predicted[row], orders[row], payoffs[row]
        _find_equal_codes(table, equal_from, equal_to)
        total = 0.0  # of the usual outcomes; its extremes since any draw went another way
        lowest, highest = np.inf, -np.inf
        for draw in range(draws):
            away[draw] = smallest[draw] = largest[draw] = 0.0
        edge, passed = 0, 0.0
        for j in range(n):
            i = order[j]
            payoff, weight = table[usual[i]], weights[i]
            # Runs at both ends that pay the same as the usual outcome change nothing.
            first, last = first_runs[i], first_runs[i + 1]
            while first < last and table[run_codes[first]] == payoff:
                first = _first_from(run_codes, first, last, equal_to[run_codes[first]])
            while first < last and table[run_codes[last - 1]] == payoff:
                last = _end_before(run_codes, first, last, equal_from[run_codes[last - 1]])
            others = unusual[runs[first] : runs[last]]
            while edge < edges.shape[1] and edges[0, edge] < passed + weight:
                share = edges[0, edge] - passed
                for draw in range(draws):
                    before[draw] = away[draw]
                _add_unusual(others, table, payoff, share, before)
                for draw in range(draws):
                    at_edges[row, draw, edge] = before[draw] + (total + share * (payoff - v[i]))
                edge += 1
            passed += weight
            if others.size:
                widen(lowest, highest, away, smallest, largest)
                lowest, highest = np.inf, -np.inf
            _add_unusual(others, table, payoff, weight, away)
            total += weight * (payoff - v[i])
            if j == n - 1 or v[i] != v[order[j + 1]]:
                lowest, highest = min(lowest, total), max(highest, total)
        for last_edge in range(edge, edges.shape[1]):  # reached by all points, up to rounding
            for draw in range(draws):
                at_edges[row, draw, last_edge] = total + away[draw]
        widen(lowest, highest, away, smallest, largest)


@compiled
def _find_equal_codes(table: Any, equal_from: Any, equal_to: Any) -> None:
    """Write where the run of codes that pay the same as each code begins, and where it ends."""
    last = table.size - 1
    for code in range(table.size):
        continues = code > 0 and table[code] == table[code - 1]
        equal_from[code] = equal_from[code - 1] if continues else code
    for code in range(last, -1, -1):
        continues = code < last and table[code] == table[code + 1]
        equal_to[code] = equal_to[code + 1] if continues else code + 1


@compiled
def _bisected(ascending: Any, low: int, high: int, code: int) -> int:
    """Return the place of the first number >= `code` from `low` on; `high` if all are smaller."""
    while low < high:
        middle = (low + high) // 2
        if ascending[middle] < code:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _first_from(ascending: Any, first: int, last: int, code: int) -> int:
    """Return the place of the first number >= `code` after place `first` and up to `last`."""
    step = 1
    while first + step < last and ascending[first + step] < code:
        first += step
        step *= 2
    return _bisected(ascending, first + 1, min(first + step, last), code)


@compiled
def _end_before(ascending: Any, first: int, last: int, code: int) -> int:
    """Return the end of the numbers < `code` from place `first` up to `last` - 1."""
    step = 1
    while last - 1 - step >= first and ascending[last - 1 - step] >= code:
        last -= step
        step *= 2
    return _bisected(ascending, max(last - step, first), last - 1, code)


@compiled
def _add_unusual(unusual: Any, table: Any, payoff: float, weight: float, away: Any) -> None:
    """Add what one point's unusual outcomes pay more than its usual one, times its weight."""
    shift = np.uint64(4 * unusual.itemsize)
    mask = (np.uint64(1) << shift) - np.uint64(1)
    for k in range(unusual.size):
        entry = np.uint64(unusual[k])
        away[entry & mask] += weight * (table[entry >> shift] - payoff)


@compiled
def widen(lowest: float, highest: float, away: Any, smallest: Any, largest: Any) -> None:
    """Widen the extremes [R] of the draws by sums from `lowest` to `highest`, plus `away` [R]."""
    for draw in range(away.size):
        smallest[draw] = min(smallest[draw], lowest + away[draw]) + 0.0
        largest[draw] = max(largest[draw], highest + away[draw]) + 0.0
