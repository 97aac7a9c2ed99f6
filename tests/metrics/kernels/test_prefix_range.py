"""The compiled running sums against plain torch (what runs on a GPU) and against a slow loop."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from metrics.kernels.prefix_range import prefix_range, prefix_range_torch


def problem(utilities, n, codes, draws, seed, distinct):
    """Random predictions of at most `distinct` values each, payoffs and outcome codes."""
    random = np.random.default_rng(seed)
    levels = np.concatenate([[0.0, -0.0, 1.0, np.nextafter(1.0, 0)], random.normal(size=distinct)])
    return (
        torch.from_numpy(random.choice(levels, size=(utilities, n))),
        torch.from_numpy(random.normal(size=(utilities, codes))),
        torch.from_numpy(random.integers(codes, size=(draws, n))),
    )


def in_a_loop(predicted, payoffs, codes, edges):
    """Low, high and sums at the edges of one utility under one draw, in plain Python."""
    order = sorted(range(len(predicted)), key=lambda i: predicted[i])  # sorted() is stable
    total, low, high, sums = 0.0, 0.0, 0.0, [0.0]
    for position, i in enumerate(order):
        total += payoffs[codes[i]] - predicted[i]
        sums.append(total)
        last = position + 1 == len(order)
        if last or predicted[order[position + 1]] != predicted[i]:
            low, high = min(low, total), max(high, total)
    return low, high, [sums[edge] for edge in edges]


@given(
    utilities=st.integers(1, 4),
    n=st.integers(1, 40),
    codes=st.integers(1, 5),
    draws=st.integers(1, 3),
    bins=st.integers(1, 50),
    distinct=st.sampled_from([1, 5, 40]),
    seed=st.integers(0, 999),
)
def test_both_implementations_equal_the_loop(utilities, n, codes, draws, bins, distinct, seed):
    predicted, payoffs, outcome = problem(utilities, n, codes, draws, seed, distinct)
    edges = (torch.arange(bins + 1) * n // bins)[None]  # bins > n leaves some empty
    compiled = prefix_range(predicted, payoffs, outcome, edges)
    plain = prefix_range_torch(predicted, payoffs, outcome, edges)
    for draw in range(draws):
        for row in range(utilities):
            low, high, sums = in_a_loop(
                predicted[row].tolist(),
                payoffs[row].tolist(),
                outcome[draw].tolist(),
                edges[0].tolist(),
            )
            for result in (compiled, plain):
                assert float(result.low[draw, row]) == pytest.approx(low, abs=1e-12)
                assert float(result.high[draw, row]) == pytest.approx(high, abs=1e-12)
                assert result.at_edges[draw, row].tolist() == pytest.approx(sums, abs=1e-12)


def test_outcome_codes_may_be_many():
    """More than 16 bits hold, as where every point has payoffs of its own."""
    n = 70_000
    random = np.random.default_rng(0)
    v = torch.from_numpy(random.random((2, n)).round(4))
    payoffs = torch.from_numpy(random.normal(size=(2, n)))
    edges = torch.tensor([[0, n // 2, n]])
    for draws in (1, 3):
        codes = torch.from_numpy(np.stack([random.permutation(n) for _ in range(draws)]))
        found = prefix_range(v, payoffs, codes, edges)
        expected = prefix_range_torch(v, payoffs, codes, edges)
        torch.testing.assert_close(found[:2], expected[:2], rtol=1e-9, atol=1e-9)


@given(
    n=st.integers(1, 300),
    draws=st.integers(1, 4),
    bins=st.integers(0, 15),
    distinct=st.sampled_from([1, 5, 40, 10_000]),
    kind=st.sampled_from(["whole", "float32", "float64", "signed"]),
    of_labels=st.booleans(),
    seed=st.integers(0, 999),
)
def test_weights_of_every_kind_equal_plain_torch(n, draws, bins, distinct, kind, of_labels, seed):
    """Many sets of weights, or many draws of the labels under one set."""
    predicted, payoffs, outcome = problem(3, n, 4, draws if of_labels else 1, seed, distinct)
    payoffs = payoffs.round()  # some outcomes pay the same
    random, size = np.random.default_rng(seed), (1 if of_labels else draws, n)
    drawn = random.integers(4, size=size) if kind == "whole" else random.random(size)
    if kind == "signed":
        drawn, bins = drawn - 0.5, 0  # multipliers have no edges
    weights = torch.from_numpy(drawn.astype(np.float32 if kind == "float32" else np.float64))
    edges = weights.double().sum(dim=1, keepdim=True) * torch.arange(bins + 1) / max(1, bins)
    given = predicted, payoffs, outcome, edges if bins else None, weights
    ours = prefix_range(*given)
    plain = prefix_range_torch(
        predicted, payoffs, outcome, edges if bins else edges[:, :0], weights
    )
    for compiled, expected in zip(ours, plain, strict=True):
        torch.testing.assert_close(compiled, expected, rtol=0, atol=1e-11)


def test_calls_that_share_an_order_find_what_they_find_alone():
    predicted, payoffs, outcome = problem(3, 60, 4, 5, 0, 40)
    edges, weights = torch.tensor([[0, 20, 60]]), torch.rand(5, 60, dtype=torch.float64)
    orders = []
    for call in [(outcome, edges), (outcome[:2],), (outcome[:1], None, weights)] * 2:
        shared = prefix_range(predicted, payoffs, *call, orders=orders)
        for ours, alone in zip(shared, prefix_range(predicted, payoffs, *call), strict=True):
            assert torch.equal(ours, alone)
    assert len(orders) == 1


def test_ranges_within_the_margin_of_the_largest_are_exact():
    generator = torch.Generator().manual_seed(0)
    predicted = torch.rand(300, 400, generator=generator, dtype=torch.float64)
    payoffs = torch.randn(300, 5, generator=generator, dtype=torch.float64)
    codes = torch.randint(5, (1, 400), generator=generator)
    exact, pruned = (
        (sums.high - sums.low)[0]
        for sums in (
            prefix_range(predicted, payoffs, codes),
            prefix_range(predicted, payoffs, codes, margin=1.0),
        )
    )
    is_exact = pruned == exact
    assert is_exact[exact >= exact.max() - 1].all() and not is_exact.all()
    assert (pruned[~is_exact] < exact.max() - 1).all()
