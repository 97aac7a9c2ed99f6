"""Upper bounds without a sort: never too low, and low enough to spare most sorts."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from metrics.kernels.bounds import BUCKETS, bounds_torch, calibration_error_bounds
from metrics.kernels.prefix_range import prefix_range


def exact_errors(predicted, payoffs, codes):
    sums = prefix_range(predicted, payoffs.double(), codes[None])
    return (sums.high[0] - sums.low[0]) / predicted.shape[1]


@given(
    n=st.integers(1, 300),
    rows=st.integers(1, 20),
    outcomes=st.integers(1, 4),
    levels=st.sampled_from([1, 3, 1000]),
    low=st.sampled_from([-1.0, 0.0, 0.4]),
    width=st.sampled_from([0.01, 1.0, 50.0]),
    seed=st.integers(0, 999),
)
def test_no_bound_lies_below_the_exact_error(n, rows, outcomes, levels, low, width, seed):
    """Also for predictions outside [low, high] and for payoffs of any sign."""
    random = np.random.default_rng(seed)
    predicted = torch.from_numpy(random.choice(random.normal(size=levels), size=(rows, n)))
    payoffs = torch.from_numpy(random.normal(size=(rows, outcomes)))
    codes = torch.from_numpy(random.integers(outcomes, size=n))
    bounds = calibration_error_bounds(predicted, payoffs, codes, low, low + width)
    assert bounds.shape == (rows,)
    assert bool((bounds >= exact_errors(predicted, payoffs, codes)).all())
    elsewhere = bounds_torch(predicted, payoffs, codes, low, low + width)
    torch.testing.assert_close(elsewhere, bounds, rtol=0, atol=1e-12)


@pytest.mark.parametrize("buckets", [BUCKETS // 2, BUCKETS])
def test_predictions_on_the_borders_of_buckets_are_bounded(buckets):
    grid = torch.arange(buckets + 1, dtype=torch.float64) / buckets
    predicted = torch.cat([grid, torch.nextafter(grid, torch.tensor(2.0).double()), -0.0 * grid])
    predicted = predicted.repeat(2, 1)
    codes = torch.arange(predicted.shape[1]) % 2
    payoffs = torch.tensor([[0, 1], [1, 0]], dtype=torch.int8)
    bounds = calibration_error_bounds(predicted, payoffs, codes, 0.0, 1.0)
    assert bool((bounds >= exact_errors(predicted, payoffs, codes)).all())


def overconfident_forecast():
    random = np.random.default_rng(0)
    z = random.normal(scale=2.5, size=(3000, 60))
    truth = np.exp(z / 1.6)
    truth /= truth.sum(axis=1, keepdims=True)
    labels = (random.random((3000, 1)) > truth.cumsum(axis=1)).sum(axis=1).clip(max=59)
    claimed = np.exp(z)
    return torch.from_numpy(claimed / claimed.sum(axis=1, keepdims=True)), torch.from_numpy(labels)


def test_most_top_k_utilities_are_excluded_without_a_sort():
    p, y = overconfident_forecast()
    ordered, order = p.sort(dim=1, descending=True)
    top_sums = ordered.cumsum(dim=1).T.contiguous()
    ranks = (order == y[:, None]).long().argmax(dim=1)
    within = torch.ones(60, 60, dtype=torch.int8).tril()
    exact = exact_errors(top_sums, within, ranks)
    bounds = calibration_error_bounds(top_sums, within, ranks, 0.0, 1.0)
    assert float((bounds < exact.max()).double().mean()) > 0.5


def test_bounds_of_a_forecast_with_a_systematic_error_are_close():
    """Where the residuals of a bucket have one sign, nothing is lost by not sorting it."""
    random = np.random.default_rng(1)
    predicted = torch.from_numpy(0.5 + 0.4 * random.random((3, 5000)))
    payoffs, codes = torch.zeros(3, 1, dtype=torch.float64), torch.zeros(5000, dtype=torch.int64)
    exact = exact_errors(predicted, payoffs, codes)
    bounds = calibration_error_bounds(predicted, payoffs, codes, 0.0, 1.0)
    torch.testing.assert_close(bounds, exact, rtol=1e-6, atol=1e-8)


def test_threads_change_no_bit_of_the_bounds():
    random = np.random.default_rng(2)
    predicted = torch.from_numpy(random.random((50, 2000)))
    payoffs = torch.from_numpy(random.normal(size=(50, 3)))
    codes = torch.from_numpy(random.integers(3, size=2000))
    alone = calibration_error_bounds(predicted, payoffs, codes, 0.0, 1.0)
    torch.set_num_threads(2)
    try:
        again = calibration_error_bounds(predicted, payoffs, codes, 0.0, 1.0)
    finally:
        torch.set_num_threads(1)
    assert torch.equal(alone, again)
