"""Ranges of running sums read in wide gaps: by sorting, and steady where predictions move a bit."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from metrics import reference
from metrics.kernels.prefix_range import prefix_range, prefix_range_torch


def gap_range(predicted, payoffs, codes, tolerance):
    sums = prefix_range(predicted, payoffs, codes[None], tolerance=tolerance)
    return (sums.high - sums.low)[0]


def by_columns(predicted, payoffs, codes, tolerance):
    """The utilities as columns of a matrix."""
    return gap_range(predicted.T.contiguous().T, payoffs, codes, tolerance)


def by_torch(predicted, payoffs, codes, tolerance):
    edges = torch.zeros(1, 0)
    sums = prefix_range_torch(predicted, payoffs, codes[None], edges, tolerance=tolerance)
    return (sums.high - sums.low)[0]


IMPLEMENTATIONS = {"compiled": gap_range, "columns": by_columns, "torch": by_torch}
TOLERANCE = 1e-6


def problem(seed, n=300, scale=1.0):
    """Predictions with atoms, atoms torn by rounding, and neighbours within the tolerance.

    One of three is an event's: it crowds near 0, as probabilities of a class do. Another has few
    distinct predictions.
    """
    random = np.random.default_rng(seed)
    v = random.uniform(-1, 1, size=(3, n))
    v[:, ::3] = random.choice([0.0, -0.0, 0.3, 1.0], size=v[:, ::3].shape)
    v[:, ::4] = np.nextafter(v[:, ::4], random.choice([-2.0, 2.0], size=v[:, ::4].shape))
    v[:, ::5] += random.choice([-1, 0, 1], size=v[:, ::5].shape) * 0.5 * TOLERANCE
    payoffs = scale * random.uniform(-1, 1, size=(3, 4))
    codes = random.integers(4, size=n)
    v[0], payoffs[0] = 10.0 ** random.uniform(-12, 0, size=n), [0, 0, 0, scale]
    v[2] = random.integers(1 + seed % 20, size=n) / 20
    return tuple(torch.from_numpy(x) for x in (scale * v, payoffs, codes))


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@given(seed=st.integers(0, 500), n=st.integers(1, 400), scale=st.sampled_from([1.0, 300.0]))
def test_it_is_the_range_of_the_reference(implementation, seed, n, scale):
    v, payoffs, codes = problem(seed, n, scale)
    found = IMPLEMENTATIONS[implementation](v, payoffs, codes, TOLERANCE)
    expected = [
        n * reference.utility_calibration(v[k].numpy(), payoffs[k][codes].numpy(), TOLERANCE)
        for k in range(3)
    ]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * scale)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_the_last_bit_of_predictions_moves_it_by_rounding_only(implementation):
    v, payoffs, codes = problem(2)
    up = torch.rand(v.shape, generator=torch.Generator().manual_seed(0)) < 0.5
    moved = torch.nextafter(v, torch.where(up, torch.inf, -torch.inf).double())
    found = [IMPLEMENTATIONS[implementation](x, payoffs, codes, TOLERANCE) for x in (v, moved)]
    torch.testing.assert_close(*found, rtol=0, atol=1e-12)
