"""A forecast under patching: the compiled kernels against torch, and their bookkeeping."""

import numpy as np
import pytest
import torch

from calibrators.patching.state import ROWS_PER_CHUNK, PatchedForecast, Witness
from metrics.forecast import Forecast
from metrics.kernels.projection import project_rows_torch

KINDS = ["smooth", "saturated", "dyadic", "one_hot", "flat"]


def forecast_of(kind, n, classes, seed):
    random = np.random.default_rng(seed)
    if kind == "smooth":
        p = random.dirichlet(np.full(classes, 0.5), size=n)
    elif kind == "saturated":
        z = np.exp(random.normal(scale=30, size=(n, classes)).clip(-300, 300))
        p = z / z.sum(axis=1, keepdims=True)
    elif kind == "dyadic":
        p = random.multinomial(8, np.full(classes, 1 / classes), size=n) / 8
    elif kind == "one_hot":
        p = np.eye(classes)[random.integers(classes, size=n)]
    else:
        p = np.full((n, classes), 1 / classes)
    return torch.from_numpy(p), torch.from_numpy(random.integers(classes, size=n))


def random_witness(classes, random):
    kind = random.choice(["class", "top_k", "linear", "rank"])
    index = int(random.integers(classes))
    if kind == "class":
        return Witness.of_class(index, classes)
    if kind == "top_k":
        return Witness.of_top_k(index, classes)
    payoff = random.uniform(-1, 1, size=classes)
    payoff = np.sort(payoff)[::-1].copy() if kind == "rank" else payoff
    return Witness(str(kind), index, torch.from_numpy(payoff))


def random_moves(count, n, classes, seed):
    random = np.random.default_rng(seed)
    for _ in range(count):
        rows = torch.from_numpy(np.flatnonzero(random.random(n) < random.choice([0.1, 0.9])))
        step = float(random.choice([-1, 1]) * 10 ** random.uniform(-4, 0.5))
        yield rows, random_witness(classes, random), step


def vectors_of(state, witness):
    """u⃗ of every point, from a ranking made anew: float64 [n, C]."""
    p = state.probabilities
    payoff = witness.payoff.expand_as(p)
    if not witness.by_rank:
        return payoff
    order = torch.sort(p, dim=1, descending=True, stable=True).indices
    return torch.empty_like(p).scatter_(1, order, payoff)


def on_torch(probabilities, labels):
    """A forecast that takes the path of other devices."""
    state = PatchedForecast(probabilities, labels)
    state.on_cpu = False
    return state


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 3, 20])
def test_compiled_and_torch_paths_move_alike(kind, classes):
    p, y = forecast_of(kind, 60, classes, 0)
    compiled, plain = PatchedForecast(p, y), on_torch(p, y)
    for rows, witness, step in random_moves(25, 60, classes, 1):
        v = compiled.predicted(witness)
        torch.testing.assert_close(v, plain.predicted(witness), rtol=0, atol=1e-11)
        if not len(rows):
            continue
        assert compiled.try_step(rows, witness, step) == pytest.approx(
            plain.try_step(rows, witness, step), abs=1e-10
        )
        compiled.move(rows, witness, step)
        plain.move(rows, witness, step)
        for ours, theirs in (
            (compiled.probabilities, plain.probabilities),
            (compiled.top_sums, plain.top_sums),
        ):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-11)


@pytest.mark.parametrize("path", [PatchedForecast, on_torch], ids=["compiled", "torch"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 3, 20, 300])
def test_order_sums_and_ranks_are_those_of_a_fresh_forecast(path, kind, classes):
    p, y = forecast_of(kind, 30, classes, 2)
    state = path(p, y)
    for rows, witness, step in random_moves(12, 30, classes, 3):
        if len(rows):
            state.move(rows, witness, step)
        fresh = Forecast(state.probabilities.clone())
        assert torch.equal(state.order.long(), fresh.order.long())
        ranked = state.probabilities.gather(1, state.order.long())
        assert torch.equal(state.top_sums, torch.from_numpy(np.cumsum(ranked.numpy(), axis=1)))
        assert torch.equal(state.ranks, fresh.outcomes(y).ranks[0])


@pytest.mark.parametrize("path", [PatchedForecast, on_torch], ids=["compiled", "torch"])
@pytest.mark.parametrize("kind", KINDS)
def test_sums_of_indicators_and_predictions_follow_the_moves(path, kind):
    """Both are kept between calls: what was asked for before a move is right after it."""
    n, classes = 2 * ROWS_PER_CHUNK + 7, 6
    p, y = forecast_of(kind, n, classes, 4)
    state = path(p, y)
    asked = [Witness.of_class(0, classes), Witness.of_top_k(1, classes)]
    asked += [random_witness(classes, np.random.default_rng(seed)) for seed in range(4)]
    for number, (rows, witness, step) in enumerate(random_moves(12, n, classes, 5)):
        again = asked[number % len(asked)]
        state.indicator_sums()
        state.predicted(again)
        state.move(rows, witness, step)
        fresh = path(state.probabilities, y)
        expected = fresh.indicator_sums()
        torch.testing.assert_close(state.indicator_sums(), expected, rtol=0, atol=1e-10)
        for _ in range(2):
            v = state.predicted(again)
            torch.testing.assert_close(v, fresh.predicted(again), rtol=0, atol=1e-13)


