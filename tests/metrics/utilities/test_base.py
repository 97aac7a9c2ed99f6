"""Functions and classes of one's own as utilities, and the worst utility of a class."""

import numpy as np
import pytest
import torch

from metrics import (
    Decision,
    FunctionUtility,
    Linear,
    Similarity,
    UtilityClass,
    reference,
)

KINDS = ["smooth", "saturated", "dyadic", "one_hot", "flat"]
EXACT = [-1.0, -0.5, 0.0, 0.25, 1.0]


def test_a_function_is_a_utility(forecast_of):
    p, y = forecast_of("dyadic", 20, 3, 4)
    utility = FunctionUtility(lambda p: p.square() - torch.tensor([0.0, 0.5, 1.0]))
    (expected,) = reference.calibration_errors([p**2 - [0, 0.5, 1]], p, y)
    assert utility.calibration_errors(p, y) == pytest.approx(expected, abs=1e-14)
    index, worst = utility.worst(p, y)
    assert index == 0
    assert worst.error == pytest.approx(expected, abs=1e-14)


class Insurance(UtilityClass):
    """Pays m · p_j back when outcome j happens, for two premiums m."""

    premiums = (0.5, 1.0)

    def count(self, classes):
        return len(self.premiums)

    def outcome_utilities(self, forecast, index):
        return self.premiums[index] * forecast.probabilities


def test_a_class_of_ones_own_needs_two_methods(forecast_of):
    p, y = forecast_of("dyadic", 20, 4, 5)
    expected = reference.calibration_errors([m * p for m in Insurance.premiums], p, y)
    errors = Insurance().calibration_errors(p, y)
    np.testing.assert_allclose(errors, expected, atol=1e-14)
    index, worst = Insurance().worst(p, y)
    assert index == int(errors.argmax())
    assert worst.error == pytest.approx(errors.max(), abs=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_the_worst_utility_of_a_class_attains_its_largest_error(kind, forecast_of):
    p, y = forecast_of(kind, 80, 5, 6)
    matrix = np.random.default_rng(3).choice(EXACT, size=(5, 5))
    for utilities in (Linear(matrix), Similarity(matrix), Decision(matrix[None]), Insurance()):
        errors = utilities.calibration_errors(p, y)
        index, worst = utilities.worst(p, y)
        assert index == int(errors.argmax())
        assert worst.error == pytest.approx(errors.max(), abs=1e-12)
