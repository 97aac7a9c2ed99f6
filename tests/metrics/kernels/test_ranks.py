"""Rankings: those of NumPy's stable sort, and with ties those of the reference."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from utility_calibration.calibrators.reference import tied_order
from utility_calibration.metrics.kernels.ranks import (
    _plain_order,
    ascending_order,
    descending_order,
    ranked_sums,
    ranked_values,
)

TIED = 2.5e-7
SHAPES = ["softmax", "crowded", "plateau", "chains", "one hot", "rounded", "large", "logs"]


def probabilities(shape, n, classes, seed):
    random = np.random.default_rng(seed)
    if shape == "one hot":
        return np.eye(classes)[random.integers(classes, size=n)]
    if shape in ("chains", "large"):  # neighbours about the tolerance apart, across many cells
        large = random.random((n, classes)) < (16 / classes if shape == "large" else 0)
        return random.uniform(0, 2, size=(n, classes)) * TIED * np.where(large, 16, classes) + large
    z = random.normal(scale={"crowded": 8.0}.get(shape, 2.0), size=(n, classes))
    p = np.exp(z - z.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    if shape == "plateau":
        p = np.minimum(p, np.median(p, axis=1, keepdims=True)) + random.normal(size=p.shape) * 1e-17
        return p.clip(min=0)
    if shape == "logs":  # of 100 classes and more, most are too large for cells
        return np.log(p.round(4) + 1e-300) + random.uniform(0, TIED, size=p.shape)
    return p.round(4) if shape == "rounded" else p


@pytest.mark.parametrize("order", [descending_order, _plain_order])
@given(
    shape=st.sampled_from(SHAPES),
    n=st.integers(1, 30),
    classes=st.sampled_from([2, 3, 10, 100, 1024, 1025]),
    seed=st.integers(0, 1000),
)
def test_it_is_the_order_of_the_reference(order, shape, n, classes, seed):
    p = probabilities(shape, n, classes, seed)
    found = order(p, TIED)
    np.testing.assert_array_equal(found, tied_order(p, TIED))


def test_rounding_beyond_one_and_zero_changes_nothing():
    p = np.array([[1 + 2e-16, -1e-17, 0.0], [-1e-17, 0.5, 0.5 + 1e-17]], dtype=np.float64)
    assert descending_order(p, TIED).tolist() == [[0, 1, 2], [1, 2, 0]]


def test_large_values_that_are_tied_are_ordered_by_class():
    p = np.zeros((1, 1000), dtype=np.float64)
    p[0, [1, 2, 3]] = np.array([0.3, 0.3 + 1e-8, 0.4], dtype=np.float64)
    assert descending_order(p, TIED)[0, :5].tolist() == [3, 1, 2, 0, 4]


def odd_values(kind, n):
    random = np.random.default_rng(n)
    if kind == "tied":
        return random.integers(-3, 4, size=n).astype(float)
    if kind == "saturated":  # softmax of confident logits: ones, and values down to denormals
        small = 10 ** (-320 * random.random(n))
        return np.where(random.random(n) < 0.5, 1 - 2.0**-53 * random.integers(0, 3, n), small)
    if kind == "near_equal":  # they differ in the bits that give way to the class number only
        return 0.7 + 2.0**-53 * random.integers(0, 64, size=n)
    if kind == "wide":  # all magnitudes, both signs, both zeros
        bits = random.integers(0, 1 << 64, size=n, dtype=np.uint64).view(np.float64)
        bits = np.where(np.isnan(bits), 0.0, bits)
        return np.where(random.random(n) < 0.2, np.copysign(0.0, bits), bits)
    return random.normal(size=n)


@pytest.mark.parametrize("kind", ["distinct", "tied", "saturated", "near_equal", "wide"])
@pytest.mark.parametrize("n", [1, 2, 10, 100, 1000])
def test_the_descending_order_is_numpys_stable_order(kind, n):
    values = np.stack([odd_values(kind, n), odd_values("distinct", n), odd_values(kind, n)[::-1]])
    found = descending_order(values)
    np.testing.assert_array_equal(found, np.argsort(-values, axis=1, kind="stable"))
    found = ascending_order(values)
    np.testing.assert_array_equal(found, np.argsort(values, axis=1, kind="stable"))


@pytest.mark.parametrize("kind", [np.int16, np.int32, np.int64])
def test_values_and_sums_in_order_are_numpys(kind):
    matrix = np.random.default_rng(0).random((50, 7))
    order = descending_order(matrix).astype(kind)
    ranked = np.take_along_axis(matrix, order, axis=1)
    np.testing.assert_array_equal(ranked_values(matrix, order), ranked)
    np.testing.assert_array_equal(ranked_sums(matrix, order), ranked.cumsum(axis=1))