def test_a_row_that_is_turned_around_is_sorted_anew():
    """Most classes change places with all others."""
    classes = 500
    p = torch.linspace(1, 2, classes, dtype=torch.float64).flip(0)
    p = (p / p.sum()).repeat(3, 1)
    state = PatchedForecast(p, torch.tensor([0, 5, classes - 1]))
    upside_down = Witness("linear", 0, torch.linspace(0, 1, classes, dtype=torch.float64))
    state.move(torch.tensor([0, 2]), upside_down, 0.01)
    assert torch.equal(state.order.long(), Forecast(state.probabilities).order.long())
    assert int(state.order[0, 0]) == classes - 1
    assert state.ranks.tolist() == [
        int((row > row[y]).sum()) for row, y in zip(state.probabilities, [0, 5, classes - 1])
    ]


@pytest.mark.parametrize("path", [PatchedForecast, on_torch], ids=["compiled", "torch"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_move_projects_the_shifted_probabilities(path, kind):
    p, y = forecast_of(kind, 40, 6, 4)
    for rows, witness, step in random_moves(20, 40, 6, 5):
        state = path(p, y)
        expected = p.clone()
        expected[rows] = project_rows_torch((p + step * vectors_of(state, witness))[rows])
        state.move(rows, witness, step)
        torch.testing.assert_close(state.probabilities, expected, rtol=0, atol=1e-12)
        untouched = torch.ones(40, dtype=torch.bool)
        untouched[rows] = False
        assert torch.equal(state.probabilities[untouched], p[untouched])


@pytest.mark.parametrize("path", [PatchedForecast, on_torch], ids=["compiled", "torch"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_brier_score_changes_by_what_the_trial_says(path, kind):
    """Σ over rows of the change of ‖p - y‖² is 2 Σ<p - y, d> + Σ‖d‖²."""
    p, y = forecast_of(kind, 40, 5, 6)
    outcomes = torch.nn.functional.one_hot(y, 5).double()
    for rows, witness, step in random_moves(20, 40, 5, 7):
        state = path(p, y)
        slope, square = state.try_step(rows, witness, step)
        assert torch.equal(state.probabilities, p)  # a trial moves nothing
        state.move(rows, witness, step)
        change = (state.probabilities - outcomes).square().sum() - (p - outcomes).square().sum()
        assert 2 * slope + square == pytest.approx(float(change), abs=1e-12)
        moved = state.probabilities - p
        assert square == pytest.approx(float(moved.square().sum()), abs=1e-12)


@pytest.mark.parametrize("path", [PatchedForecast, on_torch], ids=["compiled", "torch"])
def test_predictions_are_expected_payoffs(path):
    p, y = forecast_of("smooth", 50, 7, 8)
    state = path(p, y)
    for rows, witness, step in random_moves(15, 50, 7, 9):
        expected = (vectors_of(state, witness) * state.probabilities).sum(dim=1)
        torch.testing.assert_close(state.predicted(witness), expected, rtol=0, atol=1e-13)
        state.move(rows, witness, step)


def test_every_row_depends_on_itself_alone():
    """So replaying on other points, or on one, gives the same bits."""
    p, y = forecast_of("smooth", 60, 15, 10)
    together, few = PatchedForecast(p, y), PatchedForecast(p[20:30], y[20:30])
    for rows, witness, step in random_moves(20, 60, 15, 11):
        among = rows[(rows >= 20) & (rows < 30)] - 20
        assert torch.equal(together.predicted(witness)[20:30], few.predicted(witness))
        together.move(rows, witness, step)
        few.move(among, witness, step)
        assert torch.equal(together.probabilities[20:30], few.probabilities)


def test_threads_change_no_bit():
    p, y = forecast_of("smooth", 700, 80, 12)
    before = torch.get_num_threads()
    states = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            state = PatchedForecast(p, y)
            trials = []
            for rows, witness, step in random_moves(10, 700, 80, 13):
                trials.append(
                    (state.predicted(witness).sum(), *state.try_step(rows, witness, step))
                )
                state.indicator_sums()
                state.move(rows, witness, step)
            sums = state.indicator_sums()
            states.append((state.probabilities, state.top_sums, torch.tensor(trials), sums))
    finally:
        torch.set_num_threads(before)
    for alone, together in zip(*states):
        assert torch.equal(alone, together)


def test_without_labels_forecasts_are_moved_all_the_same():
    p, y = forecast_of("smooth", 30, 6, 14)
    for path in (PatchedForecast, on_torch):
        with_labels, without = path(p, y), path(p, None)
        for rows, witness, step in random_moves(10, 30, 6, 15):
            with_labels.move(rows, witness, step)
            without.move(rows, witness, step)
        assert torch.equal(with_labels.probabilities, without.probabilities)


def test_the_forecast_given_is_not_changed():
    p, y = forecast_of("smooth", 30, 4, 16)
    before = p.clone()
    state = PatchedForecast(p, y)
    state.move(torch.arange(30), Witness.of_class(1, 4), 0.5)
    assert torch.equal(p, before)
    assert not torch.equal(state.probabilities, before)
