"""The compiled softmax against SciPy's, and the torch twin against the compiled one."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import metrics.kernels.softmax as module
from metrics.kernels.softmax import exponential, residuals, softmax, squared_errors

logits = arrays(
    np.float64,
    array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=9),
    elements=st.floats(-1e4, 1e4),
)


def test_exponential_is_exact_to_two_units_in_the_last_place():
    x = np.concatenate([np.linspace(-707.9, 0, 4001), -np.logspace(-300, 0, 301)])
    computed = np.array([exponential(value) for value in x])
    np.testing.assert_allclose(computed, np.exp(x), rtol=5e-16)
    assert exponential(0.0) == 1.0
    assert exponential(-709.0) == exponential(-1e300) == 0.0


@settings(deadline=None, max_examples=60)
@given(logits, st.floats(1e-6, 1e6))
def test_softmax_equals_scipy(values, scale):
    computed = softmax(torch.from_numpy(values), scale).numpy()
    np.testing.assert_allclose(
        computed, scipy.special.softmax(scale * values, axis=1), rtol=1e-8, atol=1e-15
    )
    np.testing.assert_allclose(computed.sum(axis=1), 1, atol=1e-14)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_torch_twins_agree(dtype, monkeypatch):
    values = 5 * torch.randn(50, 7, generator=torch.Generator().manual_seed(0)).to(dtype)
    labels = torch.arange(50) % 7
    p, compiled = softmax(values, 0.3), [values.clone(), values.clone()]
    sums = [residuals(compiled[0], labels), squared_errors(compiled[1], labels)]
    monkeypatch.setattr(module, "has_kernels", lambda tensor: False)
    plain = [values.clone(), values.clone()]
    torch.testing.assert_close(softmax(values, 0.3), p, rtol=1e-13, atol=1e-16)
    assert residuals(plain[0], labels) == pytest.approx(sums[0], rel=1e-14)
    assert squared_errors(plain[1], labels) == pytest.approx(sums[1], rel=1e-14)
    atol = 1e-7 if dtype == torch.float32 else 1e-15
    torch.testing.assert_close(plain, compiled, rtol=1e-6, atol=atol)


def test_residuals_are_the_gradient_of_the_cross_entropy():
    values = torch.randn(20, 4, dtype=torch.float64, requires_grad=True)
    labels = torch.arange(20) % 4
    expected = torch.nn.functional.cross_entropy(values, labels, reduction="sum")
    expected.backward()
    block = values.detach().clone()
    assert residuals(block, labels) == pytest.approx(expected.item(), rel=1e-13)
    torch.testing.assert_close(block, values.grad, atol=1e-14, rtol=1e-12)


@settings(deadline=None, max_examples=40)
@given(logits, st.integers(0, 10**6))
def test_squared_errors_are_the_brier_score_and_its_gradient(values, seed):
    labels = torch.from_numpy(np.random.default_rng(seed).integers(0, values.shape[1], len(values)))
    z = torch.from_numpy(values).clone().requires_grad_()
    p = torch.softmax(z, dim=1)
    away = p - torch.nn.functional.one_hot(labels, values.shape[1])
    expected = away.square().sum()
    expected.backward()
    block = z.detach().clone()
    assert squared_errors(block, labels) == pytest.approx(expected.item(), rel=1e-12, abs=1e-14)
    torch.testing.assert_close(block, z.grad, rtol=1e-9, atol=1e-14)
