"""Predictions in float32 are within their margin of those in float64, which are the definition."""

import numpy as np
import pytest
import torch

from calibrators.patching import screened_products
from calibrators.patching.screened_products import (
    FEW_UTILITIES,
    MANY_CLASSES,
    LinearProducts,
    RankProducts,
    drops,
)
from calibrators.patching.state import PatchedForecast, Witness

N = 700
CLASSES = {"few": 20, "many": MANY_CLASSES + 44}
STATES = ["dense", "flat", "mixed", "lifted"]


def forecast(kind, classes, seed=0):
    """Fresh, all rows with zeros, half of them, or half with a plateau above zero."""
    random = np.random.default_rng(seed)
    p = random.dirichlet(np.full(classes, 0.3), size=N)
    state = PatchedForecast(torch.from_numpy(p), torch.from_numpy(random.integers(classes, size=N)))
    rows = torch.arange(N) if kind == "flat" else torch.from_numpy(random.permutation(N)[: N // 2])
    if kind != "dense":
        state.move(rows, Witness.of_top_k(0, classes), 0.7)  # leaves a few positive
    if kind == "lifted":
        state.move(rows[::2], Witness.of_top_k(0, classes), -0.1)
    return state


def payoffs(classes, by_rank, seed=1):
    random = np.random.default_rng(seed)
    table = random.uniform(-1, 1, size=(30, classes))
    table[0] = 1.0  # predicts one everywhere
    table[1] = np.where(np.arange(classes) == 0, 1.0, -1.0)
    table = -np.sort(-table, axis=1) if by_rank else table
    return torch.from_numpy(table)


@pytest.mark.parametrize("by_rank", [False, True])
@pytest.mark.parametrize("classes", CLASSES.values(), ids=CLASSES)
@pytest.mark.parametrize("kind", STATES)
def test_single_precision_is_within_its_margin(kind, classes, by_rank, monkeypatch):
    monkeypatch.setattr(screened_products, "ROWS_AT_ONCE", 128)
    state, table = forecast(kind, classes), payoffs(classes, by_rank)
    products = (RankProducts if by_rank else LinearProducts)(state, table)
    p, points = state.probabilities, torch.arange(N)
    if by_rank:
        p = p.gather(1, state.order.long())
    else:
        points = torch.cat([products.flat, products.others])
    expected = table @ p[points].T
    single = torch.full((30, N), torch.nan)
    products.write_single(single)
    assert float((single.double() - expected).abs().max()) <= products.margin
    assert torch.equal(products.codes, (state.ranks if by_rank else state.labels)[points])
    for some in (torch.tensor([0, 1, 17]), torch.arange(3, FEW_UTILITIES + 10)):
        torch.testing.assert_close(products.exact(some), expected[some], rtol=0, atol=1e-13)


@pytest.mark.parametrize("kind", STATES)
def test_every_point_has_one_row(kind):
    classes = CLASSES["many"]
    products = LinearProducts(forecast(kind, classes), payoffs(classes, False))
    points = torch.cat([products.flat, products.others])
    assert torch.equal(points.sort().values, torch.arange(N))
    counts = {"dense": 0, "flat": N, "mixed": N // 2, "lifted": N // 2}
    assert len(products.flat) == counts[kind]


def test_margins_are_narrow_enough_for_the_buckets_of_an_audit():
    classes = 1000
    p = torch.full((4, classes), 1 / classes, dtype=torch.float64)
    state = PatchedForecast(p, torch.arange(4))
    assert LinearProducts(state, payoffs(classes, False)).margin < 1e-4
    assert RankProducts(state, payoffs(classes, True)).margin < 1e-4


def test_drops_turn_sums_of_ranked_probabilities_into_predictions():
    p, table = forecast("dense", 20), payoffs(20, True)
    ranked = p.probabilities.gather(1, p.order.long())
    found = drops(table) @ ranked.cumsum(dim=1).T
    torch.testing.assert_close(found, table @ ranked.T, rtol=0, atol=1e-14)
