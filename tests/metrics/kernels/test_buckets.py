"""Ranges of running sums without a sort: the same numbers as with one."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from metrics.kernels.buckets import range_by_buckets
from metrics.kernels.prefix_range import prefix_range_torch


def by_buckets(v, payoffs, codes, least=-np.inf):
    n = len(v)
    places = np.empty((2, n), np.int32)
    return range_by_buckets(v, payoffs, codes, np.empty(n), places, 0.0, least)


def by_sort(v, payoffs, codes):
    tensors = (torch.from_numpy(x)[None] for x in (v, payoffs, codes))
    sums = prefix_range_torch(*tensors, torch.zeros(1, 0))
    return float(sums.low[0, 0]), float(sums.high[0, 0])


@st.composite
def problems(draw):
    """Points with ties, crowded at either end, at any scale; payoffs of any size."""
    random = np.random.default_rng(draw(st.integers(0, 10_000)))
    n = draw(st.integers(1, 500))
    levels = draw(st.sampled_from([1, 2, 7, 1000]))
    values = random.normal(size=levels) * 10.0 ** draw(st.integers(-15, 8))
    shape = draw(st.sampled_from(["as it is", "near 0", "near 1", "with zeros"]))
    if shape == "near 0":
        values = 10.0 ** random.uniform(-320, 0, size=levels)
    elif shape == "near 1":
        values = 1 - 10.0 ** random.uniform(-18, 0, size=levels)
    elif shape == "with zeros":
        values[:: draw(st.integers(1, 3))] = random.choice([0.0, -0.0])
    v = random.choice(values, size=n)
    payoffs = random.normal(size=3) * draw(st.sampled_from([0.0, 1e-9, 1.0, 1e6]))
    return v, payoffs, random.integers(3, size=n)


@given(problem=problems())
def test_extremes_are_those_of_the_sorted_sum(problem):
    v, payoffs, _ = problem
    rounding = 1e-14 * len(v) * (np.abs(v).max() + np.abs(payoffs).max())
    assert by_buckets(*problem) == pytest.approx(by_sort(*problem), abs=rounding)


@given(problem=problems(), share=st.sampled_from([0.5, 1.0, 1.5]))
def test_a_small_range_may_be_given_as_bounds_that_are_small_too(problem, share):
    v, payoffs, _ = problem
    rounding = 1e-14 * len(v) * (np.abs(v).max() + np.abs(payoffs).max())
    low, high = by_buckets(*problem)
    least = share * (high - low)
    lowest, highest = by_buckets(*problem, least=least)
    if (lowest, highest) != (low, high):
        assert highest - lowest < least
        assert lowest <= low + rounding and high <= highest + rounding
