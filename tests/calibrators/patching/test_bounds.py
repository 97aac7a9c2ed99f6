"""Upper bounds without a sort: never too low, and low enough to spare most sorts."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.calibrators.patching.patching_problems import over_confident, softmax
from utility_calibration.calibrators.patching.audit import StandardFamilies
from utility_calibration.calibrators.patching.bounds import (
    indicator_bounds,
    payoff_bounds,
    top_k_bounds,
)
from utility_calibration.calibrators.patching.utilities import drops
from utility_calibration.metrics.forecast import Forecast
from utility_calibration.metrics.kernels.prefix_range import prefix_range


def forecast_and_labels(n, classes, seed):
    logits, labels = over_confident(n, classes, seed, sharpness=1.6)
    return torch.from_numpy(softmax(logits)), torch.from_numpy(labels)


def exact_errors(predicted, payoffs, codes):
    ranges, _ = prefix_range(predicted.contiguous(), payoffs, codes[None])
    return ranges[0] / len(codes)


def bounds_and_errors(p, labels):
    """Of U_CWE, then of U_topK, then of U_topK with its sharper bounds: [3C] each."""
    classes = p.shape[1]
    forecast = Forecast(p)
    ranks = forecast.outcomes(labels).ranks[0].long()
    one = torch.eye(classes, dtype=torch.float64)
    bounds, errors = [], []
    by_rank = forecast.top_sums, one.cumsum(dim=0), ranks, True
    for predicted, payoffs, codes, is_by_rank in ((p, one, labels, False), by_rank):
        bounds.append(indicator_bounds(predicted, codes, is_by_rank))
        errors.append(exact_errors(predicted.T, payoffs, codes))
    bounds.append(top_k_bounds(forecast.top_sums, ranks, torch.arange(classes)))
    return torch.cat(bounds), torch.cat([*errors, errors[1]])


@given(st.integers(1, 300), st.integers(2, 12), st.integers(0, 999))
def test_no_bound_lies_below_the_error(n, classes, seed):
    bounds, errors = bounds_and_errors(*forecast_and_labels(n, classes, seed))
    assert bool((bounds >= errors).all())


@given(st.integers(1, 300), st.integers(50, 60), st.integers(0, 999))
def test_bounds_in_float32_are_near_the_errors_and_not_below(n, classes, seed):
    p, labels = forecast_and_labels(n, classes, seed)
    forecast = Forecast(p)
    linear, rank = StandardFamilies(20, seed).draw(0, classes)
    for factors, matrix, payoffs, codes in (
        (linear, p, linear, labels),
        (drops(rank), forecast.top_sums, rank, forecast.outcomes(labels).ranks[0].long()),
    ):
        excess = payoff_bounds(factors, matrix, payoffs, codes)
        excess -= exact_errors(factors @ matrix.T, payoffs, codes)
        assert float(excess.min()) > 0
        assert float(excess.mean()) < 0.003 + 1 / n


def test_sharper_bounds_are_near_the_errors_of_a_calibrated_forecast():
    p, _ = forecast_and_labels(2000, 60, seed=1)
    uniforms = np.random.default_rng(0).random((1, 2000))
    labels = Forecast(p).redraw(torch.from_numpy(uniforms)).labels[0]
    bounds, errors = (parts.reshape(3, 60) for parts in bounds_and_errors(p, labels))
    excess = (bounds - errors).mean(dim=1)
    assert excess[2] < excess[1] / 5
