"""The audit finds the worst of all utilities, without sorting all of them."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from calibrators.patching import audit
from calibrators.patching.algorithm import move
from calibrators.patching.audit import (
    EQUAL,
    TIED,
    Family,
    StandardFamilies,
    find_worst,
    witness_of,
    worst_witness,
)
from calibrators.patching.state import PatchedForecast
from calibrators.patching.update import ProjectedDescent
from calibrators.patching.utilities import PayoffUtility
from metrics import ClassWise, TopK

CPU = torch.device("cpu")


def over_confident(n, classes, seed, sharpness=2.0):
    random = np.random.default_rng(seed)
    z = random.normal(scale=1.5, size=(n, classes)) + random.normal(size=classes)
    truth = np.exp(z - z.max(axis=1, keepdims=True))
    truth /= truth.sum(axis=1, keepdims=True)
    labels = (random.random((n, 1)) > truth.cumsum(axis=1)).sum(axis=1).clip(max=classes - 1)
    claimed = truth**sharpness
    return torch.from_numpy(claimed / claimed.sum(axis=1, keepdims=True)), torch.from_numpy(labels)


def patched(n, classes, seed):
    """A forecast in the middle of its patching."""
    p, y = over_confident(n, classes, seed)
    state = PatchedForecast(p, y)
    random = np.random.default_rng(seed)
    for _ in range(3):
        rows = torch.from_numpy(np.flatnonzero(random.random(n) < 0.5))
        utilities = PayoffUtility.of_top_k(int(random.integers(classes)), classes), -0.1
        classwise = PayoffUtility.of_class(int(random.integers(classes)), classes), 0.05
        for utility, step in (utilities, classwise):
            if len(rows):
                move(state, ProjectedDescent(1.0), rows, utility.vectors(state, rows), step)
    return state


def payoffs(family):
    return torch.stack([family.utility(k).payoff for k in range(len(family.bounds))])


def exhaustive(state, sampled=()):
    """Errors of every utility, near-equal predictions tied, each one sorted."""
    classes = state.probabilities.shape[1]
    utilities = [PayoffUtility.of_class(c, classes) for c in range(classes)]
    utilities += [PayoffUtility.of_top_k(k, classes) for k in range(classes)]
    return torch.stack([tied_error(state, utility) for utility in (*utilities, *sampled)])


def tied_error(state, utility):
    """UC over intervals that end in gaps of v only, from the definition."""
    v, u = utility.predicted(state), utility.realized(state)
    v, order = v.sort(stable=True)
    sums = torch.cat([torch.zeros(1), (u[order] - v).cumsum(0)])
    ends = torch.cat([torch.tensor([True]), v.diff() > TIED, torch.tensor([True])])
    return (sums[ends].max() - sums[ends].min()) / len(v)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n", "classes"), [(1, 3), (50, 2), (400, 5), (600, 60)])
def test_the_worst_utility_is_the_largest_of_all(n, classes, seed):
    state = patched(n, classes, seed)
    families = StandardFamilies(classes, 0, seed, CPU)(state, 0)
    family, index, error = find_worst(families)
    errors = exhaustive(state)
    assert error == pytest.approx(float(errors.max()), abs=1e-12)
    # Of equal errors the first: class-wise before top-K.
    assert family * classes + index == int((errors >= errors.max() - EQUAL).int().argmax())
    witness = worst_witness(families, state)
    assert witness.error == pytest.approx(error, abs=1e-12)
    assert (witness.utility.kind, witness.utility.index) == (("class", "top_k")[family], index)


@pytest.mark.parametrize("seed", range(3))
def test_ties_keep_the_error_close_to_uc(seed):
    state = patched(400, 5, seed)
    exact = [u.calibration_errors(state.probabilities, state.labels) for u in (ClassWise(), TopK())]
    assert bool((exhaustive(state) <= torch.cat(exact) + 1e-12).all())
    assert float(exhaustive(state).max()) == pytest.approx(float(torch.cat(exact).max()), abs=4e-3)


@pytest.mark.parametrize("seed", range(2))
def test_sampled_utilities_take_part(seed):
    state = patched(300, 6, seed)
    auditor = StandardFamilies(6, 40, seed, CPU)
    families = auditor.sampled(state, 7)
    assert [family.utility(0).kind for family in families] == ["linear", "rank"]
    for family in families:
        largest = payoffs(family).abs().amax(dim=1)
        torch.testing.assert_close(largest, torch.ones(40).double())
        expected = torch.stack([tied_error(state, family.utility(k)) for k in range(40)])
        errors = family.errors(torch.arange(40))
        torch.testing.assert_close(errors, expected, rtol=0, atol=1e-12)
    assert bool((payoffs(families[1]).diff(dim=1) <= 0).all())  # valuations fall with the rank
    sampled = [family.utility(k) for family in families for k in range(40)]
    _, _, error = find_worst(auditor(state, 7))
    assert error == pytest.approx(float(exhaustive(state, sampled).max()), abs=1e-12)


def test_each_audit_draws_its_own_utilities_the_same_in_every_run():
    state = patched(50, 4, 0)
    draws = [StandardFamilies(4, 9, 3, CPU).sampled(state, number) for number in (0, 1, 0)]
    for first, second, again in zip(*draws):
        assert torch.equal(payoffs(first), payoffs(again))
        assert not torch.equal(payoffs(first), payoffs(second))
    others = StandardFamilies(4, 9, 4, CPU).sampled(state, 0)
    assert not torch.equal(payoffs(draws[0][0]), payoffs(others[0]))
    assert StandardFamilies(4, 0, 3, CPU).sampled(state, 0) == []


def test_bounds_are_never_below_the_errors():
    state = patched(400, 30, 1)
    for family in StandardFamilies(30, 50, 0, CPU)(state, 0):
        errors = family.errors(torch.arange(len(family.bounds)))
        assert bool((family.bounds >= errors).all()), family.utility(0).kind


def test_some_of_a_family_have_the_errors_they_have_among_all():
    state = patched(300, 20, 4)
    for family in StandardFamilies(20, 30, 0, CPU)(state, 0):
        every = family.errors(torch.arange(len(family.bounds)))
        some = torch.tensor([0, 3, 4, 11])
        torch.testing.assert_close(family.errors(some), every[some], rtol=0, atol=1e-13)


def test_most_utilities_are_never_sorted():
    state = patched(3000, 100, 2)
    sorted_columns = []

    def counted(family):
        def errors(numbers):
            sorted_columns.append(len(numbers))
            return family.errors(numbers)

        return replace(family, errors=errors)

    found = find_worst([counted(family) for family in StandardFamilies(100, 0, 0, CPU)(state, 0)])
    assert sum(sorted_columns) < 100  # of 200
    assert found[2] == pytest.approx(float(exhaustive(state).max()), abs=1e-12)


def given(errors, bound=1.0):
    """A family of these errors, all with the same bound."""
    errors = torch.tensor(errors, dtype=torch.float64)
    return Family(torch.full_like(errors, bound), errors.__getitem__, lambda number: None)


@pytest.mark.parametrize("at_once", [1, 2, 16])
@pytest.mark.parametrize("noise", [-1e-13, 0.0, 1e-13])
def test_of_errors_equal_but_for_rounding_the_first_wins(monkeypatch, at_once, noise):
    monkeypatch.setattr(audit, "EXACT_AT_ONCE", at_once)
    families = [given([0.1, 0.2]), given([0.0, 0.3 + noise, 0.3], 0.9), given([0.3 + 2 * noise])]
    assert find_worst(families)[:2] == (1, 1)


def test_intervals_end_in_the_middle_of_wide_gaps():
    v = torch.tensor([0.1, 0.2, 0.2 + 0.5 * TIED, 0.2 + TIED, 0.6, 0.9], dtype=torch.float64)
    rows = torch.stack([v, 1 - v], dim=1)
    state = PatchedForecast(rows, torch.tensor([1, 0, 0, 0, 0, 1]))
    witness = witness_of(state, PayoffUtility.of_class(0, 2))
    assert (witness.low, witness.high) == (pytest.approx(0.15), pytest.approx(0.75))
    assert witness.rows.tolist() == [1, 2, 3, 4]
    assert witness.sign == -1  # predicted less than realized
    assert witness.error == pytest.approx((4 - v[1:5].sum()) / 6)


@pytest.mark.parametrize("ulps", [-1, 1])
def test_the_last_bit_of_a_prediction_moves_no_end_and_no_point(ulps):
    """An atom of predictions that rounding has torn apart, one of which has the other outcome."""
    v = torch.full((50,), 0.3, dtype=torch.float64)
    v[20:30] = 0.8
    torn = v.clone()
    torn[::3] = torch.nextafter(torn[::3], torch.tensor(float(ulps)).double())
    labels = torch.arange(50) % 3
    found = []
    for p in (v, torn):
        state = PatchedForecast(torch.stack([p, (1 - p) / 2, (1 - p) / 2], dim=1), labels)
        found.append(witness_of(state, PayoffUtility.of_class(0, 3)))
    assert torch.equal(found[0].rows, found[1].rows)
    assert found[0].sign == found[1].sign
    assert found[0].error == pytest.approx(found[1].error, abs=1e-14)
    assert (found[0].low, found[0].high) == pytest.approx((found[1].low, found[1].high), abs=1e-14)


def test_a_utility_holds_no_more_than_its_own_payoffs():
    for family in StandardFamilies(6, 40, 0, CPU).sampled(patched(300, 6, 0), 0):
        assert family.utility(3).payoff.untyped_storage().nbytes() == 6 * 8
