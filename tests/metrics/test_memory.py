"""How much memory numbers for many draws take beside their result."""

import tracemalloc

import numpy as np

from tests.forecasts import forecast_of
from utility_calibration.metrics import (
    ClassWise,
    Decision,
    DiscountedCumulativeGain,
    TopK,
    diagram,
    resampling,
)
from utility_calibration.metrics.forecast import Forecast
from utility_calibration.metrics.kernels.uniforms import hashed_uniforms, stream_keys
from utility_calibration.metrics.samples import sample_of
from utility_calibration.metrics.scores import checked

N = 20_000


def peak_of(call):
    """The largest number of bytes that are held during the call."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_multipliers_take_little_more_than_their_bytes():
    p, y = forecast_of("smooth", N, 4, 0)
    sample = sample_of(p, y)
    numbers = sample.multipliers(0, 0.95)
    assert numbers.T.flags.c_contiguous  # the sums over points copy nothing
    assert peak_of(lambda: sample.multipliers(0, 0.95)) < 1.6 * numbers.nbytes


def test_redrawn_labels_take_at_most_twice_their_bytes_and_those_of_the_ranks():
    p, _ = forecast_of("smooth", N, 4, 0)
    forecast, keys, points = Forecast(p), stream_keys(0, 400), np.arange(N)

    def uniforms(rows):
        return hashed_uniforms(keys, points[rows, None]).T

    drawn = forecast.redraw(uniforms)
    together = drawn.labels.nbytes + drawn.ranks.nbytes
    assert together == 2 * 400 * N * 2
    assert peak_of(lambda: forecast.redraw(uniforms)) < 2.5 * together


def test_a_diagram_holds_few_of_the_redrawn_utilities_at_a_time(monkeypatch):
    monkeypatch.setattr(diagram, "REDRAWN_TOGETHER", 2 * N)
    p, y = forecast_of("smooth", N, 4, 0)
    forecast, outcomes = checked(p, y)
    drawn = forecast.redraw(np.random.default_rng(0).random((60, N))).labels
    points = diagram.predictions_of(ClassWise(), forecast, outcomes, 1)

    def diagram_of_class():
        redrawn = diagram.redrawn_utilities(ClassWise(), 1, [(forecast, drawn)])
        diagram.utility_diagram(points, redrawn)

    assert peak_of(diagram_of_class) < 60 * N * 8 / 2


def test_a_forecast_in_parts_keeps_its_ranks_and_no_other_matrix():
    p, y = forecast_of("smooth", 500, 4, 0)
    weights = np.random.default_rng(0).random((3, 500))
    errors = []
    for in_parts in (False, True):
        forecast = Forecast(p, in_parts=in_parts)
        outcomes = forecast.outcomes(y, weights)
        errors += [u.errors(forecast, outcomes) for u in (TopK(), DiscountedCumulativeGain())]
        matrices = [name for name, value in vars(forecast).items() if np.shape(value) == p.shape]
        are_kept = [] if in_parts else ["top_sums", "ranked"]
        assert set(matrices) == {"probabilities", "order", *are_kept}
        assert bool(forecast.kept) != in_parts
    for whole, parts in zip(errors[:2], errors[2:], strict=True):
        np.testing.assert_array_equal(whole, parts)


def test_as_many_draws_come_at_once_as_take_the_bytes_of_the_probabilities(monkeypatch):
    monkeypatch.setattr(resampling, "DRAWN_TOGETHER", 1)
    p, _ = forecast_of("smooth", 50, 4, 0)
    parts = list(resampling.redrawn_outcomes(Forecast(p), np.arange(50), 20, 0))
    assert [outcomes.draws for _, outcomes in parts] == [8, 8, 4]
    assert parts[0][1].labels.nbytes + parts[0][1].ranks.nbytes == p.nbytes


def test_short_labels_times_many_actions_stay_whole_numbers():
    p, _ = forecast_of("smooth", 50, 300, 1)
    losses = np.random.default_rng(0).random((300, 200))  # 60,000 pairs
    forecast = Forecast(p)
    drawn = forecast.redraw(np.random.default_rng(1).random((8, 50)))
    decision = Decision(losses)
    by_draw = [decision.errors(forecast, forecast.outcomes(labels)) for labels in drawn.labels]
    assert drawn.labels.dtype == np.int16
    np.testing.assert_allclose(decision.errors(forecast, drawn), np.concatenate(by_draw))
