"""Decisions against their definition, and where they are a class that has another name."""

import numpy as np
import pytest

from metrics import Decision, TopClass, reference

KINDS = ["smooth", "saturated", "dyadic", "one_hot", "flat"]
EXACT = [-1.0, -0.5, 0.0, 0.25, 1.0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("actions", [1, 2, 5])
def test_a_decision_pays_the_negative_loss_of_the_best_action(kind, actions, forecast_of):
    p, y = forecast_of(kind, 14, 4, 0)
    losses = np.random.default_rng(0).choice(EXACT, size=(5, 4, actions))
    if kind in ("smooth", "saturated"):  # no ties between actions but those of the exact kinds
        losses = losses + np.random.default_rng(1).normal(scale=0.01, size=losses.shape)
    expected = reference.calibration_errors([reference.decision(p, loss) for loss in losses], p, y)
    errors = Decision(losses).calibration_errors(p, y)
    np.testing.assert_allclose(errors, expected, atol=1e-13)
    one = Decision(losses[1]).calibration_errors(p, y)
    assert one == pytest.approx(expected[1], abs=1e-13)


def test_deciding_for_the_most_probable_class_is_top_class(forecast_of):
    p, y = forecast_of("dyadic", 200, 5, 1)
    right_or_wrong = 1 - np.eye(5)
    decided = Decision(right_or_wrong).calibration_errors(p, y)
    np.testing.assert_allclose(decided, TopClass().calibration_errors(p, y), atol=1e-14)
