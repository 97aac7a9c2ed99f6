"""Every class of utilities against the vectors that define it, and samples of payoffs."""

import math

import numpy as np
import pytest

from tests.forecasts import KINDS, forecast_of
from utility_calibration import metrics as m
from utility_calibration.metrics import reference
from utility_calibration.metrics.utilities.linear_and_rank import sample_unit_sphere_infinity
from utility_calibration.metrics.utilities.payoffs import PayoffClass

CLASSES = 4
EXACT = [-1.0, -0.5, 0.0, 0.25, 1.0]
"""Payoffs whose products with dyadic probabilities are exact: ties are ties in any order."""
RANDOM = np.random.default_rng(0)
PAYOFFS = RANDOM.choice(EXACT, size=(6, CLASSES))
SIMILARITY = RANDOM.choice(EXACT, size=(CLASSES, CLASSES))  # not symmetric
LOSSES = RANDOM.choice(EXACT, size=(5, CLASSES, 3))
EXPONENTS = (0.5, 0.75, 1, 1.25, 1.5, 2)


class Insurance(m.UtilityClass):
    """A class of one's own, which needs two methods: pays m · p_j back when j happens."""

    premiums = (0.5, 1.0)

    def count(self, classes):
        return len(self.premiums)

    def outcome_utilities(self, forecast, index):
        return self.premiums[index] * forecast.probabilities


