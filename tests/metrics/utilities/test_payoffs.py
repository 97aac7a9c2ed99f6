"""Utilities that pay by class or by rank, against the vectors that define them."""

import numpy as np
import pytest
import torch

from metrics import (
    ClassWise,
    DiscountedCumulativeGain,
    InputError,
    Linear,
    Rank,
    TopClass,
    TopK,
    reference,
)
from metrics.forecast import Forecast

KINDS = ["smooth", "saturated", "dyadic", "one_hot", "flat"]
CLASSES = [2, 3, 5]
EXACT = [-1.0, -0.5, 0.0, 0.25, 1.0]
"""Payoffs whose products with dyadic probabilities are exact: ties are ties in any order."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", CLASSES)
def test_class_wise_asks_for_one_class_against_the_others(kind, classes, forecast_of):
    p, y = forecast_of(kind, 14, classes, 0)
    vectors = [reference.class_wise(p, c) for c in range(classes)]
    expected = reference.calibration_errors(vectors, p, y)
    np.testing.assert_allclose(ClassWise().calibration_errors(p, y), expected, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", CLASSES)
def test_top_k_asks_whether_the_outcome_is_among_the_first(kind, classes, forecast_of):
    p, y = forecast_of(kind, 14, classes, 1)
    vectors = [reference.top_k(p, k) for k in range(1, classes + 1)]
    errors = TopK().calibration_errors(p, y)
    np.testing.assert_allclose(errors, reference.calibration_errors(vectors, p, y), atol=1e-14)
    for ks in ((classes, 1), np.array([classes, 1])):
        np.testing.assert_array_equal(TopK(ks=ks).calibration_errors(p, y), errors[[-1, 0]])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", CLASSES)
def test_top_class_asks_whether_the_first_of_the_most_probable_is_right(kind, classes, forecast_of):
    p, y = forecast_of(kind, 14, classes, 2)
    expected = reference.calibration_errors([reference.top_class(p)], p, y)
    np.testing.assert_allclose(TopClass().calibration_errors(p, y), expected, atol=1e-14)


def test_tied_classes_are_ranked_by_their_number():
    """All forecasts say 1/4 each; the label is always class 1, so rank 2 of 4."""
    p, y = np.full((8, 4), 0.25), np.full(8, 1)
    np.testing.assert_allclose(TopK().calibration_errors(p, y), [0.25, 0.5, 0.25, 0.0])
    np.testing.assert_allclose(
        Rank([[1, 0, 0, 0], [0, 1, 0, 0]]).calibration_errors(p, y), [0.25, 0.75]
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", CLASSES)
def test_linear_pays_by_class(kind, classes, forecast_of):
    p, y = forecast_of(kind, 14, classes, 3)
    payoffs = np.random.default_rng(0).choice(EXACT, size=(6, classes))
    expected = reference.calibration_errors([reference.linear(p, a) for a in payoffs], p, y)
    np.testing.assert_allclose(Linear(payoffs).calibration_errors(p, y), expected, atol=1e-14)
    assert Linear(payoffs[2]).calibration_errors(p, y) == pytest.approx(expected[2], abs=1e-14)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", CLASSES)
def test_rank_pays_by_the_rank_of_the_outcome(kind, classes, forecast_of):
    p, y = forecast_of(kind, 14, classes, 4)
    valuations = np.random.default_rng(1).choice(EXACT, size=(6, classes))
    expected = reference.calibration_errors([reference.rank(p, t) for t in valuations], p, y)
    np.testing.assert_allclose(Rank(valuations).calibration_errors(p, y), expected, atol=1e-14)


@pytest.mark.parametrize("kind", ["smooth", "one_hot"])
def test_discounted_gain_falls_with_the_logarithm_of_the_rank(kind, forecast_of):
    p, y = forecast_of(kind, 14, 5, 5)
    thetas = [reference.discounts(g, 5) for g in (0.5, 0.75, 1, 1.25, 1.5, 2)]
    expected = reference.rank_errors(p, y, np.array(thetas))
    errors = DiscountedCumulativeGain().calibration_errors(p, y)
    np.testing.assert_allclose(errors, expected, atol=1e-14)
    one = DiscountedCumulativeGain(exponents=(1.25,)).calibration_errors(p, y)
    assert one == pytest.approx(expected[3], abs=1e-14)


def test_utilities_that_contain_others_agree_with_them(forecast_of):
    p, y = forecast_of("smooth", 300, 6, 6)
    by_class, by_rank = ClassWise().calibration_errors(p, y), TopK().calibration_errors(p, y)
    np.testing.assert_allclose(Linear(np.eye(6)).calibration_errors(p, y), by_class, atol=1e-12)
    np.testing.assert_allclose(
        Rank(np.tri(6)).calibration_errors(p, y), by_rank, atol=1e-12
    )  # np.tri: row K pays for the ranks 0 … K
    assert TopClass().calibration_errors(p, y)[0] == by_rank[0]
    assert by_rank[-1] == pytest.approx(0, abs=1e-12)
    assert DiscountedCumulativeGain((0,)).calibration_errors(p, y)[0] == pytest.approx(0, abs=1e-12)


def test_two_classes_give_each_other_s_error(forecast_of):
    p, y = forecast_of("dyadic", 40, 2, 7)
    first, second = ClassWise().calibration_errors(p, y)
    assert first == second


@pytest.mark.parametrize(
    "utilities",
    [ClassWise(), TopClass(), TopK(), DiscountedCumulativeGain(), Linear.sample(70, 9, 0),
     Rank.sample(70, 9, 0)],
    ids=lambda u: type(u).__name__,
)  # fmt: skip
def test_small_blocks_give_the_same_errors(utilities, forecast_of, monkeypatch):
    p, y = forecast_of("smooth", 100, 9, 8)
    expected = utilities.calibration_errors(p, y)
    monkeypatch.setattr("metrics.utilities.base.BLOCK_BYTES", 3 * 8 * 100)  # three utilities
    np.testing.assert_allclose(utilities.calibration_errors(p, y), expected, rtol=0, atol=1e-13)
    assert len(expected) == utilities.count(9)


@pytest.mark.parametrize(
    "utilities",
    [ClassWise(), TopClass(), TopK(), DiscountedCumulativeGain(), Linear.sample(20, 7, 0),
     Rank.sample(20, 7, 0)],
    ids=lambda u: type(u).__name__,
)  # fmt: skip
@pytest.mark.parametrize("kind", KINDS)
def test_the_vector_of_a_utility_gives_its_predictions_and_payoffs(utilities, kind, forecast_of):
    """`outcome_utilities` (the definition) and `blocks` (the fast form) are the same utility."""
    p, y = forecast_of(kind, 60, 7, 9)
    forecast = Forecast(torch.from_numpy(p))
    outcomes = forecast.outcomes(torch.from_numpy(y))
    index = 0
    for block in utilities.blocks(forecast, outcomes):
        for predicted, payoffs in zip(block.predicted, block.payoffs):
            vectors = utilities.outcome_utilities(forecast, index)
            torch.testing.assert_close((vectors * forecast.probabilities).sum(dim=1), predicted)
            realized = vectors.gather(1, outcomes.labels[0][:, None])[:, 0]
            assert torch.equal(realized, payoffs[block.codes[0]])
            index += 1
    assert index == utilities.count(7)


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_the_answer_is_of_the_kind_of_the_probabilities(kind, forecast_of):
    p, y = forecast_of("smooth", 30, 4, 10)
    given = (p, y) if kind == "numpy" else (torch.from_numpy(p), torch.from_numpy(y))
    for utilities in (ClassWise(), TopK(), Linear.sample(5, 4, 0), Rank(np.eye(4))):
        errors = utilities.calibration_errors(*given)
        assert isinstance(errors, np.ndarray if kind == "numpy" else torch.Tensor)
        np.testing.assert_array_equal(
            np.asarray(errors), np.asarray(utilities.calibration_errors(p.tolist(), y.tolist()))
        )


@pytest.mark.parametrize("kind", [Linear, Rank])
def test_one_utility_of_two_classes_is_enough_and_none_is_refused(kind):
    assert kind.sample(1, 2, seed=0).matrix.shape == (1, 2)
    assert kind([[1.0]]).matrix.shape == (1, 1)
    with pytest.raises(InputError, match="count 0 and classes 2"):
        kind.sample(0, 2, seed=0)
    with pytest.raises(InputError, match="expected 2 dimensions"):
        kind(np.empty((0, 3)))
