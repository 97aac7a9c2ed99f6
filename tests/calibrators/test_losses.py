"""The losses and their gradients: against autograd, and the torch twins against the kernels."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrators import losses
from calibrators.losses import residuals
from tests.metrics.kernels.test_softmax import logits


@pytest.mark.parametrize("kind", ["nll", "brier"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_torch_twins_agree(dtype, kind, monkeypatch):
    values = 5 * torch.randn(50, 7, generator=torch.Generator().manual_seed(0)).to(dtype)
    labels = torch.arange(50) % 7
    compiled, plain = values.clone(), values.clone()
    loss = residuals(compiled, labels, loss=kind)
    monkeypatch.setattr(losses, "has_kernels", lambda tensor: False)
    assert residuals(plain, labels, loss=kind) == pytest.approx(loss, rel=1e-14)
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
    assert residuals(block, labels, loss="brier") == pytest.approx(
        expected.item(), rel=1e-12, abs=1e-14
    )
    torch.testing.assert_close(block, z.grad, rtol=1e-9, atol=1e-14)
