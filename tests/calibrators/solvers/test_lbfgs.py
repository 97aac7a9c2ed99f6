"""The minimiser on problems with known answers."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrators.solvers.lbfgs import minimize


def quadratic(matrix, centre):
    def objective(point):
        away = point - centre
        return 0.5 * float(away @ matrix @ away), matrix @ away

    return objective


@settings(deadline=None, max_examples=20)
@given(size=st.integers(1, 12), condition=st.floats(0, 5), seed=st.integers(0, 10**6))
def test_quadratics_are_minimised(size, condition, seed):
    generator = torch.Generator().manual_seed(seed)
    basis = torch.linalg.qr(torch.randn(size, size, dtype=torch.float64, generator=generator))[0]
    matrix = basis @ torch.diag(torch.logspace(0, condition, size, dtype=torch.float64)) @ basis.T
    centre = torch.randn(size, dtype=torch.float64, generator=generator)
    found = minimize(
        quadratic(matrix, centre),
        torch.zeros_like(centre),
        lambda gradient: gradient / matrix.diagonal(),
        tolerance=1e-16,
        max_iterations=2000,
    )
    assert found.converged
    torch.testing.assert_close(found.point, centre, atol=1e-6, rtol=0)


def test_the_value_never_rises_and_giving_up_is_not_convergence():
    values = []

    def rosenbrock(point):
        variable = point.clone().requires_grad_()
        value = 100 * (variable[1] - variable[0] ** 2) ** 2 + (1 - variable[0]) ** 2
        (gradient,) = torch.autograd.grad(value, variable)
        return value.item(), gradient

    def watch(iteration, point):
        values.append(rosenbrock(point)[0])
        return iteration == 8

    start = torch.tensor([-1.2, 1.0], dtype=torch.float64)
    options = {"tolerance": 1e-18, "max_iterations": 200}
    stopped = minimize(rosenbrock, start, lambda g: g.clone(), give_up=watch, **options)
    assert not stopped.converged and stopped.iterations == 8
    assert values == sorted(values, reverse=True)
    found = minimize(rosenbrock, start, lambda g: g.clone(), **options)
    torch.testing.assert_close(found.point, torch.ones(2, dtype=torch.float64), atol=1e-7, rtol=0)


@pytest.mark.parametrize("noise", [0.0, 1e-9])
def test_it_stops_where_rounding_hides_progress(noise):
    def objective(point):
        jitter = noise * torch.sin(1e9 * point).item()
        return 1 + (point**2).sum().item() + jitter, 2 * point

    found = minimize(
        objective,
        torch.tensor([1.0], dtype=torch.float64),
        lambda gradient: gradient / 3,
        tolerance=0.0,
        max_iterations=100,
        rounding=1e-8,
    )
    assert abs(found.point.item()) < 1e-3
    assert found.evaluations < 60
