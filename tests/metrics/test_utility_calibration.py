"""UC of one utility against its definition, and the interval where it is attained."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from utility_calibration import metrics
from utility_calibration import metrics as m
from utility_calibration.metrics import reference
from utility_calibration.metrics.diagram import diagram_of

NEAR = [0.3, np.nextafter(0.3, 1), 0.1 + 0.2]
AWKWARD = [0.0, -0.0, 5e-324, 1e-310, *NEAR, 0.5, 1 - 2**-53, 1.0, -0.25, -1.0, -5e-324]
VALUES = st.one_of(st.sampled_from(AWKWARD), st.floats(-1, 1, width=64))
POINTS = st.lists(st.tuples(VALUES, st.sampled_from([0.0, 1.0, -1.0, 0.4])), min_size=1, max_size=9)


@pytest.mark.parametrize("module", [metrics, reference])
@given(points=POINTS)
def test_uc_is_the_supremum_over_all_closed_intervals_and_the_worst_one_attains_it(module, points):
    v, u = np.array(points).T
    expected = reference.utility_calibration_by_intervals(v, u)
    assert module.utility_calibration(v, u) == pytest.approx(expected, abs=1e-14)
    error, low, high, sign = module.worst_interval(v, u)
    inside = (v >= low) & (v <= high)
    assert low in v and high in v and low <= high
    # Of intervals whose errors differ by 1e-9 of the largest the first is taken.
    assert error == pytest.approx(expected, rel=1e-8, abs=1e-14)
    assert (v - u)[inside].sum() / len(v) == pytest.approx(sign * error, abs=1e-14)
    assert sign in (-1, 0, 1) and (sign == 0) == (error == 0)


@pytest.mark.parametrize("shape", [(40,), (2, 3, 40), (0, 40)])
def test_leading_dimensions_are_kept_and_the_kind_too(shape):
    v, u = np.random.default_rng(1).random((2, *shape))
    errors = m.utility_calibration(v, u)
    assert isinstance(errors, np.float64 if len(shape) == 1 else np.ndarray)
    assert errors.shape == shape[:-1]
    flat = zip(v.reshape(-1, 40), u.reshape(-1, 40), strict=True)
    single = [m.utility_calibration(predicted, realized) for predicted, realized in flat]
    np.testing.assert_array_equal(np.ravel(errors), single)
    tensors = m.utility_calibration(torch.from_numpy(v), torch.from_numpy(u))
    assert isinstance(tensors, torch.Tensor) and tensors.dtype == torch.float64
    np.testing.assert_array_equal(tensors.numpy(), errors)


def test_bins_can_hide_what_an_interval_shows():
    """App. "Bounding Binned Estimators": errors cancel inside the middle one of three bins.

    100 points have p = .45 and 5 % ones, 100 points p = .55 and 95 % ones.
    """
    p = np.repeat([0.45, 0.55], 100)
    hit = np.concatenate([np.arange(100) < 5, np.arange(100) < 95]).astype(int)
    # With four classes the confidence may lie below one half and still be the largest.
    probabilities = np.column_stack([p, *[(1 - p) / 3] * 3])
    labels = np.where(hit == 1, 0, 1)
    assert m.binned_top_class_error(
        probabilities, labels, bins=3, scheme="equal_width"
    ) == pytest.approx(0)
    assert m.TopClass().calibration_errors(probabilities, labels)[0] == pytest.approx(0.2)
    assert m.utility_calibration(p, hit) == pytest.approx(0.2)
    worst = m.worst_interval(p, hit)
    assert worst.error == pytest.approx(0.2)
    assert (worst.low, worst.high, worst.sign) in [(0.45, 0.45, 1), (0.55, 0.55, -1)]


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_of_intervals_that_only_rounding_tells_apart_the_first_is_the_worst(unit):
    """Whatever the unit of the utility: what counts as rounding is a share of the errors."""
    v = np.arange(4.0)
    residuals = unit * np.array([1.0, -1.0, 1.0 + 1e-12, -0.5])
    first = m.worst_interval(v, v + residuals)
    assert (first.low, first.high, first.sign) == (0.0, 0.0, -1)
    clearly = m.worst_interval(v, v + residuals * [1, 1, 1 + 1e-6, 1])
    assert (clearly.low, clearly.high) == (0.0, 2.0)


def test_of_two_classes_with_equal_errors_the_first_is_the_worst_in_any_order_of_points():
    rng = np.random.default_rng(0)
    p, y = rng.random(50), rng.integers(0, 2, 50)
    forecast, classes = np.column_stack([1 - p, p]), m.ClassWise()
    for rows in (rng.permutation(50) for _ in range(20)):
        assert classes.evaluate(forecast[rows], y[rows]).worst[0] == 0
        streaming = m.StreamingCalibration(classes, 2)
        streaming.update(forecast[rows], y[rows])
        assert streaming.result().worst[0] == 0
        assert diagram_of(classes, forecast[rows], y[rows], repetitions=0)[0].worst.low == (
            classes.evaluate(forecast, y).worst.low
        )
        assert classes.evaluate(forecast[rows], y[rows], repetitions=1).gain.utility == 0
