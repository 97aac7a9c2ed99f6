"""The diagram of one utility says what the estimator says, and its noise is that of calibration."""

import numpy as np
import pytest

from tests.forecasts import labels_from
from utility_calibration.metrics import (
    ClassWise,
    Linear,
    TopK,
    utility_calibration,
    worst_interval,
)
from utility_calibration.metrics import diagram as module
from utility_calibration.metrics.diagram import (
    Predictions,
    predictions_of,
    redrawn_utilities,
    utility_diagram,
)
from utility_calibration.metrics.scores import checked

N, C = 600, 4


def forecast(seed=0, sharpen=1.0):
    """Probabilities [N, C], and labels drawn from them before they are sharpened."""
    random = np.random.default_rng(seed)
    p = random.dirichlet(np.ones(C), N)
    labels = labels_from(p, random)
    q = p**sharpen
    return q / q.sum(axis=1, keepdims=True), labels


def predictions(utility, index, sharpen=1.0, seed=0):
    uniforms = np.random.default_rng(1).random((200, N))
    return predictions_from(utility, *forecast(seed, sharpen), index, uniforms)


def predictions_from(utility, p, labels, index, uniforms, weights=None):
    forecast, outcomes = checked(p, labels, sample_weight=weights)
    drawn = forecast.redraw(uniforms).labels
    redrawn = redrawn_utilities(utility, index, [(forecast, drawn)])
    return predictions_of(utility, forecast, outcomes, index), redrawn


def test_the_range_of_the_running_curve_is_uc_and_its_ends_are_the_worst_interval():
    given, redrawn = predictions(ClassWise(), 2, sharpen=3.0)
    diagram = utility_diagram(given, redrawn, points=20)
    error = utility_calibration(given.predicted, given.realized)
    curve = np.append(diagram.running.values, 0)
    assert np.ptp(curve) == pytest.approx(error)
    assert diagram.worst == worst_interval(given.predicted, given.realized)
    assert abs(diagram.gap) * diagram.share == pytest.approx(error)
    assert diagram.worst.high in diagram.running.predicted


def test_redrawn_labels_have_the_band_around_the_prediction():
    diagram = utility_diagram(*predictions(ClassWise(), 1), bins=6)
    later = diagram.running.predicted > 0.02  # before, hardly a draw has a hit
    assert (diagram.running.low[later] < 0).all() and (diagram.running.high[later] > 0).all()
    assert (diagram.bins.low <= diagram.bins.predicted).all()
    assert (diagram.bins.high >= diagram.bins.predicted).all()
    one = utility_diagram(*predictions(ClassWise(), 1), bins=1).bins
    p = forecast()[0][:, 1]
    spread = np.sqrt(np.mean(p * (1 - p)) / N)
    assert one.high - one.low == pytest.approx(2 * 1.96 * spread, rel=0.15)


def test_bins_are_equally_wide_and_empty_ones_are_left_out():
    v, u = np.array([0.0, 0.04, 0.5, 0.51, 1.0]), np.array([0.0, 1.0, 1.0, 1.0, 0.0])
    bins = utility_diagram(Predictions(v, u, np.ones(5)), bins=10).bins
    np.testing.assert_allclose(bins.predicted, [0.02, 0.505, 1.0])
    np.testing.assert_allclose(bins.values, [0.5, 1.0, 0.0])


def test_without_redraws_there_is_no_band_and_ties_are_one_place():
    v, u = np.array([0.5, 0.5, 0.2]), np.array([1.0, 0.0, 0.0])
    diagram = utility_diagram(Predictions(v, u, np.ones(3)))
    np.testing.assert_allclose(diagram.running.predicted, [0.2, 0.5])
    np.testing.assert_allclose(diagram.running.values, [-0.2 / 3, -0.2 / 3])
    for band in (diagram.running.low, diagram.running.high, diagram.bins.low, diagram.bins.high):
        assert band.shape == (2,) and np.isnan(band).all()


def test_parts_are_pooled_point_by_point():
    parts = [predictions(ClassWise(), 0, seed=seed)[0] for seed in (0, 1)]
    pooled = Predictions.pooled(parts)
    assert pooled.predicted.shape == (2 * N,)
    np.testing.assert_array_equal(pooled.realized[N:], parts[1].realized)


@pytest.mark.parametrize("utility", [ClassWise(), TopK()])
def test_redrawn_utilities_of_two_parts_come_some_draws_at_a_time(utility, monkeypatch):
    monkeypatch.setattr(module, "REDRAWN_TOGETHER", 3 * 2 * N)
    parts = []
    for seed in (0, 1):
        points, _ = checked(*forecast(seed))
        drawn = points.redraw(np.random.default_rng(seed).random((7, N)))
        parts.append((points, drawn))
    blocks = list(redrawn_utilities(utility, 1, [(f, drawn.labels) for f, drawn in parts]))
    assert [block.shape for block in blocks] == [(3, 2 * N), (3, 2 * N), (1, 2 * N)]
    for place, (_, drawn) in enumerate(parts):
        hits = drawn.labels == 1 if isinstance(utility, ClassWise) else drawn.ranks <= 1
        of_part = np.concatenate(blocks)[:, place * N : (place + 1) * N]
        np.testing.assert_array_equal(of_part, hits)


def test_a_weight_of_three_is_the_point_three_times():
    random = np.random.default_rng(0)
    p, labels = random.dirichlet(np.ones(3), 40), random.integers(3, size=40)
    times, uniforms = random.integers(0, 4, size=40), random.random((20, 40))
    numbers, users = np.repeat(np.arange(40), times), Linear([1.0, 0.2, 0.0])
    repeated = predictions_from(users, p[numbers], labels[numbers], 0, uniforms[:, numbers])
    weighted = predictions_from(users, p, labels, 0, uniforms[:, times > 0], times)
    expected, found = utility_diagram(*repeated), utility_diagram(*weighted)
    assert found.worst.error == pytest.approx(expected.worst.error)
    assert (found.share, found.gap) == pytest.approx((expected.share, expected.gap))
    np.testing.assert_allclose(found.bins.values, expected.bins.values)
    np.testing.assert_allclose(found.bins.high, expected.bins.high)
