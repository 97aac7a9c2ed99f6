"""Ranks, labels drawn from the forecast itself, and equal predictions of equal forecasts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.forecasts import KINDS, forecast_of
from utility_calibration import metrics as m
from utility_calibration.metrics import reference
from utility_calibration.metrics.binned import interval_and_binned_errors
from utility_calibration.metrics.forecast import Forecast


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 3, 10, 250])
def test_ranks_break_ties_by_the_class_number(kind, classes):
    p, y = forecast_of(kind, 30, classes, 0)
    forecast = Forecast(p)
    ranks = reference.ranks(p)
    np.testing.assert_array_equal(forecast.order, ranks.argsort(axis=1))
    outcomes = forecast.outcomes(y)
    np.testing.assert_array_equal(outcomes.ranks[0], ranks[np.arange(30), y])
    drawn = forecast.redraw(
        np.random.default_rng(1).random(
            (
                20,
                30,
            )
        )
    )
    assert np.array_equal(forecast.outcomes(drawn.labels).ranks, drawn.ranks)


@given(low=st.booleans(), seed=st.integers(0, 99))
def test_the_extreme_uniforms_never_draw_an_impossible_class(low, seed):
    random = np.random.default_rng(seed)
    p = random.dirichlet(np.full(7, 0.1), size=30)
    p[p < 0.05] = 0
    p /= p.sum(axis=1, keepdims=True) * random.uniform(0.5, 2)
    uniforms = np.full((1, 30), 0.0 if low else np.nextafter(1.0, 0), dtype=np.float64)
    labels = Forecast(p).redraw(uniforms).labels[0]
    assert (p[np.arange(30), labels] > 0).all()


RANDOM = np.random.default_rng(0)
UTILITIES = {
    "class-wise": m.ClassWise(),
    "top-k": m.TopK(),
    "discounted": m.DiscountedCumulativeGain(),
    "linear": m.Linear.sample(37, 7, 0),
    "rank": m.Rank.sample(37, 7, 0),
    "similarity": m.Similarity(RANDOM.uniform(-1, 1, size=(7, 7))),
    "decision": m.Decision(RANDOM.uniform(-1, 1, size=(5, 7, 3))),
    "aligned": m.GainMatrix.sample_aligned(37, 7, 0),
    "misaligned": m.GainMatrix.sample_misaligned(37, 7, 0, subsets=3),
    "function": m.FunctionUtility(lambda p: np.cos(7 * p)),
}


def disturbed(predicted):
    """Predictions as another order of summation could leave them: off by an ulp here and there.

    Matrix products may sum the columns at the edges of their tiles in another order.
    """
    noise = np.random.default_rng(0).random(predicted.shape)
    return np.where(noise < 0.3, predicted * (1 + 2.0**-52), predicted)


def unsteady(utilities):
    """The same class with products that are summed in an order of the moment's liking."""

    def blocks(self, forecast, outcomes, part=slice(None)):
        for block in utilities.blocks(forecast, outcomes, part):
            yield block._replace(predicted=disturbed(block.predicted))

    kind = type(utilities)
    disturbed_kind = type(f"Unsteady{kind.__name__}", (kind,), {"blocks": blocks})
    copy = disturbed_kind.__new__(disturbed_kind)
    copy.__dict__.update(vars(utilities))
    return copy


@pytest.mark.parametrize("utilities", UTILITIES.values(), ids=UTILITIES)
def test_points_with_the_same_forecast_stay_together(utilities):
    random = np.random.default_rng(3)
    rows = random.dirichlet(np.ones(7), size=6)
    which = random.integers(6, size=400)
    y = random.integers(7, size=400)
    forecast = Forecast(rows[which])
    outcomes = forecast.outcomes(y)
    errors, _ = interval_and_binned_errors(unsteady(utilities), forecast, outcomes, 5)
    few = Forecast(rows)
    for index, error in enumerate(errors[0]):
        vectors = utilities.outcome_utilities(few, index)
        predicted = (vectors * rows).sum(axis=1)[which]
        expected = m.utility_calibration(predicted, vectors[which, y])
        assert float(error) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("family", ["rank", "discounted", "top-k"])
def test_utilities_by_rank_tie_points_that_name_the_classes_differently(family):
    random = np.random.default_rng(4)
    row = random.dirichlet(np.ones(7))
    p, y = random.permuted(np.tile(row, (300, 1)), axis=1), random.integers(7, size=300)
    forecast = Forecast(p)
    outcomes = forecast.outcomes(y)
    ordered, ranks = np.sort(row)[::-1], outcomes.ranks[0]
    utilities = UTILITIES[family]
    for index, error in enumerate(unsteady(utilities).errors(forecast, outcomes)[0]):
        payoffs = utilities.payoffs(7)[index]
        assert float(error) == pytest.approx(
            abs(payoffs[ranks].mean() - payoffs @ ordered), abs=1e-12
        )
