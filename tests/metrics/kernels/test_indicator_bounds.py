"""Bounds from sums of columns, and bounds that allow for predictions in float32."""

import numpy as np
import pytest
import torch

from metrics import ClassWise, TopK
from metrics.forecast import Forecast
from metrics.kernels.bounds import (
    class_wise_sums,
    indicator_bounds,
    top_k_sums,
)


def class_wise_bounds(p, labels):
    hits = torch.bincount(labels, minlength=p.shape[1])
    return indicator_bounds(class_wise_sums(p, labels), hits, len(p))


def top_k_bounds(top_sums, ranks):
    hits = torch.bincount(ranks, minlength=top_sums.shape[1]).cumsum(dim=0)
    return indicator_bounds(top_k_sums(top_sums, ranks), hits, len(ranks))


def forecast(n, classes, seed):
    random = np.random.default_rng(seed)
    p = random.dirichlet(np.full(classes, 0.3), size=n)
    p[random.random((n, classes)) < 0.3] = 0
    p[p.sum(axis=1) == 0] = 1
    p /= p.sum(axis=1, keepdims=True)
    return torch.from_numpy(p), torch.from_numpy(random.integers(classes, size=n))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("n", "classes"), [(1, 2), (40, 3), (500, 20)])
def test_sums_of_columns_bound_the_errors(n, classes, seed):
    p, labels = forecast(n, classes, seed)
    f = Forecast(p)
    ranks = f.outcomes(labels).ranks[0]
    assert bool((class_wise_bounds(p, labels) >= ClassWise().calibration_errors(p, labels)).all())
    assert bool((top_k_bounds(f.top_sums, ranks) >= TopK().calibration_errors(p, labels)).all())


def test_a_forecast_that_is_wrong_in_one_direction_has_tight_bounds():
    p = torch.tensor([[0.7, 0.3], [0.6, 0.4], [0.9, 0.1]], dtype=torch.float64)
    labels = torch.zeros(3, dtype=torch.int64)
    exact = ClassWise().calibration_errors(p, labels)
    torch.testing.assert_close(class_wise_bounds(p, labels), exact, rtol=0, atol=1e-8)
