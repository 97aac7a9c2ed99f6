"""The step of a patch: as long as it pays, and on an interval that holds the same points."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from calibrators.patching.line_search import armijo_step, first_step, roomy


@pytest.mark.parametrize("step_size", [1e-3, 0.3, 1.0, 40.0])
@pytest.mark.parametrize("error", [1e-9, 1e-3, 0.4])
def test_the_first_trial_is_neither_too_long_nor_needlessly_short(step_size, error):
    spread = 0.75
    most = 4 * error / spread
    eta = first_step(error, spread, step_size)
    assert eta == step_size or most / 2 < eta <= most * (1 + 1e-12)
    assert eta <= step_size
    assert first_step(error, 0.0, step_size) == step_size  # no way to move


@pytest.mark.parametrize("armijo", [1e-4, 0.5, 0.9])
def test_the_step_is_the_longest_trial_that_brings_its_share_of_the_decrease(armijo):
    # Without borders, slope and square are -η and η² here: the change is η² - 2η.
    step = armijo_step(lambda eta: (-eta, eta * eta), 16.0, armijo)
    passes = [eta for k in range(41) if (eta := 16.0 / 2**k) ** 2 - 2 * eta <= -2 * armijo * eta]
    assert step is not None
    assert step.size == passes[0]
    assert step.change == step.size**2 - 2 * step.size < 0


def test_no_step_where_every_one_raises_the_score():
    assert armijo_step(lambda eta: (0.1 * eta, eta * eta), 1.0, 0.5) is None


@given(
    st.lists(st.sampled_from([0.0, 0.1, np.nextafter(0.1, 1), 0.3, 0.30000001, 1.0]), min_size=1)
)
def test_a_roomy_interval_holds_the_same_points(values):
    v = torch.tensor(values, dtype=torch.float64)
    for low in values:
        for high in (value for value in values if value >= low):
            wide_low, wide_high = roomy(v, low, high)
            assert wide_low <= low <= high <= wide_high
            assert_close((v >= wide_low) & (v <= wide_high), (v >= low) & (v <= high))


def test_a_roomy_interval_ends_half_way_to_the_next_point_or_never():
    v = torch.tensor([0.1, 0.2, 0.4, 0.8], dtype=torch.float64)
    assert roomy(v, 0.2, 0.4) == (pytest.approx(0.15), pytest.approx(0.6))
    assert roomy(v, 0.1, 0.8) == (-math.inf, math.inf)
