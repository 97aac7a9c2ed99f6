"""What one pass over the rows finds, against NumPy."""

import numpy as np
import pytest

from utility_calibration.metrics.kernels import row_facts
from utility_calibration.metrics.kernels.bin_sums import sums_in_bins
from utility_calibration.metrics.kernels.row_facts import facts_of_rows


def layouts(matrix):
    """The same numbers in arrays of every kind that a caller may give."""
    read_only = matrix.copy()
    read_only.flags.writeable = False
    return [matrix, np.asfortranarray(matrix), np.repeat(matrix, 2, axis=1)[:, ::2], read_only]


@pytest.mark.parametrize("shape", [(1, 2), (7, 3), (300, 1000)])
def test_facts_are_numpys_for_arrays_of_every_kind(shape, monkeypatch):
    monkeypatch.setattr(row_facts, "TOGETHER", 1 << 17)  # three blocks of the last shape
    random = np.random.default_rng(0)
    matrix = random.normal(size=shape).round(1)  # many ties, and zeros of both signs
    for same in layouts(matrix):
        facts = facts_of_rows(same)
        assert (facts.smallest, facts.largest) == (matrix.min(), matrix.max())
        assert facts.top.tolist() == matrix.argmax(axis=1).tolist()
        np.testing.assert_allclose(facts.sums, matrix.sum(axis=1), rtol=0, atol=1e-11)


@pytest.mark.parametrize("value", [np.nan, -np.nan, np.inf, -np.inf])
def test_a_sum_shows_values_that_are_not_finite(value):
    matrix = np.full((3, 20), 0.05)
    matrix[1, 4] = value
    assert np.isfinite(facts_of_rows(matrix).sums).tolist() == [True, False, True]


def test_sums_in_bins_are_those_of_a_loop():
    random = np.random.default_rng(0)
    v, weights = random.random((50, 3)), random.random(50)
    v[:4] = [[0, 1, 0.5], [1, 0, 0], [-1e-7, 1 + 1e-7, 0.25], [0.2, 0.4, 0.6]]
    occurred = random.integers(-1, 3, size=50)
    expected = np.zeros((3, 5))
    for i, event in np.ndindex(v.shape):
        k = min(max(int(np.floor(v[i, event] * 5)), 0), 4)
        expected[event, k] += weights[i] * ((occurred[i] == event) - v[i, event])
    for same in layouts(v):
        found = sums_in_bins(same, occurred, weights, 5)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
