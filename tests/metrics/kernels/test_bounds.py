"""Upper bounds without a sort: never too low, and low enough to spare most sorts."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from metrics.forecast import Forecast
from metrics.kernels.bounds import class_wise_sums, indicator_bounds, top_k_sums
from metrics.kernels.prefix_range import prefix_range


def overconfident_forecast(n, classes, seed):
    random = np.random.default_rng(seed)
    z = random.normal(scale=2.5, size=(n, classes))
    truth = np.exp(z / 1.6)
    truth /= truth.sum(axis=1, keepdims=True)
    labels = (random.random((n, 1)) > truth.cumsum(axis=1)).sum(axis=1).clip(max=classes - 1)
    claimed = np.exp(z)
    return torch.from_numpy(claimed / claimed.sum(axis=1, keepdims=True)), torch.from_numpy(labels)


def bounds_and_errors(p, labels):
    """Of U_CWE, then of U_topK: [2C] each."""
    n, classes = p.shape
    forecast = Forecast(p)
    ranks = forecast.outcomes(labels).ranks[0].long()
    one = torch.eye(classes, dtype=torch.float64)
    bounds, errors = [], []
    for predicted, payoffs, codes, sums in (
        (p, one, labels, class_wise_sums(p, labels)),
        (
            forecast.top_sums,
            torch.ones_like(one).tril(),
            ranks,
            top_k_sums(forecast.top_sums, ranks),
        ),
    ):
        hits = payoffs[:, codes].sum(dim=1)
        bounds.append(indicator_bounds(sums, hits, n))
        ranges = prefix_range(predicted.T.contiguous(), payoffs, codes[None])
        errors.append((ranges.high[0] - ranges.low[0]) / n)
    return torch.cat(bounds), torch.cat(errors)


@given(st.integers(1, 300), st.integers(2, 12), st.integers(0, 999))
def test_no_bound_lies_below_the_error(n, classes, seed):
    bounds, errors = bounds_and_errors(*overconfident_forecast(n, classes, seed))
    assert bool((bounds >= errors).all())


def test_the_bound_of_a_systematic_error_is_the_error():
    """Where all residuals have one sign nothing is lost."""
    p = torch.tensor([[0.7, 0.3]], dtype=torch.float64).repeat(500, 1)
    bounds, errors = bounds_and_errors(p, torch.ones(500, dtype=torch.int64))
    torch.testing.assert_close(bounds, errors, rtol=0, atol=1e-8)
