"""Binned errors against loops over bins."""

import numpy as np
import pytest
import torch

from metrics import (
    binned_class_wise_error,
    binned_top_class_error,
    reference,
)
from metrics.binned import class_weights
from metrics.forecast import Forecast, Outcomes

SCHEMES = ["equal_weight", "equal_width"]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kind", ["smooth", "saturated", "dyadic", "one_hot", "flat"])
@pytest.mark.parametrize("bins", [1, 2, 15, 100])
def test_top_class_error_is_the_loop_over_bins(scheme, kind, bins, forecast_of):
    p, y = forecast_of(kind, 67, 4, 0)
    expected = reference.binned_top_class_error(p, y, bins, scheme)
    assert binned_top_class_error(p, y, bins, scheme) == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kind", ["smooth", "saturated", "dyadic", "one_hot", "flat"])
@pytest.mark.parametrize("bins", [1, 15, 100])
@pytest.mark.parametrize("weights", ["uniform", "prior"])
def test_class_wise_error_is_the_weighted_mean_of_the_loops(
    scheme, kind, bins, weights, forecast_of
):
    p, y = forecast_of(kind, 67, 4, 1)
    y[y == 2] = 1  # one class never occurs
    expected = reference.binned_class_wise_error(p, y, bins, scheme, weights)
    assert binned_class_wise_error(p, y, bins, scheme, weights) == pytest.approx(
        expected, abs=1e-14
    )


def test_the_last_bin_of_equal_width_holds_one():
    p = np.array([[1.0, 0.0], [0.0, 1.0], [2 / 3, 1 / 3]])
    assert binned_top_class_error(p, [0, 0, 0], 3, "equal_width") == pytest.approx(
        abs(0 + 1 - 1 / 3) / 3  # 2/3 and 1 share the bin [2/3, 1]
    )


def test_weights_are_taken_per_draw_of_the_labels():
    forecast = Forecast(torch.full((4, 3), 1 / 3, dtype=torch.float64))
    outcomes = forecast.outcomes(torch.tensor([[0, 0, 1, 2], [2, 2, 2, 2]]))
    assert isinstance(outcomes, Outcomes)
    assert class_weights("prior", outcomes, 3).tolist() == [[0.5, 0.25, 0.25], [0, 0, 1]]
    assert class_weights("uniform", outcomes, 3).tolist() == [[1 / 3] * 3] * 2
