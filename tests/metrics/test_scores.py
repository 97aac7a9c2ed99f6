"""Scores and binned errors against their definitions, and what every public function accepts."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, log_loss

from tests.forecasts import forecast_of
from utility_calibration import metrics as m
from utility_calibration.metrics import reference
from utility_calibration.metrics.binned import class_weights
from utility_calibration.metrics.forecast import Forecast
from utility_calibration.metrics.kernels.grid import on_grid
from utility_calibration.metrics.shown import LIKELIHOOD_FLOOR

DEFINITIONS = {
    "accuracy": (m.accuracy, lambda p, y: accuracy_score(y, p.argmax(axis=1))),
    "brier": (m.brier_score, reference.brier_score),
    "nll": (m.negative_log_likelihood, reference.negative_log_likelihood),
    "sklearn's nll": (
        lambda p, y: m.negative_log_likelihood(p, y, floor=np.finfo(float).eps),
        lambda p, y: log_loss(y, p, labels=range(p.shape[1])),
    ),
}


@pytest.mark.parametrize("kind", ["smooth", "saturated", "dyadic", "one_hot", "flat"])
@pytest.mark.parametrize("classes", [2, 3, 20])
@pytest.mark.parametrize("name", DEFINITIONS)
def test_scores_are_those_of_the_definition(name, kind, classes):
    p, y = forecast_of(kind, 150, classes, 1)
    score, definition = DEFINITIONS[name]
    assert score(p, y) == pytest.approx(definition(p, y), abs=1e-12)


@pytest.mark.parametrize("scheme", ["equal_weight", "equal_width"])
@pytest.mark.parametrize("kind", ["smooth", "saturated", "dyadic", "one_hot", "flat"])
@pytest.mark.parametrize("bins", [1, 2, 15, 100])
def test_binned_errors_are_loops_over_bins(scheme, kind, bins):
    p, y = forecast_of(kind, 67, 4, 1)
    y[y == 2] = 1  # one class never occurs
    p = on_grid(p, 2.0**-39)  # nearly equal confidences share a place in the order
    expected = reference.binned_top_class_error(p, y, bins, scheme)
    assert m.binned_top_class_error(p, y, bins=bins, scheme=scheme) == pytest.approx(
        expected, abs=1e-12
    )
    for weights in ("uniform", "prior"):
        expected = reference.binned_class_wise_error(p, y, bins, scheme, weights)
        found = m.binned_class_wise_error(p, y, bins=bins, scheme=scheme, weights=weights)
        assert found == pytest.approx(expected, abs=1e-12)


def test_weights_of_classes_are_taken_per_draw_of_the_labels():
    forecast = Forecast(np.full((4, 3), 1 / 3, dtype=np.float64))
    outcomes = forecast.outcomes(np.array([[0, 0, 1, 2], [2, 2, 2, 2]]))
    assert class_weights("prior", outcomes, 3).tolist() == [[0.5, 0.25, 0.25], [0, 0, 1]]
    assert class_weights("uniform", outcomes, 3).tolist() == [[1 / 3] * 3] * 2


def test_an_excluded_outcome_costs_the_floor_and_no_more():
    p, worst = np.array([[1.0, 0.0], [0.25, 0.75]]), -np.log(LIKELIHOOD_FLOOR)
    assert worst == pytest.approx(27.6, abs=0.05)
    assert m.negative_log_likelihood(p, [1, 1]) == pytest.approx((worst - np.log(0.75)) / 2)
    floored = m.negative_log_likelihood(p, [1, 1], floor=0.1)
    assert floored == pytest.approx(-(np.log(0.1) + np.log(0.75)) / 2)


def test_one_column_is_enough_for_two_classes():
    random = np.random.default_rng(0)
    p, y = random.random(50), random.integers(2, size=50)
    both = np.stack([1 - p, p], axis=1)
    for measure in (m.brier_score, m.ClassWise().calibration_errors):
        for single in (p, p[:, None]):
            np.testing.assert_array_equal(measure(single, y), measure(both, y))


def test_labels_may_be_names_where_the_columns_are_named():
    names, random = ["dog", "cat", "eel"], np.random.default_rng(0)
    p, y = random.dirichlet(np.ones(3), 60), np.arange(60) % 3
    text = np.array(names)[y]
    for metric in (
        *(m.accuracy, m.brier_score, m.negative_log_likelihood, m.binned_top_class_error),
        *(m.binned_class_wise_error, m.TopK().calibration_errors, m.two_bin_error),
        lambda p, y, **names: m.TopK().evaluate(p, y, **names).interval,
        lambda p, y, **names: m.ClassWise().evaluate(p, y, **names).worst,
        lambda p, y, **names: m.TopK().evaluate(p, y, repetitions=5, **names).floor,
        lambda p, y, **names: m.scorecard(p, y, utilities=0, floor_repetitions=5, **names).metrics,
    ):
        plain = metric(p, y)
        np.testing.assert_equal(metric(p, text, classes=names), plain)
        np.testing.assert_equal(metric(p, np.array([7, 8, 9])[y], classes=[7, 8, 9]), plain)
