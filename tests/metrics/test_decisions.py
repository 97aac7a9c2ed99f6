"""Decisions by a forecast: what they cost, whether that is foreseen, and the decision curve."""

import numpy as np
import pytest

from utility_calibration.metrics import InputError, constant_losses, decisions, net_benefit
from utility_calibration.metrics.decision_losses import acting_threshold

LOSSES = np.array([[0.0, 3.0], [5.0, 0.0], [1.0, 1.0]])


def test_the_action_of_least_expected_loss_is_taken_and_paid():
    p = np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.0, 0.0, 1.0]])
    taken = decisions(LOSSES, p, np.array([1, 1, 0]))
    np.testing.assert_array_equal(taken.actions, [0, 1, 0])
    np.testing.assert_allclose(taken.expected, [0.5, 0.6, 1.0])
    np.testing.assert_array_equal(taken.realized, [5, 0, 0])
    np.testing.assert_allclose(taken.gaps(2), [(5 - 0.5 + 0 - 1) / 3, -0.6 / 3])
    np.testing.assert_allclose(constant_losses(LOSSES, np.array([1, 1, 0])), [10 / 3, 1.0])


def test_net_benefit_of_a_small_case_by_hand():
    p, event = np.array([0.9, 0.6, 0.3, 0.1]), np.array([1, 0, 1, 0])
    benefit = net_benefit(p, event, np.array([0.05, 0.25, 0.5, 0.95]))
    np.testing.assert_allclose(
        benefit, [2 / 4 - 2 / 4 / 19, 2 / 4 - 1 / 4 / 3, 1 / 4 - 1 / 4, 0], atol=1e-15
    )
    assert net_benefit(np.ones(4), event, [0.25]) == pytest.approx(0.5 - 0.5 / 3)


def test_the_threshold_of_a_binary_decision_is_where_both_actions_cost_the_same():
    losses = np.array([[0.0, 1.0], [9.0, 0.0]])  # a false alarm costs 1, a miss 9
    t = acting_threshold(losses)
    assert t == pytest.approx(0.1)
    p = np.array([[1 - t - 1e-9, t + 1e-9], [1 - t + 1e-9, t - 1e-9]])
    assert decisions(losses, p, [0, 0]).actions.tolist() == [1, 0]
    assert acting_threshold([[0.0, 1.0], [0.0, 1.0]]) is None


def test_the_order_of_other_metrics_is_told():
    with pytest.raises(InputError) as caught:
        decisions(np.full((4, 2), 0.5), np.array([0, 1, 0, 1]), np.eye(2))
    assert caught.value.fixes == ("decisions(losses, probabilities, labels)",)
