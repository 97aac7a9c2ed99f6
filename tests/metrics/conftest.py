"""What the tests of the metrics share: slow definitions to compare with, and awkward forecasts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# The same examples in every run: a failure is a change of the code, never the luck of a draw.
settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """The inputs are tiny: threads would cost more than they save."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _over_all_closed_intervals(predicted: Floats, realized: Floats) -> float:
    v, residual = np.asarray(predicted, float), np.asarray(realized, float) - predicted
    ends = sorted(set(v.tolist()))
    inside = (residual[(v >= a) & (v <= b)] for a, b in _pairs(ends))
    return max(abs(values.sum()) for values in inside) / len(v)


def _pairs(ends: list[float]) -> Iterator[tuple[float, float]]:
    return itertools.combinations_with_replacement(ends, 2)


@pytest.fixture(scope="session")
def brute_force() -> Callable[[Floats, Floats], float]:
    """UC by its definition: the largest |mean((u - v) · 1{v in I})| over closed intervals I.

    Only ends at values of v matter. Costs O(distinct values² · n).
    """
    return _over_all_closed_intervals


def _utility_by_utility(
    probabilities: Floats, labels: NDArray[np.int64], utility: Callable[[Floats, int], float]
) -> float:
    classes = range(probabilities.shape[1])
    predicted = [sum(p[j] * utility(p, j) for j in classes) for p in probabilities]
    realized = [utility(p, y) for p, y in zip(probabilities, labels)]
    return _over_all_closed_intervals(np.array(predicted), np.array(realized))


@pytest.fixture(scope="session")
def slow_error() -> Callable[..., float]:
    """UC of a utility given as a plain function of (row of probabilities, outcome)."""
    return _utility_by_utility


def _ranks(p: Floats) -> list[int]:
    order = sorted(range(len(p)), key=lambda j: (-p[j], j))
    return [order.index(j) for j in range(len(p))]


@pytest.fixture(scope="session")
def slow_ranks() -> Callable[[Floats], list[int]]:
    """Position of each class in descending order of p, ties broken by the class number."""
    return _ranks


def _forecast(kind: str, n: int, classes: int, seed: int) -> tuple[Floats, NDArray[np.int64]]:
    random = np.random.default_rng(seed)
    if kind == "smooth":
        p = random.dirichlet(np.full(classes, 0.5), size=n)
    elif kind == "saturated":
        z = random.normal(scale=40, size=(n, classes))
        z = np.exp(z - z.max(axis=1, keepdims=True))
        p = z / z.sum(axis=1, keepdims=True)
    elif kind == "dyadic":  # sums in any order are exact, so ties are ties in any implementation
        p = random.multinomial(8, np.full(classes, 1 / classes), size=n) / 8
    elif kind == "one_hot":
        p = np.eye(classes)[random.integers(classes, size=n)]
    else:
        p = np.full((n, classes), 1 / classes)
    return p, random.integers(classes, size=n)


@pytest.fixture(scope="session")
def forecast_of() -> Callable[..., tuple[Floats, NDArray[np.int64]]]:
    """Make (probabilities [n, C], labels [n]) of a kind: smooth, saturated, dyadic, one_hot, flat.

    Labels are uniform over the classes.
    """
    return _forecast
