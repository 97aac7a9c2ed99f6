"""Decisions, similarity, functions, and a class of one's own, against plain definitions."""

import numpy as np
import pytest
import torch

from metrics import (
    Decision,
    FunctionUtility,
    InputError,
    Linear,
    Similarity,
    TopClass,
    UtilityClass,
    utility_calibration,
)
from metrics.utilities.decision import sample_losses

KINDS = ["smooth", "saturated", "dyadic", "one_hot", "flat"]
EXACT = [-1.0, -0.5, 0.0, 0.25, 1.0]


def action_of(p, loss):
    expected = [sum(p[i] * loss[i, a] for i in range(len(p))) for a in range(loss.shape[1])]
    return expected.index(min(expected))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("actions", [1, 2, 5])
def test_a_decision_pays_the_negative_loss_of_the_best_action(
    kind, actions, forecast_of, slow_error
):
    p, y = forecast_of(kind, 14, 4, 0)
    losses = np.random.default_rng(0).choice(EXACT, size=(5, 4, actions))
    if kind in ("smooth", "saturated"):  # no ties between actions but those of the exact kinds
        losses = losses + np.random.default_rng(1).normal(scale=0.01, size=losses.shape)
    expected = [
        slow_error(p, y, lambda p, j, loss=loss: -loss[j, action_of(p, loss)]) for loss in losses
    ]
    errors = Decision(losses).calibration_errors(p, y)
    np.testing.assert_allclose(errors, expected, atol=1e-13)
    one = Decision(losses[1]).calibration_errors(p, y)
    assert one == pytest.approx(expected[1], abs=1e-13)


def test_deciding_for_the_most_probable_class_is_top_class(forecast_of):
    p, y = forecast_of("dyadic", 200, 5, 1)
    right_or_wrong = 1 - np.eye(5)
    decided = Decision(right_or_wrong).calibration_errors(p, y)
    np.testing.assert_allclose(decided, TopClass().calibration_errors(p, y), atol=1e-14)


def test_sampled_losses_are_bounded_and_named_by_their_seed():
    losses = sample_losses(200, 5, 3, 0)
    assert losses.shape == (200, 5, 3)
    assert torch.equal(losses, sample_losses(200, 5, 3, 0))
    assert not torch.equal(losses, sample_losses(200, 5, 3, 1))
    assert float(losses.min()) >= -1
    assert float(losses.max()) <= 1
    assert float(losses.mean()) == pytest.approx(0, abs=0.05)
    assert float(losses.var()) == pytest.approx(1 / 3, abs=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_similarity_expects_the_similarity_to_the_outcome(kind, forecast_of, slow_error):
    p, y = forecast_of(kind, 14, 4, 2)
    matrix = np.random.default_rng(2).choice(EXACT, size=(4, 4))  # not symmetric: i first, then j
    np.fill_diagonal(matrix, 1)
    expected = slow_error(p, y, lambda p, j: sum(p[i] * matrix[i, j] for i in range(4)))
    assert Similarity(matrix).calibration_errors(p, y) == pytest.approx(expected, abs=1e-14)


def test_the_identity_as_similarity_expects_the_probability_of_the_outcome(forecast_of):
    p, y = forecast_of("dyadic", 90, 5, 3)
    expected = utility_calibration((p**2).sum(axis=1), p[np.arange(90), y])
    assert Similarity(np.eye(5)).calibration_errors(p, y)[0] == pytest.approx(expected, abs=1e-14)


def test_a_function_is_a_utility(forecast_of, slow_error):
    p, y = forecast_of("dyadic", 20, 3, 4)
    utility = FunctionUtility(lambda p: p.square() - torch.tensor([0.0, 0.5, 1.0]))
    expected = slow_error(p, y, lambda p, j: p[j] ** 2 - j / 2)
    assert utility.calibration_errors(p, y) == pytest.approx(expected, abs=1e-14)
    index, worst = utility.worst(p, y)
    assert index == 0
    assert worst.error == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize(
    ("function", "message"),
    [(lambda p: p.sum(dim=1), "shape"), (lambda p: p / 0, "NaN or infinite")],
)
def test_a_function_with_a_wrong_answer_is_told_so(function, message):
    with pytest.raises(InputError, match=message) as error:
        FunctionUtility(function).calibration_errors([[0.5, 0.5]], [0])
    assert "\n" not in str(error.value)


class Insurance(UtilityClass):
    """Pays m · p_j back when outcome j happens, for two premiums m."""

    premiums = (0.5, 1.0)

    def count(self, classes):
        return len(self.premiums)

    def outcome_utilities(self, forecast, index):
        return self.premiums[index] * forecast.probabilities


def test_a_class_of_ones_own_needs_two_methods(forecast_of, slow_error):
    p, y = forecast_of("dyadic", 20, 4, 5)
    expected = [slow_error(p, y, lambda p, j, m=m: m * p[j]) for m in Insurance.premiums]
    errors = Insurance().calibration_errors(p, y)
    np.testing.assert_allclose(errors, expected, atol=1e-14)
    index, worst = Insurance().worst(p, y)
    assert index == int(errors.argmax())
    assert worst.error == pytest.approx(errors.max(), abs=1e-14)


def test_an_unfinished_class_cannot_be_made():
    class Unfinished(UtilityClass):
        def count(self, classes):
            return 1

    with pytest.raises(TypeError, match="outcome_utilities"):
        Unfinished()


@pytest.mark.parametrize("kind", KINDS)
def test_the_worst_utility_of_a_class_attains_its_largest_error(kind, forecast_of):
    p, y = forecast_of(kind, 80, 5, 6)
    matrix = np.random.default_rng(3).choice(EXACT, size=(5, 5))
    for utilities in (Linear(matrix), Similarity(matrix), Decision(matrix[None]), Insurance()):
        errors = utilities.calibration_errors(p, y)
        index, worst = utilities.worst(p, y)
        assert index == int(errors.argmax())
        assert worst.error == pytest.approx(errors.max(), abs=1e-12)
