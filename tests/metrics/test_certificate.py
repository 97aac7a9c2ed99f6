"""Certificates and floors hold what they promise: coverage on classifiers with a known truth."""

import math

import numpy as np
import pytest

from tests.cards import parts_of
from tests.forecasts import forecast_of
from tests.refusals import refuses
from utility_calibration import metrics as m
from utility_calibration.metrics.certificate import Evidence, joined
from utility_calibration.metrics.kernels.draws import Draws
from utility_calibration.metrics.resampling import largest_by_chance
from utility_calibration.metrics.samples import sample_of
from utility_calibration.metrics.scores import checked


def test_the_bounds_of_one_utility_are_the_formulas():
    p, y = forecast_of("smooth", 400, 3, 0)
    payoffs = np.array([0.0, 2.0, 5.0])
    one = m.Linear(payoffs).evaluate(p, y, seed=7).interval
    v, u = p @ payoffs, payoffs[y]
    error, second, spread = m.utility_calibration(v, u), np.mean((u - v) ** 2), 5.0
    z, extra = 1.6448536, (4 - 1.6448536**2) / 6
    moment = math.sqrt(second + (extra + z**2 / 4) * spread**2 / 400) + z * spread / 40
    assert one.upper == pytest.approx(error + z * moment / 20 + extra * spread / 400)
    first, other = math.log(25), math.log(100)
    moment = math.sqrt(second + spread**2 * other / 800) + spread * math.sqrt(other / 800)
    deviation = moment * math.sqrt(2 * first / 400) + spread * first / 1200
    assert one.upper_finite == pytest.approx(error + deviation)
    order = np.argsort(v)
    normals = Draws(7).normals(400 * 400).reshape(400, 400)  # 20 / .05 sets
    sums = np.pad((normals * (u - v))[:, order].cumsum(axis=1), ((0, 0), (1, 0)))
    ranges = (sums.max(axis=1) - sums.min(axis=1)) / 400
    expected = error - np.quantile(ranges, 0.6)
    one = m.Linear(payoffs).evaluate(p, y, confidence=0.6, seed=7).interval
    assert one.lower == pytest.approx(expected) and expected > 0


def test_what_is_said_of_several_classes_is_the_largest_of_each():
    first = Evidence(0.3, 0.5, 0.9, np.array([1.0, 4.0]), np.array([0.1, 0.2]))
    second = Evidence(0.4, 0.6, 0.8, np.array([2.0, 3.0]), np.array([0.2, 0.1]))
    for both in (joined([first, second]), joined([second, first])):
        assert (both.largest, both.upper, both.upper_finite) == (0.4, 0.6, 0.9)
        assert both.multiplied.tolist() == [2.0, 4.0]
        assert both.redrawn.tolist() == pytest.approx([0.2, 0.2])


@pytest.mark.parametrize(
    ("redrawn", "multiplied", "confidence", "upper", "lower", "estimate"),
    [
        ([0.18, 0.18], [0.1, 0.2], 0.95, 0.5, 0.105, 0.24),
        ([0.24, 0.24], [0.1, 0.2], 0.95, 0.5, 0.06, 0.18),
        ([0.4, 0.4], [0.1, 0.2], 0.95, 0.5, 0.0, 0.0),  # nothing is left of an error below both
        ([0.1, 0.1, 0.1, 0.9], [0.0], 0.1, 0.5, 0.2, 0.2),  # 0.3 is the mean noise
        ([0.0], [0.1, 0.1], 0.1, 0.28, 0.2, 0.28),  # 0.2828 is above the upper bound
        ([0.0], [0.18, 0.18], 0.95, 0.5, 0.12, 0.24),  # the larger of two means
    ],
)
def test_the_estimate_is_the_error_less_its_noise_by_pythagoras_between_the_bounds(
    redrawn, multiplied, confidence, upper, lower, estimate
):
    """The lower bound takes the larger of two noises."""
    laws = [np.array(law, dtype=np.float64) for law in (multiplied, redrawn)]
    found = Evidence(0.3, upper, 0.9, *laws).interval(confidence)
    assert found == pytest.approx((estimate, lower, upper, 0.9), abs=1e-12)


