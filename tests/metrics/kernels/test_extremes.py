"""Extremes of two doubles are what Python says, and are stored without a mask."""

import itertools

import numba
import numpy as np
import pytest

from metrics.kernels.extremes import larger, smaller

VALUES = (-np.inf, -2.5, -1e-300, 0.0, 3.0, 1e300, np.inf)


def keep_extremes(values, low, high):
    for i in range(values.size):
        low[i] = smaller(low[i], values[i])
        high[i] = larger(high[i], values[i])


@pytest.mark.parametrize("form", [keep_extremes, numba.njit(keep_extremes)], ids=["plain", "numba"])
def test_extremes_are_those_of_python(form):
    pairs = np.array(list(itertools.product(VALUES, VALUES))).repeat(3, axis=0)  # fills lanes
    low, high = pairs[:, 0].copy(), pairs[:, 0].copy()
    form(pairs[:, 1].copy(), low, high)
    np.testing.assert_array_equal(low, pairs.min(axis=1))
    np.testing.assert_array_equal(high, pairs.max(axis=1))


def test_a_loop_over_lanes_stores_without_a_mask():
    compiled = numba.njit(keep_extremes)
    compiled(np.ones(8), np.ones(8), np.ones(8))
    (code,) = compiled.inspect_asm().values()
    assert "vmaskmov" not in code and "{%k" not in code
