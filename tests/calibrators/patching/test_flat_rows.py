"""Rows that are the same but for a few probabilities: found, and multiplied as others are."""

import numpy as np
import pytest
import torch

from calibrators.patching.flat_rows import TERMS, TILE, flat_products, flat_rows
from metrics.forecast import Forecast

CLASSES = 40


def row(above, plateau, below=()):
    """Probabilities in descending order, `plateau` in the middle, that add up to one."""
    middle = np.full(CLASSES - len(above) - len(below), plateau)
    p = np.concatenate([above, middle, below])
    return p / p.sum()


ROWS = {
    "constant": (row([], 1.0), True),
    "one hot": (row([1.0], 0.0), True),
    "a few, else zero": (row([0.5, 0.3, 0.1], 0.0), True),
    "a few, else the same": (row([9.0, 5.0, 3.0], 0.1), True),
    "zeros below the plateau": (row([9.0], 0.1, [0.05, *[0.0] * 7]), True),
    "as many off it as may be": (row(np.arange(10.0, 0, -1), 0.5, np.zeros(10)), True),
    "one too many above": (row(np.arange(11.0, 0, -1), 0.5), False),
    "one too many below": (row([], 0.5, np.zeros(11)), False),
    "all different": (row(np.arange(40.0, 0, -1), 0.0), False),
}


def shuffled(seed=0):
    """The rows with their classes in any order, repeated to more than one tile."""
    random = np.random.default_rng(seed)
    rows = np.array([p for p, _ in ROWS.values()] * (2 * TILE // len(ROWS) + 1))
    return torch.from_numpy(random.permuted(rows, axis=1))


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_flat_if_the_middle_half_of_its_ranking_is(name):
    p, expected = ROWS[name]
    forecast = Forecast(torch.from_numpy(np.random.default_rng(1).permutation(p))[None])
    assert bool(flat_rows(forecast.probabilities, forecast.order)) == expected


@pytest.mark.parametrize("classes", [2, 3, 4, 5])
def test_few_classes_have_a_middle_too(classes):
    p = torch.tensor([[1.0] + [0.0] * (classes - 1), [1 / classes] * classes]).double()
    flat = flat_rows(p, Forecast(p).order)
    assert flat.tolist() == [classes > 3, True]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("utilities", [1, 33])
def test_products_are_those_of_the_whole_rows(dtype, utilities):
    """Of flat rows and of others: these only take longer."""
    forecast = Forecast(shuffled())
    payoffs = torch.from_numpy(np.random.default_rng(2).uniform(-1, 1, (utilities, CLASSES)))
    rows = torch.arange(forecast.n - 1, -1, -1)
    out = torch.full((utilities, forecast.n), torch.nan, dtype=dtype)
    flat_products(forecast.probabilities, forecast.order, rows, payoffs, out)
    error = (out.double() - payoffs @ forecast.probabilities[rows].T).abs().max()
    assert float(error) < {torch.float32: 1e-6, torch.float64: 1e-15 * TERMS}[dtype]


def test_products_go_to_a_part_of_a_wider_table():
    forecast = Forecast(shuffled())
    payoffs = torch.ones(3, CLASSES, dtype=torch.float64)
    table = torch.zeros(3, forecast.n + 2)
    part, rows = table[:, 1:-1], torch.arange(forecast.n)
    flat_products(forecast.probabilities, forecast.order, rows, payoffs, part)
    torch.testing.assert_close(part, torch.ones_like(part))
    assert bool((table[:, [0, -1]] == 0).all())
