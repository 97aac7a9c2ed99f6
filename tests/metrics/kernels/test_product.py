"""Matrix products are torch's, whoever computes them."""

import warnings

import pytest
import torch

from metrics.kernels import product as products
from metrics.kernels.product import product


@pytest.fixture(autouse=True, params=["NumPy's", "torch's"])
def whose(request, monkeypatch):
    if request.param == "NumPy's":
        monkeypatch.setattr(products, "LARGE", 0)
    return request.param


@pytest.fixture
def matrices():
    random = torch.Generator().manual_seed(5)
    return [torch.randn(shape, generator=random, dtype=torch.float64) for shape in ((7, 5), (5, 3))]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_product_has_the_number_type_of_its_factors(matrices, dtype):
    a, b = (each.to(dtype) for each in matrices)
    found = product(a, b)
    assert found.dtype == dtype
    torch.testing.assert_close(found, a @ b)


def test_factors_may_be_transposed_or_parts_of_others(matrices):
    a, b = matrices
    for first, second in ((b.T, a.T), (a[:, 1:4], b[:3]), (a[::2], b[:, ::2])):
        torch.testing.assert_close(product(first, second), first @ second)


def test_a_product_is_written_to_memory_that_is_given(matrices):
    a, b = matrices
    spare = torch.full((9, 3), torch.nan, dtype=torch.float64)
    found = product(a, b, spare[:7])
    assert found.data_ptr() == spare.data_ptr()
    torch.testing.assert_close(spare[:7], a @ b)
    assert spare[7:].isnan().all()


def test_without_points_a_product_is_empty(matrices):
    assert product(matrices[0][:0], matrices[1]).shape == (0, 3)


def test_a_product_beyond_the_number_type_is_infinite_and_warns_no_more_than_torch():
    large = torch.full((2, 2), 1e30)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert product(large, large).isinf().all()


def test_small_products_are_torch_s(monkeypatch, matrices, whose):
    monkeypatch.setattr(products, "np", None)
    if whose == "torch's":
        product(*matrices)
    else:
        with pytest.raises(AttributeError):
            product(*matrices)