def test_the_range_of_gains_is_that_of_the_utility_not_of_the_gains_seen():
    """All right, and every gain seen is 1: the same user as a loss table has the same bounds."""
    p, y = np.tile([0.99, 0.01], (20, 1)), np.zeros(20, int)
    gains, losses = m.GainMatrix(np.eye(2)), m.Decision(1 - np.eye(2))
    found, expected = gains.evaluate(p, y).interval, losses.evaluate(p, y).interval
    assert found == pytest.approx(expected, abs=1e-12)
    assert found.upper_finite > 0.4
    assert found.lower == 0  # a drawn label is a miss more often than in 5 % of the draws
    half = m.GainMatrix([[1, 0.5], [0.5, 1]]).evaluate(p, y).interval
    assert half == pytest.approx(np.array(expected) / 2, abs=1e-12)
    similarity = m.Similarity([[1, -0.4], [-0.4, 1]])
    assert similarity.spread(next(similarity.blocks(*checked(p, y)))).tolist() == [1.4]


def test_the_scorecards_certificate_of_all_classes_is_at_least_that_of_each():
    p, y = forecast_of("smooth", 300, 5, 3)
    card = m.scorecard(p, y, utilities=0, floor_repetitions=100)
    intervals = parts_of(card, "interval")
    assert set(intervals) == {"u_cwe", "u_topk", "u_tce", "u_dcg"}
    each = list(intervals.values())
    together = card.interval
    assert together.upper == max(one.upper for one in each)
    assert together.lower <= max(one.lower for one in each)
    alone = m.TopK().evaluate(p, y).interval
    assert card["u_topk"].interval[1:] == pytest.approx(alone[1:])


def test_own_utilities_have_certificates_of_their_own_unit_and_no_part_in_that_of_all():
    p, y = forecast_of("smooth", 300, 3, 2)
    options = {"utilities": 0, "floor_repetitions": 20}
    plain = m.scorecard(p, y, **options).interval
    card = m.scorecard(p, y, own={"u_euros": m.Linear([1000.0, -500, 0])}, **options)
    assert card.interval == plain
    assert card["u_euros"].interval.upper > 10 * plain.upper


@pytest.mark.parametrize("n", [1, 3, 10])
@pytest.mark.parametrize("utilities", [m.TopK(), m.Linear([[2.0, 0, 0], [0, -0.1, 0]])])
def test_no_bound_leaves_the_range_of_the_utility(n, utilities):
    for seed in range(5):
        p, y = forecast_of("smooth", n, 3, seed)
        found = utilities.evaluate(p, y, sample_weight=np.arange(1.0, n + 1)).interval
        assert 0 <= found.lower <= found.estimate <= found.upper <= found.upper_finite
        assert found.upper_finite == (2.0 if isinstance(utilities, m.Linear) else 1.0)


@pytest.mark.parametrize("clusters", [None, np.arange(90) % 30])
def test_equal_weights_are_no_weights_for_points_and_for_a_stream(clusters):
    p, y = forecast_of("smooth", 90, 3, 0)
    plain = m.TopK().evaluate(p, y, clusters=clusters).interval
    assert plain.upper_finite < 0.9
    for weight in (1.0, 0.3, 7.0):
        weights = np.full(90, weight)
        found = m.TopK().evaluate(p, y, sample_weight=weights, clusters=clusters).interval
        assert found == pytest.approx(plain, abs=1e-6)
        stream = m.StreamingCalibration(m.TopK(), 3)
        stream.update(p, y, sample_weight=weights)
        assert stream.result().calibration_interval().upper_finite < 1
    weights[0] = 2
    assert m.TopK().evaluate(p, y, sample_weight=weights).interval.upper_finite == 1
    stream.update(p, y, sample_weight=weights)
    assert stream.result().calibration_interval().upper_finite == 1


def test_a_high_confidence_has_enough_draws_beyond_its_quantile_or_is_refused():
    """Of 200 draws none lies beyond the quantile at .999, so the lower bound was too large."""
    p, y = forecast_of("smooth", 30, 2, 1)
    y = p.argmin(axis=1)
    usual, high = (m.TopClass().evaluate(p, y, confidence=c).interval for c in (0.95, 0.999))
    assert 0 < high.lower < usual.lower and high.upper >= usual.upper
    errors = m.TopClass().calibration_errors(p, y)[0]
    sample = sample_of(p, y)
    drawn = largest_by_chance(m.TopClass(), sample, 20_000, 0)
    assert high.lower <= errors - np.quantile(drawn, 0.999)
    with refuses("confidence", number="200,000"):
        _ = m.TopK().evaluate(*forecast_of("smooth", 4000, 2, 1), confidence=0.9999).interval
    with refuses("floor_repetitions", fix="2000"):
        m.scorecard(p, y, confidence=0.99, floor_repetitions=400, utilities=0)
    card = m.scorecard(p, y, confidence=0.99, floor_repetitions=2000, utilities=0)
    assert card["u_tce"].interval.lower == pytest.approx(
        m.TopClass().evaluate(p, y, confidence=0.99).interval.lower, abs=1e-6
    )
