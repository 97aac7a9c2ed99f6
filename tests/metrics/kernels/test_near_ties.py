"""Rankings with ties: the compiled one is torch's, and torch's is the reference's."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from calibrators.reference import tied_order
from metrics.kernels.near_ties import near_tie_order, near_tie_order_torch

TIED = 2.5e-7
SHAPES = ["softmax", "crowded", "plateau", "chains", "one hot", "rounded"]


def probabilities(shape, n, classes, seed):
    random = np.random.default_rng(seed)
    if shape == "one hot":
        return np.eye(classes)[random.integers(classes, size=n)]
    if shape == "chains":  # neighbours about the tolerance apart, across many cells
        return random.uniform(0, 2, size=(n, classes)) * TIED * classes
    z = random.normal(scale={"crowded": 8.0}.get(shape, 2.0), size=(n, classes))
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    if shape == "plateau":
        p = np.minimum(p, np.median(p, axis=1, keepdims=True)) + random.normal(size=p.shape) * 1e-17
        return p.clip(min=0)
    return p.round(4) if shape == "rounded" else p


@pytest.mark.parametrize("order", [near_tie_order, near_tie_order_torch])
@given(
    shape=st.sampled_from(SHAPES),
    n=st.integers(1, 30),
    classes=st.sampled_from([2, 3, 10, 100, 1024, 1025]),
    seed=st.integers(0, 1000),
)
def test_it_is_the_order_of_the_reference(order, shape, n, classes, seed):
    p = probabilities(shape, n, classes, seed)
    found = order(torch.from_numpy(p), TIED)
    np.testing.assert_array_equal(found.numpy(), tied_order(p, TIED))


@pytest.mark.parametrize("tied", [1e-3, 1e-12])
def test_any_tolerance_fits_into_keys(tied):
    p = probabilities("softmax", 50, 1000, 0)
    found = near_tie_order(torch.from_numpy(p), tied)
    np.testing.assert_array_equal(found.numpy(), tied_order(p, tied))


def test_rounding_beyond_one_and_zero_changes_nothing():
    p = torch.tensor([[1 + 2e-16, -1e-17, 0.0], [-1e-17, 0.5, 0.5 + 1e-17]], dtype=torch.float64)
    assert near_tie_order(p, TIED).tolist() == [[0, 1, 2], [1, 2, 0]]