DEFINITIONS = {
    "class-wise": (m.ClassWise(), lambda p: [reference.class_wise(p, c) for c in range(CLASSES)]),
    "top-K": (m.TopK(), lambda p: [reference.top_k(p, k + 1) for k in range(CLASSES)]),
    "top-K in another order": (
        m.TopK(ks=(CLASSES, 1)),
        lambda p: [reference.top_k(p, k) for k in (CLASSES, 1)],
    ),
    "top-class": (m.TopClass(), lambda p: [reference.top_k(p, 1)]),
    "linear": (m.Linear(PAYOFFS), lambda p: [reference.linear(p, a) for a in PAYOFFS]),
    "one linear": (m.Linear(PAYOFFS[2]), lambda p: [reference.linear(p, PAYOFFS[2])]),
    "rank": (m.Rank(PAYOFFS), lambda p: [reference.rank(p, t) for t in PAYOFFS]),
    "discounted": (
        m.DiscountedCumulativeGain(),
        lambda p: [reference.rank(p, reference.discounts(g, CLASSES)) for g in EXPONENTS],
    ),
    "similarity": (m.Similarity(SIMILARITY), lambda p: [reference.similarity(p, SIMILARITY)]),
    "a function": (
        m.FunctionUtility(lambda p: np.square(p) - np.array([0.0, 0.5, 1.0, 0.25])),
        lambda p: [p**2 - [0, 0.5, 1, 0.25]],
    ),
    "one's own": (Insurance(), lambda p: [paid * p for paid in Insurance.premiums]),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", DEFINITIONS)
def test_errors_are_those_of_the_vectors(name, kind):
    p, y = forecast_of(kind, 30, CLASSES, 0)
    utilities, vectors = DEFINITIONS[name]
    expected = reference.calibration_errors(vectors(p), p, y)
    errors = utilities.calibration_errors(p, y)
    np.testing.assert_allclose(errors, expected, atol=1e-14)
    worst = utilities.evaluate(p, y).worst
    assert worst.utility == int(errors.argmax())
    assert worst.error == pytest.approx(errors.max(), abs=1e-12)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_bounds_are_the_extremes_of_payoffs_and_contain_other_values(name):
    p, _ = forecast_of("smooth", 30, CLASSES, 0)
    utilities, vectors = DEFINITIONS[name]
    found = np.array([(each.min(), each.max()) for each in vectors(p)])
    bounds = utilities.bounds(CLASSES)
    if isinstance(utilities, PayoffClass):
        np.testing.assert_array_equal(bounds, found)
    assert (bounds[:, 0] <= found[:, 0]).all() and (found[:, 1] <= bounds[:, 1]).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_decision_pays_the_negative_loss_of_the_best_action(kind):
    p, y = forecast_of(kind, 30, CLASSES, 0)
    losses = LOSSES
    if kind in ("smooth", "saturated"):  # no ties between actions but those of the exact kinds
        losses = LOSSES + np.random.default_rng(1).normal(scale=0.01, size=LOSSES.shape)
    expected = reference.calibration_errors([reference.decision(p, loss) for loss in losses], p, y)
    np.testing.assert_allclose(m.Decision(losses).calibration_errors(p, y), expected, atol=1e-13)
    (error,) = m.Decision(losses[1]).calibration_errors(p, y)
    assert error == pytest.approx(expected[1], abs=1e-13)


@pytest.mark.parametrize(
    "utilities",
    [m.ClassWise(), m.TopClass(), m.TopK(), m.DiscountedCumulativeGain(), m.Linear.sample(70, 9, 0),
     m.Rank.sample(70, 9, 0), m.GainMatrix.sample_aligned(70, 9, 0),
     m.GainMatrix.sample_misaligned(70, 9, 0, subsets=3)],
)  # fmt: skip
def test_small_blocks_give_the_same_errors(utilities, monkeypatch):
    p, y = forecast_of("smooth", 100, 9, 8)
    expected = utilities.calibration_errors(p, y)
    blocks = "utility_calibration.metrics.utilities.blocks"
    monkeypatch.setattr(f"{blocks}.BLOCK_BYTES", 3 * 8 * 100)  # three utilities
    monkeypatch.setattr(f"{blocks}.FEWEST_ROWS", 3)
    np.testing.assert_allclose(utilities.calibration_errors(p, y), expected, rtol=0, atol=1e-13)
    assert len(expected) == utilities.count(9)


def test_samples_are_uniform_on_the_sphere():
    classes, count = 5, 20_000
    vectors = sample_unit_sphere_infinity(count, classes, 1)
    on_face = np.abs(vectors) == 1
    assert (on_face.sum(axis=1) == 1).all()
    assert (np.abs(vectors) <= 1).all()
    faces = np.concatenate([(vectors == 1).sum(axis=0), (vectors == -1).sum(axis=0)])
    expected = count / (2 * classes)
    assert ((faces - expected) ** 2 / expected).sum() < 27.9  # χ² with 9 degrees: 99.9 %
    others = np.sort(vectors[~on_face])
    uniform = np.linspace(-1, 1, others.size)
    assert np.abs(others - uniform).max() < 2 * 1.95 / math.sqrt(others.size)  # Kolmogorov
    rest = np.where(on_face, 0, vectors)
    correlations = np.corrcoef(rest.T) - np.eye(classes)
    assert np.abs(correlations).max() < 4 / math.sqrt(count)


def test_a_seed_names_a_sample_and_valuations_are_the_sampled_vectors_sorted():
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    vectors = sample_unit_sphere_infinity(300, 8, 3)
    assert np.array_equal(m.Linear.sample(300, 8, 3).matrix, vectors)
    assert np.array_equal(m.Rank.sample(300, 8, 3).matrix, -np.sort(-vectors, axis=1))
    assert not np.array_equal(m.Linear.sample(300, 8, 4).matrix, vectors)
    now = np.random.get_state()[1]  # noqa: NPY002
    assert np.array_equal(state, now)  # the global generator is left alone


@pytest.mark.parametrize("short", [m.ClassWise(), m.TopK()])
def test_more_classes_than_points_give_the_errors_and_bounds_of_the_whole_matrix(short):
    """Blocks then know only the outcomes that their own utilities tell apart."""
    random = np.random.default_rng(0)
    p, y = random.dirichlet(np.ones(200), 7), random.integers(200, size=7)
    payoffs = short.payoffs(200)
    whole = m.Linear(payoffs) if isinstance(short, m.ClassWise) else m.Rank(payoffs)
    for weights in (None, np.arange(7.0)):
        errors = [u.calibration_errors(p, y, sample_weight=weights) for u in (short, whole)]
        np.testing.assert_allclose(*errors, atol=1e-12)
        bounds = [u.evaluate(p, y, sample_weight=weights).interval for u in (short, whole)]
        assert bounds[0] == pytest.approx(bounds[1], abs=1e-6)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (m.Linear, [[1.0, 0.5, -1.0]]),
        (m.Linear, [1.0, 0.5, -1.0]),
        (m.Rank, [[1.0, 0.5, 0.0]]),
        (m.Similarity, [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        (m.GainMatrix, [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        (m.Decision, [[0.0, 1.0], [10.0, 1.0], [2.0, 1.0]]),
    ],
)
def test_a_later_change_of_the_callers_array_leaves_the_utility(kind, values):
    p, y = forecast_of("smooth", 30, 3, 0)
    array = np.array(values)
    utilities = kind(array)
    before = utilities.calibration_errors(p, y)
    array[...] = 0.3
    np.testing.assert_array_equal(utilities.calibration_errors(p, y), before)
    assert array.flags.writeable  # the caller's array stays theirs
    (held,) = (value for value in vars(utilities).values() if isinstance(value, np.ndarray))
    with pytest.raises(ValueError, match="read-only"):
        held[...] = 0.3
