"""A forecast under patching: projection, compiled moves against torch, and the ranking."""

from contextlib import nullcontext

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.devices.emulated_cuda import emulated_cuda
from tests.forecasts import KINDS, forecast_of
from utility_calibration.calibrators import reference
from utility_calibration.calibrators.patching.algorithm import move
from utility_calibration.calibrators.patching.projection import (
    displacement,
    project_row,
    project_rows_torch,
)
from utility_calibration.calibrators.patching.state import TIED_RANKS, PatchedForecast
from utility_calibration.calibrators.patching.update import ProjectedDescent
from utility_calibration.calibrators.patching.utilities import Utility
from utility_calibration.metrics import FunctionUtility, GainMatrix

UPDATE = ProjectedDescent(1.0)


def tensors_of(*which):
    """Probabilities and labels as tensors (`forecast_of`)."""
    return tuple(map(torch.from_numpy, forecast_of(*which)))


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
    return Utility.standard(str(kind), index, torch.from_numpy(payoff))


def random_moves(count, n, classes, seed):
    random = np.random.default_rng(seed)
    for _ in range(count):
        rows = torch.from_numpy(np.flatnonzero(random.random(n) < random.choice([0.1, 0.9])))
        step = float(random.choice([-1, 1]) * 10 ** random.uniform(-4, 0.5))
        if len(rows):
            yield rows, random_utility(classes, random), step


def vectors_of(state, utility):
    """u⃗ of every point, written out: float64 [n, C]."""
    n = len(state.probabilities)
    vectors = utility.vectors(state, torch.arange(n))
    table = torch.zeros_like(state.probabilities)
    table[:, : vectors.table.shape[1]] = vectors.table
    if vectors.by_rank:
        table = torch.empty_like(table).scatter_(1, state.order.long(), table)
    return table


@pytest.fixture(params=["cpu", "cuda"])
def device(request):
    """The CPU's kernels, and torch on the emulated device."""
    with emulated_cuda() if request.param == "cuda" else nullcontext():
        yield request.param


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 3, 20])
def test_moves_are_projected_steps_that_change_the_brier_score_as_said(kind, classes, device):
    """Σ over rows of the change of ‖p - y‖² is 2 Σ<p - y, d> + Σ‖d‖²."""
    p, y = tensors_of(kind, 60, classes, 0)
    here, there = PatchedForecast(p, y), PatchedForecast(p.to(device), y.to(device))
    outcomes = torch.nn.functional.one_hot(y, classes).double()
    for rows, utility, step in random_moves(15, 60, classes, 1):
        before = here.probabilities.clone()
        expected = before.clone()
        expected[rows] = project_rows_torch((before + step * vectors_of(here, utility))[rows])
        on_device = rows.to(device)
        vectors = utility.vectors(there, on_device)
        slope, square = displacement(there, on_device, vectors, step)
        loss = there.losses("brier").mean()
        move(there, UPDATE, on_device, vectors, step)
        move(here, UPDATE, rows, utility.vectors(here, rows), step)
        for state in (here, there):
            found = state.probabilities.cpu()
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
        change = (expected - outcomes).square().sum() - (before - outcomes).square().sum()
        assert 2 * slope + square == pytest.approx(float(change), abs=1e-10)
        risen = float(there.losses("brier").mean() - loss)
        assert risen == pytest.approx(float(change) / 60, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 20, 300])
def test_order_sums_and_ranks_follow_the_moves(kind, classes, device):
    p, y = tensors_of(kind, 30, classes, 2)
    state = PatchedForecast(p.to(device), y.to(device))
    for rows, utility, step in random_moves(8, 30, classes, 3):
        rows = rows.to(device)
        move(state, UPDATE, rows, utility.vectors(state, rows), step)
        fresh = PatchedForecast(state.probabilities, y.to(device))
        assert torch.equal(state.order.long(), fresh.order.long())
        assert torch.equal(state.top_sums, fresh.top_sums)
        assert torch.equal(state.ranks, fresh.ranks)


def test_near_equal_probabilities_rank_by_class_on_every_device(device):
    """A plateau that rounding tears apart, and neighbours that differ by more than rounding."""
    tiny = 0.1 * TIED_RANKS
    p = torch.tensor([[0.1, 0.1 + tiny, 0.3, 0.1 - tiny, 0.4], [0.2, 0.2, 0.2 + 1e-5, 0.2, 0.2]])
    state = PatchedForecast(p.double().to(device), torch.tensor([3, 0]).to(device))
    assert state.order.tolist() == [[4, 2, 0, 1, 3], [2, 0, 1, 3, 4]]
    assert state.ranks.tolist() == [4, 1]


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_expected_payoffs(kind, device):
    p, y = tensors_of(kind, 50, 7, 8)
    here, there = PatchedForecast(p, y), PatchedForecast(p.to(device), y.to(device))
    for _, utility, _ in random_moves(15, 50, 7, 9):
        vectors = vectors_of(here, utility)
        expected = (vectors * here.probabilities).sum(dim=1)
        v, u = (x.cpu() for x in utility.predicted_and_realized(there))
        torch.testing.assert_close(v, expected, rtol=0, atol=1e-13)
        torch.testing.assert_close(u, vectors.gather(1, y[:, None])[:, 0], rtol=0, atol=1e-15)


def test_every_row_depends_on_itself_alone():
    """So replaying on other points, or on one, gives the same."""
    p, y = tensors_of("smooth", 60, 15, 10)
    together, few = PatchedForecast(p, y), PatchedForecast(p[20:30], y[20:30])
    for rows, utility, step in random_moves(20, 60, 15, 11):
        among = rows[(rows >= 20) & (rows < 30)] - 20
        v, alone = (utility.predicted_and_realized(each)[0] for each in (together, few))
        torch.testing.assert_close(v[20:30], alone, rtol=0, atol=1e-14)
        move(together, UPDATE, rows, utility.vectors(together, rows), step)
        if len(among):
            move(few, UPDATE, among, utility.vectors(few, among), step)
        assert torch.equal(together.probabilities[20:30], few.probabilities)


# ---- Projection on the simplex --------------------------------------------------------------


def project_rows(points: torch.Tensor) -> torch.Tensor:
    """The compiled projection of a copy: float64 [k, C]."""
    projected = points.clone(memory_format=torch.contiguous_format)
    for row in projected.numpy():
        project_row(row)
    return projected


IMPLEMENTATIONS = {"compiled": project_rows, "torch": project_rows_torch}
COORDINATES = st.one_of(
    st.floats(-3, 3), st.sampled_from([0.0, 1.0, -1.0, 1 / 3, 1e-300, 1 - 2**-53, 50.0, -50.0])
)
POINTS = st.lists(COORDINATES, min_size=1, max_size=12).map(np.array)


def project(name, x):
    return IMPLEMENTATIONS[name](torch.from_numpy(np.atleast_2d(x).copy())).numpy()


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
@given(x=POINTS)
def test_the_projection_is_the_nearest_point_of_the_simplex(name, x):
    """No point z of the simplex, hence no corner, has <x - y, z - y> > 0."""
    (y,) = project(name, x)
    assert (y >= 0).all()
    assert y.sum() == pytest.approx(1, abs=1e-12)
    assert ((x - y) - (x - y) @ y).max() <= 1e-11
    np.testing.assert_allclose(y, reference.projection(x[None])[0], atol=1e-11)
    np.testing.assert_allclose(y, project("compiled", x)[0], rtol=0, atol=1e-13)
