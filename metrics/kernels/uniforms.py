"""Uniform numbers by position: entry k of a stream is computed from k alone.

A stream's entry k is SplitMix64's k-th output: a 64-bit counter, key + k·γ, stirred by two
multiplications (Steele, Lea & Flood 2014; the finalizer is Stafford's variant 13). No state is kept
between calls. So any single entry of a very large matrix can be computed by itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array
from .compiled import compiled
from .draws import Draws
from .threads import over_blocks, row_blocks

GAMMA = 0x9E3779B97F4A7C15
FIRST = 0xBF58476D1CE4E5B9
SECOND = 0x94D049BB133111EB


def stream_keys(seed: int, count: int) -> Array:
    """Return the keys of `count` independent streams: int64 [count]."""
    return Draws(seed).keys(count)


def hashed_uniforms(keys: Array, positions: Array, high: float = 1.0) -> Array:
    """Return uniform numbers on [0, high): float64 [r, m].

    Args:
        keys: int64 [m], of m streams.
        positions: int64 [r, m], which entries of each stream, or [r, 1] for the same of all.
    """
    streams, places = keys.view(np.uint64), positions.view(np.uint64)
    uniforms = np.empty((len(places), len(streams)))

    def work(start: int, stop: int) -> None:
        _fill(streams, places[start:stop], high, uniforms[start:stop])

    over_blocks(work, row_blocks(*uniforms.shape))
    return uniforms


@compiled
def _fill(keys: Any, positions: Any, high: float, uniforms: Any) -> None:
    shared = positions.shape[1] == 1
    for row in range(uniforms.shape[0]):
        out = uniforms[row]
        # Two loops, because the one with a constant position multiplies nothing.
        if shared:
            offset = positions[row, 0] * np.uint64(GAMMA)
            for k in range(out.size):
                out[k] = _uniform(keys[k] + offset) * high
        else:
            places = positions[row]
            for k in range(out.size):
                out[k] = _uniform(keys[k] + places[k] * np.uint64(GAMMA)) * high


@compiled
def _uniform(state: Any) -> Any:
    z = (state ^ (state >> np.uint64(30))) * np.uint64(FIRST)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(SECOND)
    z = z ^ (z >> np.uint64(31))
    # The upper 53 bits; signed, because that conversion has a vector instruction.
    return np.float64(np.int64(z >> np.uint64(11))) * 2.0**-53
