"""A forecast under patching: projection, compiled moves, and the ranking."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.forecasts import KINDS, forecast_of
from utility_calibration.calibrators import reference
from utility_calibration.calibrators.patching.algorithm import move
from utility_calibration.calibrators.patching.projection import (
    displacement,
    project_row,
)
from utility_calibration.calibrators.patching.state import TIED_RANKS, PatchedForecast
from utility_calibration.calibrators.patching.update import ProjectedDescent
from utility_calibration.calibrators.patching.utilities import Utility
from utility_calibration.metrics import FunctionUtility, GainMatrix
from utility_calibration.metrics.kernels.grid import CELL, on_grid

UPDATE = ProjectedDescent(1.0)


def random_utility(classes, random):
    kind = random.choice(["class", "top_k", "linear", "rank", "gain", "function"])
    index = int(random.integers(classes))
    if kind == "class":
        return Utility.standard("class", index)
    if kind == "top_k":
        return Utility.standard("top_k", index)
    if kind == "gain":
        return Utility("own", 1, GainMatrix.sample_aligned(3, classes, index), 1)
    if kind == "function":
        return Utility("own", 0, FunctionUtility(lambda p: p * p), 0)
    payoff = random.uniform(-1, 1, size=classes)
    payoff = np.sort(payoff)[::-1].copy() if kind == "rank" else payoff
    return Utility.standard(str(kind), index, payoff)


def random_moves(count, n, classes, seed):
    random = np.random.default_rng(seed)
    for _ in range(count):
        rows = np.flatnonzero(random.random(n) < random.choice([0.1, 0.9]))
        step = float(random.choice([-1, 1]) * 10 ** random.uniform(-4, 0.5))
        if len(rows):
            yield rows, random_utility(classes, random), step


def vectors_of(state, utility):
    """u⃗ of every point, written out: float64 [n, C]."""
    vectors = utility.vectors(state, np.arange(len(state.probabilities)))
    table = np.zeros_like(state.probabilities)
    table[:, : vectors.table.shape[1]] = vectors.table
    if not vectors.by_rank:
        return table
    by_class = np.empty_like(table)
    np.put_along_axis(by_class, state.order, table, axis=1)
    return by_class


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 3, 20])
def test_moves_are_projected_steps_that_change_the_brier_score_as_said(kind, classes):
    """Σ over rows of the change of ‖p - y‖² is 2 Σ<p - y, d> + Σ‖d‖²."""
    p, y = forecast_of(kind, 60, classes, 0)
    state, outcomes = PatchedForecast(p, y), np.eye(classes)[y]
    for rows, utility, step in random_moves(15, 60, classes, 1):
        before = state.probabilities.copy()
        expected = before.copy()
        pushed = (before + step * vectors_of(state, utility))[rows]
        expected[rows] = reference.projection(pushed)
        vectors = utility.vectors(state, rows)
        slope, square = displacement(state, rows, vectors, step)
        loss = state.losses("brier").mean()
        move(state, UPDATE, rows, vectors, step)
        np.testing.assert_allclose(state.probabilities, expected, rtol=0, atol=4 * CELL)
        change = np.square(expected - outcomes).sum() - np.square(before - outcomes).sum()
        assert 2 * slope + square == pytest.approx(change, abs=1e-7)
        risen = state.losses("brier").mean() - loss
        assert risen == pytest.approx(change / 60, abs=2e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 20, 300])
def test_order_sums_and_ranks_follow_the_moves(kind, classes):
    p, y = forecast_of(kind, 30, classes, 2)
    state = PatchedForecast(p, y)
    for rows, utility, step in random_moves(8, 30, classes, 3):
        move(state, UPDATE, rows, utility.vectors(state, rows), step)
        fresh = PatchedForecast(state.probabilities, y)
        np.testing.assert_array_equal(state.order, fresh.order)
        np.testing.assert_array_equal(state.top_sums, fresh.top_sums)
        np.testing.assert_array_equal(state.ranks, fresh.ranks)


def test_near_equal_probabilities_rank_by_class():
    """A plateau that rounding tears apart, and neighbours that differ by more than rounding."""
    tiny = 0.1 * TIED_RANKS
    p = np.array([[0.1, 0.1 + tiny, 0.3, 0.1 - tiny, 0.4], [0.2, 0.2, 0.2 + 1e-5, 0.2, 0.2]])
    state = PatchedForecast(p, np.array([3, 0]))
    assert state.order.tolist() == [[4, 2, 0, 1, 3], [2, 0, 1, 3, 4]]
    assert state.ranks.tolist() == [4, 1]


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_expected_payoffs(kind):
    p, y = forecast_of(kind, 50, 7, 8)
    state = PatchedForecast(p, y)
    for _, utility, _ in random_moves(15, 50, 7, 9):
        vectors = vectors_of(state, utility)
        v, u = utility.predicted_and_realized(state)
        expected = (vectors * state.probabilities).sum(axis=1)
        np.testing.assert_allclose(v, expected, rtol=0, atol=2 * CELL)
        np.testing.assert_allclose(u, vectors[np.arange(50), y], rtol=0, atol=1e-15)


def test_every_row_depends_on_itself_alone():
    """So replaying on other points, or on one, gives the same."""
    p, y = forecast_of("smooth", 60, 15, 10)
    together, few = PatchedForecast(p, y), PatchedForecast(p[20:30], y[20:30])
    for rows, utility, step in random_moves(20, 60, 15, 11):
        among = rows[(rows >= 20) & (rows < 30)] - 20
        v, alone = (utility.predicted_and_realized(each)[0] for each in (together, few))
        np.testing.assert_allclose(v[20:30], alone, rtol=0, atol=1e-12)
        move(together, UPDATE, rows, utility.vectors(together, rows), step)
        if len(among):
            move(few, UPDATE, among, utility.vectors(few, among), step)
        np.testing.assert_array_equal(together.probabilities[20:30], few.probabilities)


# ---- Projection on the simplex --------------------------------------------------------------


COORDINATES = st.one_of(
    st.floats(-3, 3), st.sampled_from([0.0, 1.0, -1.0, 1 / 3, 1e-300, 1 - 2**-53, 50.0, -50.0])
)
POINTS = st.lists(COORDINATES, min_size=1, max_size=12).map(np.array)


@given(x=POINTS)
def test_the_projection_is_the_nearest_point_of_the_simplex(x):
    """No point z of the simplex, hence no corner, has <x - y, z - y> > 0."""
    x = on_grid(x)
    y = x.copy()
    project_row(y)
    assert (y >= 0).all()
    assert 0 <= y.sum() - 1 <= len(y) * CELL
    assert ((x - y) - (x - y) @ y).max() <= 2000 * CELL
    np.testing.assert_allclose(y, reference.projection(x[None])[0], atol=2 * CELL)


@given(x=POINTS, order=st.randoms())
def test_a_projection_has_the_same_bits_in_any_order_of_summing(x, order):
    """Processors add in different orders."""
    places = list(range(len(x)))
    order.shuffle(places)
    y = on_grid(x)
    z = y[places]
    project_row(y)
    project_row(z)
    np.testing.assert_array_equal(y[places], z)
