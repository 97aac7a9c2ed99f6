"""Numbers by position: SplitMix64."""

import numpy as np

from utility_calibration.metrics.kernels.uniforms import (
    GAMMA,
    hashed_uniforms,
    stream_keys,
)


def splitmix64(state):
    """The published algorithm in Python's integers, first output after `state`."""
    mask = (1 << 64) - 1
    z = (state + GAMMA) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def test_the_entries_are_those_of_splitmix64():
    assert splitmix64(1234567) == 6457827717110365317  # its authors' test vector
    keys = stream_keys(5, 3)
    uniforms = hashed_uniforms(keys, np.arange(1, 5)[:, None], high=2.0)
    for k, key in enumerate(keys.tolist()):
        for row in range(4):
            expected = splitmix64((key + row * GAMMA) % (1 << 64)) >> 11
            assert float(uniforms[row, k]) == expected * 2.0**-52


def test_positions_are_shared_or_per_stream():
    keys, positions = stream_keys(1, 7), np.arange(50)[:, None]
    shared = hashed_uniforms(keys, positions, 0.25)
    assert np.array_equal(shared, hashed_uniforms(keys, positions.repeat(7, axis=1), 0.25))
    assert np.array_equal(shared[3:4, 2:3], hashed_uniforms(keys[2:3], positions[3:4], 0.25))
