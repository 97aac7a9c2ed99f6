"""The compiled sort against NumPy's stable argsort."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from metrics.kernels.row_sort import SMALL, argsort_rows, argsort_short_rows, descending_order


def stable_argsort(values, descending=False):
    order = np.empty(values.shape, np.int32)
    argsort_rows(np.ascontiguousarray(values), descending, order)
    return order


SIZES = [1, 2, 3, 10, SMALL - 1, SMALL, SMALL + 1, 2 * SMALL, 1000, 5000]
KINDS = ["distinct", "tied", "saturated", "near_equal", "constant", "sorted", "reversed", "wide"]


def values_of(kind, n):
    random = np.random.default_rng(n)
    distinct = random.normal(size=n)
    if kind == "tied":
        return random.integers(-3, 4, size=n).astype(float)
    if kind == "saturated":  # softmax of confident logits: ones, and values down to denormals
        return np.where(
            random.random(n) < 0.5,
            1 - 2.0**-53 * random.integers(0, 3, n),
            10 ** (-320 * random.random(n)),
        )
    if kind == "near_equal":  # agree in the leading 33 bits, so the second stage sorts them
        return 0.7 + 2.0**-53 * random.integers(0, 1 << 20, size=n)
    if kind == "constant":
        return np.full(n, -2.5)
    if kind == "sorted":
        return np.sort(distinct)
    if kind == "reversed":
        return np.sort(distinct)[::-1].copy()
    if kind == "wide":  # all magnitudes, both signs, both zeros
        bits = random.integers(0, 1 << 64, size=n, dtype=np.uint64).view(np.float64)
        bits = np.where(np.isnan(bits), 0.0, bits)
        return np.where(random.random(n) < 0.2, np.copysign(0.0, bits), bits)
    return distinct


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", SIZES)
def test_the_order_is_numpys_stable_order(kind, n):
    values = values_of(kind, n)[None]
    np.testing.assert_array_equal(stable_argsort(values), np.argsort(values, kind="stable"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", SIZES)
def test_the_descending_order_keeps_equal_values_in_the_order_of_their_indices(kind, n):
    values = values_of(kind, n)[None]
    np.testing.assert_array_equal(
        stable_argsort(values, descending=True), np.argsort(-values, kind="stable")
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", SIZES)
def test_short_rows_are_sorted_like_long_ones(kind, n):
    values = np.stack([values_of(kind, n), values_of("distinct", n), values_of(kind, n)[::-1]])
    order = np.empty(values.shape, np.int32)
    argsort_short_rows(values, order)
    np.testing.assert_array_equal(order, np.argsort(-values, kind="stable"))


@given(
    values=st.lists(
        st.one_of(
            st.floats(allow_nan=False),
            st.sampled_from([0.0, -0.0, 1.0, 5e-324, -5e-324, np.inf, -np.inf]),
        ),
        min_size=1,
        max_size=40,
    ),
    repeats=st.sampled_from([1, 3, 30]),
    descending=st.booleans(),
)
def test_any_doubles_are_sorted_stably(values, repeats, descending):
    matrix = np.tile(np.array(values), repeats)[None]
    expected = np.argsort(-matrix if descending else matrix, kind="stable")
    np.testing.assert_array_equal(stable_argsort(matrix, descending), expected)
    if descending:
        order = np.empty(matrix.shape, np.int32)
        argsort_short_rows(matrix, order)
        np.testing.assert_array_equal(order, expected)


def test_rows_do_not_disturb_each_other():
    rows = [values_of(kind, 700) for kind in KINDS]
    np.testing.assert_array_equal(
        stable_argsort(np.array(rows)), [stable_argsort(row[None])[0] for row in rows]
    )


def test_views_are_sorted_as_they_are():
    values = np.random.default_rng(0).random((300, 5)).T
    order = np.empty(values.shape, np.int32)
    argsort_rows(values, False, order)
    np.testing.assert_array_equal(order, np.argsort(values, kind="stable"))
    np.testing.assert_array_equal(stable_argsort(values), order)


def test_the_values_are_left_as_they_were():
    values = values_of("saturated", 1000)[None]
    before = values.copy()
    stable_argsort(values)
    np.testing.assert_array_equal(values, before)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("threads", [1, 2])
def test_the_order_of_a_matrix_is_torchs_stable_one(kind, threads):
    """Which is what other devices use."""
    matrix = torch.from_numpy(np.stack([values_of(kind, 500) for _ in range(300)])).flip(0)
    by_torch = torch.sort(matrix, dim=1, descending=True, stable=True).indices
    torch.set_num_threads(threads)
    try:
        assert torch.equal(descending_order(matrix).to(torch.int64), by_torch)
    finally:
        torch.set_num_threads(1)
