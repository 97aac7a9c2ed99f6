"""What is left of the probability of a class without a calibration point."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from utility_calibration.calibrators import LogitShiftPatching, TemperatureScaling
from utility_calibration.calibrators.absent import absent_factors
from utility_calibration.metrics import negative_log_likelihood

COUNTS = st.lists(
    st.tuples(st.floats(0, 500), st.floats(0, 500)).filter(lambda pair: pair[1] > 1e-6),
    min_size=2,
    max_size=30,
)


@given(COUNTS, st.booleans())
def test_a_factor_is_a_share_that_falls_with_the_expected_count(pairs, are_whole):
    observed, expected = np.array(pairs).T
    observed = np.floor(observed) if are_whole else observed
    observed[0] = 0
    factors = absent_factors(observed, expected)
    assert np.isfinite(factors).all() and factors.min() >= 0 and factors.max() <= 1
    empty = observed == 0
    order = np.argsort(expected[empty])
    assert (np.diff(factors[empty][order]) <= 1e-12).all()


def test_a_class_that_was_merely_missed_keeps_its_probability():
    """Counts as a Poisson draw has them: no class is dead."""
    expected = np.full(200, 1.0)
    observed = np.random.default_rng(0).poisson(expected).astype(float)
    factors = absent_factors(observed, expected)
    assert factors[observed == 0].min() > 0.85
    tiny = np.append(expected, 1e-3), np.append(observed, 0.0)
    assert absent_factors(tiny[1], tiny[0])[-1] > 0.95


def test_a_class_that_never_occurs_loses_its_probability():
    """Ten of fifty classes die, and the others share their points."""
    expected = np.full(50, 6.0)
    observed = np.random.default_rng(0).poisson(7.5, 50).astype(float)
    observed[:10] = 0
    assert absent_factors(observed, expected)[:10].max() < 0.05
    alone = absent_factors(np.array([0.0, 90, 70, 80, 85, 75]), np.full(6, 67.0))
    assert alone[0] < 1e-3


def test_more_points_of_other_classes_say_more_about_an_empty_one():
    """The same empty class is dead beside classes that come as expected, and rare beside others."""
    expected = np.full(40, 10.0)
    regular = np.full(40, 10.0)
    uneven = 10 * np.random.default_rng(0).gamma(0.5, 2, 40)
    regular[0] = uneven[0] = 0
    assert absent_factors(regular, expected)[0] < 0.1
    assert absent_factors(np.round(uneven), expected)[0] < 0.2


@pytest.mark.parametrize("method", [TemperatureScaling, LogitShiftPatching])
def test_missed_classes_cost_hardly_more_than_the_temperature_itself(method):
    """Fifty classes and sixty points: half a point for each missed class cost .09 nats."""
    excess = []
    for seed in range(4):
        generator = np.random.default_rng(seed)
        logits = 2 * generator.normal(size=(2060, 50))
        labels = (logits + generator.gumbel(size=logits.shape)).argmax(axis=1)
        with pytest.warns(UserWarning):
            fitted = method().fit(logits[:60], labels[:60])
        pairs = fitted.predict_proba(logits[60:]), np.exp(logits[60:])
        truth = pairs[1] / pairs[1].sum(axis=1, keepdims=True)
        excess.append(
            np.subtract(*(negative_log_likelihood(p, labels[60:]) for p in (pairs[0], truth)))
        )
    assert np.mean(excess) < 0.03


def test_importance_weights_count_as_kishs_effective_points():
    """Weights of another unit, or points of weight 0, change no factor."""
    generator = np.random.default_rng(1)
    logits = generator.normal(size=(60, 20))
    labels = (logits + generator.gumbel(size=logits.shape)).argmax(axis=1)
    weights = generator.random(60)
    with pytest.warns(UserWarning):
        first, second = (
            TemperatureScaling().fit(logits, labels, scale * weights) for scale in (1, 1000.5)
        )
    np.testing.assert_allclose(first.kept_, second.kept_, rtol=1e-9)
