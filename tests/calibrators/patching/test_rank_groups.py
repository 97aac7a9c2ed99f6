"""Predictions from groups of ranks are as close to the exact ones as they claim."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from calibrators.patching.rank_groups import group_ranks, sums_at


def ranked_rows(classes, seed):
    """Rows of the simplex in descending order, the extreme points of such rows among them."""
    random = np.random.default_rng(seed)
    first_ones = np.tril(np.ones((classes, classes)))
    spiky, even = (random.dirichlet(np.full(classes, a), size=30) for a in (0.05, 5.0))
    rows = np.vstack([first_ones / first_ones.sum(axis=1, keepdims=True), spiky, even])
    return torch.from_numpy(-np.sort(-rows, axis=1))


def descending(count, classes, seed):
    random = np.random.default_rng(seed)
    return torch.from_numpy(-np.sort(-random.uniform(-1, 1, size=(count, classes)), axis=1))


@given(
    st.integers(1, 60),
    st.sampled_from([1e-12, 1e-4, 1e-3, 1e-2, 0.1, 3.0]),
    st.integers(0, 99),
)
def test_predictions_are_off_by_no_more_than_the_error(classes, error, seed):
    payoffs, rows = descending(5, classes, seed), ranked_rows(classes, seed)
    groups = group_ranks(payoffs, error)
    sums = rows.cumsum(dim=1)[:, groups.ends - 1]
    off = groups.weights @ sums.T - payoffs @ rows.T
    assert float(off.abs().max()) <= error + 1e-12
    assert groups.error == error


@given(st.integers(1, 60), st.sampled_from([1e-12, 1e-3, 0.1, 3.0]), st.integers(0, 99))
def test_every_rank_belongs_to_one_group(classes, error, seed):
    ends = group_ranks(descending(5, classes, seed), error).ends
    assert int(ends[0]) >= 1
    assert bool((ends.diff() >= 1).all())
    assert int(ends[-1]) == classes


def test_the_error_is_used_up_before_a_group_ends():
    payoffs = descending(5, 400, 0)
    counts = [len(group_ranks(payoffs, error).ends) for error in (1e-9, 1e-5, 1e-4, 1e-3, 100.0)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == 400
    assert counts[2] < 200
    assert counts[-1] == 1


def test_equal_payoffs_need_one_group():
    assert group_ranks(torch.full((3, 50), 0.7, dtype=torch.float64), 1e-9).ends.tolist() == [50]


@pytest.mark.parametrize("n", [1, 3000])
def test_sums_are_picked_from_their_columns(n):
    top_sums = torch.from_numpy(np.random.default_rng(0).random((n, 40)))
    ends = torch.tensor([1, 2, 7, 40])
    assert torch.equal(sums_at(top_sums, ends), top_sums[:, ends - 1].float())
