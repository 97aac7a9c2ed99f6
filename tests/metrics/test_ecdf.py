"""The distribution of errors over utilities, and its confidence band."""

import math

import numpy as np
import pytest

from metrics import dkw_band, ecdf
from metrics.ecdf import levels, thin


def test_levels_count_the_utilities_up_to_an_error():
    errors, levels = ecdf([0.3, 0.1, 0.2, 0.1])
    np.testing.assert_array_equal(errors, [0.1, 0.1, 0.2, 0.3])
    np.testing.assert_array_equal(levels, [0.25, 0.5, 0.75, 1.0])
    for x, level in zip(errors[1:], levels[1:]):  # the last of equal ones
        assert level == np.mean(errors <= x)


def test_the_band_has_massarts_width():
    assert dkw_band(1500) == pytest.approx(0.0351, abs=1e-4)
    assert dkw_band(1, 0.5) == pytest.approx(math.sqrt(math.log(4) / 2))
    assert dkw_band(100, 0.5) == pytest.approx(math.sqrt(math.log(4) / 200))


def test_a_drawn_ecdf_keeps_both_ends():
    assert thin(9, 3).tolist() == [0, 4, 8]
    assert thin(2, 5).tolist() == [0, 1]
    assert levels(4).tolist() == [0.25, 0.5, 0.75, 1.0]
