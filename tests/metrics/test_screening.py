"""Upper bounds without a sort: never too low, and low enough to spare most sorts."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from metrics.prefix_range import prefix_range
from metrics.screening import TILE, calibration_error_bounds


def exact_errors(predicted, payoffs, codes):
    sums = prefix_range(predicted.T.contiguous(), payoffs.T.double().contiguous(), codes[None])
    return (sums.high[0] - sums.low[0]) / len(predicted)


LAYOUTS = {
    "by columns": lambda predicted: predicted.contiguous(),
    "by rows": lambda predicted: predicted.T.contiguous().T,
}
"""The two forms of [n, b] in memory; each has a kernel of its own."""


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@given(
    n=st.integers(1, 300),
    columns=st.integers(1, 2 * TILE + 3),
    outcomes=st.integers(1, 4),
    levels=st.sampled_from([1, 3, 1000]),
    low=st.sampled_from([-1.0, 0.0, 0.4]),
    width=st.sampled_from([0.01, 1.0, 50.0]),
    seed=st.integers(0, 999),
)
def test_no_bound_lies_below_the_exact_error(
    layout, n, columns, outcomes, levels, low, width, seed
):
    """Also for predictions outside [low, high] and for payoffs of any sign."""
    random = np.random.default_rng(seed)
    predicted = torch.from_numpy(random.choice(random.normal(size=levels), size=(n, columns)))
    payoffs = torch.from_numpy(random.normal(size=(outcomes, columns)))
    codes = torch.from_numpy(random.integers(outcomes, size=n))
    bounds = calibration_error_bounds(layout(predicted), payoffs, codes, low, low + width)
    assert bounds.shape == (columns,)
    assert bool((bounds >= exact_errors(predicted, payoffs, codes)).all())


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("buckets", [128, 1024])
def test_predictions_on_the_borders_of_buckets_are_bounded(layout, buckets):
    grid = torch.arange(buckets + 1, dtype=torch.float64)[:, None] / buckets
    predicted = torch.cat([grid, torch.nextafter(grid, torch.tensor(2.0).double()), -0.0 * grid])
    predicted = layout(predicted.repeat(1, 2))
    codes = torch.arange(len(predicted)) % 2
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
    top_sums = ordered.cumsum(dim=1)
    ranks = (order == y[:, None]).long().argmax(dim=1)
    within = torch.ones(60, 60, dtype=torch.int8).triu()
    exact = exact_errors(top_sums, within, ranks)
    bounds = calibration_error_bounds(top_sums, within, ranks, 0.0, 1.0)
    assert float((bounds < exact.max()).double().mean()) > 0.5


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_bounds_of_a_forecast_with_a_systematic_error_are_close(layout):
    """Where the residuals of a bucket have one sign, nothing is lost by not sorting it."""
    random = np.random.default_rng(1)
    predicted = layout(torch.from_numpy(0.5 + 0.4 * random.random((5000, 3))))
    payoffs, codes = torch.zeros(1, 3, dtype=torch.float64), torch.zeros(5000, dtype=torch.int64)
    exact = exact_errors(predicted, payoffs, codes)
    bounds = calibration_error_bounds(predicted, payoffs, codes, 0.0, 1.0)
    torch.testing.assert_close(bounds, exact, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("threads", [1, 2])
def test_threads_change_no_bit_of_the_bounds(threads, layout):
    random = np.random.default_rng(2)
    predicted = layout(torch.from_numpy(random.random((2000, 50))))
    payoffs = torch.from_numpy(random.normal(size=(3, 50)))
    codes = torch.from_numpy(random.integers(3, size=2000))
    alone = calibration_error_bounds(predicted, payoffs, codes, 0.0, 1.0)
    torch.set_num_threads(threads)
    try:
        again = calibration_error_bounds(predicted, payoffs, codes, 0.0, 1.0)
    finally:
        torch.set_num_threads(1)
    assert torch.equal(alone, again)
