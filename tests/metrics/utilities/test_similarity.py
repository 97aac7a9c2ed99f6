"""Similarity against its definition."""

import numpy as np
import pytest

from metrics import Similarity, reference, utility_calibration

KINDS = ["smooth", "saturated", "dyadic", "one_hot", "flat"]
EXACT = [-1.0, -0.5, 0.0, 0.25, 1.0]


@pytest.mark.parametrize("kind", KINDS)
def test_similarity_expects_the_similarity_to_the_outcome(kind, forecast_of):
    p, y = forecast_of(kind, 14, 4, 2)
    matrix = np.random.default_rng(2).choice(EXACT, size=(4, 4))  # not symmetric: i first, then j
    np.fill_diagonal(matrix, 1)
    expected = reference.calibration_errors([reference.similarity(p, matrix)], p, y)
    np.testing.assert_allclose(Similarity(matrix).calibration_errors(p, y), expected, atol=1e-14)


def test_the_identity_as_similarity_expects_the_probability_of_the_outcome(forecast_of):
    p, y = forecast_of("dyadic", 90, 5, 3)
    expected = utility_calibration((p**2).sum(axis=1), p[np.arange(90), y])
    assert Similarity(np.eye(5)).calibration_errors(p, y)[0] == pytest.approx(expected, abs=1e-14)
