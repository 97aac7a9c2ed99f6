"""Weights that are counts, and weights of which only the proportions say something."""

import numpy as np
import pytest

from utility_calibration.metrics.weights import (
    LARGEST_COUNT,
    are_counts,
    are_equal,
    as_counts,
    counted,
    effective_points,
    say_nothing,
)


def test_whole_numbers_are_counts_and_their_sum_is_the_number_of_points():
    assert effective_points(np.array([1.0, 2.0, 5.0])) == 8
    assert as_counts(np.array([1.0, 2.0, 5.0])).tolist() == [1, 2, 5]
    sets = np.array([[1.0, 2.0], [1.0, 2.5], [1.0, LARGEST_COUNT], [1.0, LARGEST_COUNT / 2]])
    assert are_counts(sets).tolist() == [True, False, False, True]


@pytest.mark.parametrize("unit", [1e-90, 0.1, 1e90])
def test_of_other_weights_kishs_number_counts_in_any_unit(unit):
    """(1.5 + 1 + .5)² / (1.5² + 1 + .5²) = 9 / 3.5."""
    weights = unit * np.array([1.5, 1.0, 0.5])
    assert effective_points(weights) == pytest.approx(9 / 3.5)
    assert as_counts(weights) == pytest.approx(9 / 3.5 / 3 * np.array([1.5, 1.0, 0.5]))


def test_equal_weights_say_nothing_but_counts_above_one_do():
    assert are_equal(0.3, 0.3 * (1 + 1e-10)) and not are_equal(0.3, 0.3 * (1 + 1e-8))
    said = [say_nothing(least, most) for least, most in ((1, 1), (0.3, 0.3), (2, 2), (1, 2))]
    assert said == [True, True, False, False]


def test_points_of_weight_0_do_not_count():
    rows, weights = counted(np.array([0.0, 2.0, 3.0]))
    assert rows.tolist() == [False, True, True] and weights.tolist() == [2, 3]
    rows, weights = counted(np.array([0.0, 0.3, 0.3]))
    assert rows.tolist() == [False, True, True] and weights is None
    rows, weights = counted(np.array([2.0, 3.0]))
    assert rows is None and weights.tolist() == [2, 3]
