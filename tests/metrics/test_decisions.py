"""Decisions by a forecast: what they cost, whether that is foreseen, and the decision curve."""

import numpy as np
import pytest

from utility_calibration.metrics import Decision
from utility_calibration.metrics.decision_losses import acting_threshold, decide

LOSSES = np.array([[0.0, 3.0], [5.0, 0.0], [1.0, 1.0]])


def test_the_action_of_least_expected_loss_is_taken_and_paid():
    p, y = np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.0, 0.0, 1.0]]), np.array([1, 1, 0])
    taken, _ = decide(p, y, LOSSES)
    np.testing.assert_allclose(taken.expected, [0.5, 0.6, 1.0])
    np.testing.assert_array_equal(taken.realized, [5, 0, 0])
    user = Decision(LOSSES)
    np.testing.assert_array_equal(user.decide(p), [0, 1, 0])
    assert user.mean_loss(p, y) == pytest.approx(5 / 3)
    np.testing.assert_allclose(user.gaps(p, y), [(5 - 0.5 + 0 - 1) / 3, -0.6 / 3])
    np.testing.assert_allclose(user.constant_losses(y), [10 / 3, 1.0])


def test_the_second_of_two_tables_decides_where_it_is_asked_for():
    p, y = np.array([[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.1, 0.0, 0.9]]), np.array([1, 1, 0])
    both = Decision([LOSSES, LOSSES[:, ::-1]])
    np.testing.assert_array_equal(both.decide(p, index=1), 1 - Decision(LOSSES).decide(p))
    assert both.mean_loss(p, y, index=1) == Decision(LOSSES).mean_loss(p, y)
    np.testing.assert_allclose(both.constant_losses(y, index=1), [1.0, 10 / 3])


def test_net_benefit_of_a_small_case_by_hand():
    event = np.array([1, 0, 1, 0])
    p = np.array([[0.1, 0.9], [0.4, 0.6], [0.7, 0.3], [0.9, 0.1]])
    user = Decision([[0, 1], [3, 0]])  # a false alarm costs 1, a miss 3: acts from 1/4 on
    benefit = user.net_benefit(p, event, thresholds=[0.05, 0.25, 0.5, 0.95])
    np.testing.assert_allclose(
        benefit, [2 / 4 - 2 / 4 / 19, 2 / 4 - 1 / 4 / 3, 1 / 4 - 1 / 4, 0], atol=1e-15
    )
    assert user.net_benefit(p, event) == pytest.approx(benefit[1:2])
    other = user.net_benefit(p[:, ::-1], 1 - event, thresholds=[0.25], event=0)
    assert other == pytest.approx(benefit[1:2])
    always = np.tile([0.0, 1.0], (4, 1))
    assert user.net_benefit(always, event) == pytest.approx(0.5 - 0.5 / 3)


def test_the_threshold_of_a_binary_decision_is_where_both_actions_cost_the_same():
    losses = np.array([[0.0, 1.0], [9.0, 0.0]])  # a false alarm costs 1, a miss 9
    t = acting_threshold(losses)
    assert t == pytest.approx(0.1)
    p = np.array([[1 - t - 1e-9, t + 1e-9], [1 - t + 1e-9, t - 1e-9]])
    assert Decision(losses).decide(p).tolist() == [1, 0]
    assert acting_threshold([[0.0, 1.0], [0.0, 1.0]]) is None
