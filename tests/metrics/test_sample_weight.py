"""Weighted points: a weight of k counts as the point k times, in every score and error."""

import numpy as np
import pytest

from metrics import (
    ClassWise,
    Decision,
    InputError,
    TopK,
    accuracy,
    binned_class_wise_error,
    binned_top_class_error,
    brier_score,
    negative_log_likelihood,
    utility_calibration,
    worst_interval,
)

MEASURES = {
    "accuracy": accuracy,
    "brier": brier_score,
    "nll": negative_log_likelihood,
    "cwe": binned_class_wise_error,
    "cwe, prior": lambda *a, **k: binned_class_wise_error(*a, weights="prior", **k),
    "cwe, equal width": lambda *a, **k: binned_class_wise_error(*a, scheme="equal_width", **k),
    "tce": binned_top_class_error,
    "class-wise": ClassWise().calibration_errors,
    "top-K": TopK().calibration_errors,
    "decision": Decision([[0.0, 1.0], [1.0, 0.0], [0.5, 0.2], [0.1, 0.9]]).calibration_errors,
}


@pytest.mark.parametrize("kind", ["smooth", "dyadic", "one_hot"])
@pytest.mark.parametrize("name", MEASURES)
def test_whole_weights_are_repeated_rows(name, kind, forecast_of):
    p, y = forecast_of(kind, 90, 4, 3)
    times = np.random.default_rng(0).integers(0, 4, size=90)
    measure = MEASURES[name]
    repeated = measure(np.repeat(p, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(measure(p, y, sample_weight=times), repeated, atol=1e-12)


@pytest.mark.parametrize("name", MEASURES)
def test_only_the_proportions_of_the_weights_count(name, forecast_of):
    p, y = forecast_of("smooth", 90, 4, 4)
    weights = np.random.default_rng(1).random(90)
    first, second = (MEASURES[name](p, y, sample_weight=scale * weights) for scale in (1, 7.3))
    np.testing.assert_allclose(first, second, atol=1e-12)
    assert not np.allclose(first, MEASURES[name](p, y), atol=1e-6)


def test_single_utilities_take_weights_too(forecast_of):
    p, y = forecast_of("dyadic", 60, 3, 5)
    v, u = p[:, 0], 1.0 * (y == 0)
    times = np.random.default_rng(2).integers(0, 3, size=60)
    repeated = np.repeat(v, times), np.repeat(u, times)
    assert utility_calibration(v, u, times) == pytest.approx(utility_calibration(*repeated))
    assert worst_interval(v, u, sample_weight=times) == pytest.approx(worst_interval(*repeated))


@pytest.mark.parametrize("share", [0.7, 1 / 3])
def test_the_unit_of_weights_that_are_not_all_whole_does_not_matter(share, forecast_of):
    """Whole ones cut the bins as repeated rows would; of these some are whole, others are not."""
    p, y = forecast_of("smooth", 40, 3, 2)
    weights = np.tile([0.5, 0.3, 1.0, 0.9], 10)
    for bins in (5, 7):
        expected = binned_top_class_error(p, y, bins, sample_weight=weights)
        found = binned_top_class_error(p, y, bins, sample_weight=share * weights)
        assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(4), "sample_weight: shape \\[4\\] for 5 rows"),
        ([1, 1, -1, 1, 1], "sample_weight: -1 in row 2"),
        ([1, 1, 1, np.inf, 1], "sample_weight: inf in row 3"),
        (np.zeros(5), "sample_weight: all are zero"),
    ],
)
def test_weights_that_make_no_sense_are_refused(weights, message, forecast_of):
    p, y = forecast_of("smooth", 5, 3, 0)
    for measure in (brier_score, TopK().calibration_errors):
        with pytest.raises(InputError, match=message):
            measure(p, y, sample_weight=weights)
