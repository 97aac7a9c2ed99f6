"""The audit finds the worst of all utilities, without sorting all of them."""

import numpy as np
import pytest
import torch

from calibrators.patching import audit
from calibrators.patching.audit import (
    Auditor,
    Indicators,
    Sampled,
    Screened,
    combined_error,
    find_worst,
)
from calibrators.patching.state import PatchedForecast, Witness
from metrics import ClassWise, Linear, Rank, TopK, utility_calibration

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
        state.move(rows, Witness.of_top_k(int(random.integers(classes)), classes), -0.1)
        state.move(rows, Witness.of_class(int(random.integers(classes)), classes), 0.05)
    return state


def exhaustive(state, sampled=()):
    """UC of every utility through the public classes."""
    p, y = state.probabilities, state.labels
    every = [u.calibration_errors(p, y) for u in (ClassWise(), TopK(), *sampled)]
    return torch.cat(every)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("n", "classes"), [(1, 3), (50, 2), (400, 5), (600, 60)])
def test_the_worst_utility_is_the_largest_of_all(n, classes, seed):
    state = patched(n, classes, seed)
    auditor = Auditor(classes, 0, seed, CPU)
    errors = exhaustive(state)
    _, _, error = find_worst(auditor.fixed_families(state))
    assert error == pytest.approx(float(errors.max()), abs=1e-12)
    assert combined_error(state, auditor) == error
    witness = auditor.worst(state, 0)
    codes = state.ranks if witness.by_rank else state.labels
    own = utility_calibration(state.predicted(witness), witness.payoff[codes])
    assert float(own) == pytest.approx(error, abs=1e-12)


@pytest.fixture(params=["exact", "screened"])
def sampling(request, monkeypatch):
    """Sampled utilities computed at once, or by bounds of float32 products."""
    if request.param == "exact":
        monkeypatch.setattr(audit, "largest_margin", lambda low, high: 0.0)
    return {"exact": Sampled, "screened": Screened}[request.param]


@pytest.mark.parametrize("seed", range(4))
def test_sampled_utilities_take_part(seed, sampling):
    state = patched(300, 6, seed)
    auditor = Auditor(6, 40, seed, CPU)
    families = auditor.sampled_families(state, 7)
    assert [family.kind for family in families] == ["linear", "rank"]
    assert all(isinstance(family, sampling) for family in families)
    linear, rank = (Linear if f.kind == "linear" else Rank for f in families)
    sampled = [linear(families[0].payoffs), rank(families[1].payoffs)]
    for family, utilities in zip(families, sampled):
        assert utilities.matrix.shape == (40, 6)
        torch.testing.assert_close(utilities.matrix.abs().amax(dim=1), torch.ones(40).double())
        torch.testing.assert_close(
            family.errors(torch.arange(40)),
            utilities.calibration_errors(state.probabilities, state.labels),
            rtol=0,
            atol=1e-12,
        )
    assert bool((families[1].payoffs.diff(dim=1) <= 0).all())  # valuations fall with the rank
    witness = auditor.worst(state, 7)
    codes = state.ranks if witness.by_rank else state.labels
    own = utility_calibration(state.predicted(witness), witness.payoff[codes])
    assert float(own) == pytest.approx(float(exhaustive(state, sampled).max()), abs=1e-11)


def test_each_audit_draws_its_own_utilities_the_same_in_every_run():
    state = patched(50, 4, 0)
    draws = [Auditor(4, 9, 3, CPU).sampled_families(state, step) for step in (0, 1, 0)]
    for first, second, again in zip(*draws):
        assert torch.equal(first.payoffs, again.payoffs)
        assert not torch.equal(first.payoffs, second.payoffs)
    others = Auditor(4, 9, 4, CPU).sampled_families(state, 0)
    assert not torch.equal(draws[0][0].payoffs, others[0].payoffs)
    assert Auditor(4, 0, 3, CPU).sampled_families(state, 0) == []


def test_bounds_are_never_below_the_errors(sampling):
    state = patched(400, 30, 1)
    auditor = Auditor(30, 50, 0, CPU)
    for family in auditor.fixed_families(state) + auditor.sampled_families(state, 0):
        errors = family.errors(torch.arange(len(family.payoffs)))
        assert bool((family.bounds() >= errors).all()), family.kind


def test_some_of_a_family_have_the_errors_they_have_among_all(sampling):
    state = patched(300, 20, 4)
    auditor = Auditor(20, 30, 0, CPU)
    for family in auditor.fixed_families(state) + auditor.sampled_families(state, 0):
        every = family.errors(torch.arange(len(family.payoffs)))
        some = torch.tensor([0, 3, 4, 11])
        torch.testing.assert_close(family.errors(some), every[some], rtol=0, atol=1e-13)


def test_screening_finds_the_same_worst_utility(monkeypatch):
    for seed in range(6):
        state = patched(500, 12, seed)
        found = []
        for margin in (0.0, 1.0):
            monkeypatch.setattr(audit, "largest_margin", lambda low, high, m=margin: m)
            auditor = Auditor(12, 80, seed, CPU)
            families = auditor.fixed_families(state) + auditor.sampled_families(state, seed)
            found.append(find_worst(families))
        assert found[0][:2] == found[1][:2]
        assert found[0][2] == pytest.approx(found[1][2], abs=1e-13)


@pytest.mark.parametrize("seed", range(3))
def test_many_classes_are_screened_by_flat_rows_and_groups_of_ranks(seed, monkeypatch):
    """Near-equal utilities, so that the second look at the bounds decides, too."""
    state = patched(600, 300, seed)
    auditor = Auditor(300, 100, seed, CPU)
    monkeypatch.setattr(audit, "EXACT_AT_ONCE", 3)
    families = auditor.sampled_families(state, seed)
    assert all(isinstance(family, Screened) for family in families)
    linear, rank = Linear(families[0].payoffs), Rank(families[1].payoffs)
    for family, utilities in zip(families, (linear, rank)):
        errors = utilities.calibration_errors(state.probabilities, state.labels)
        _, column, error = find_worst([family])
        assert column == int(errors.argmax())
        assert error == pytest.approx(float(errors.max()), abs=1e-13)
        worth = float(errors.median())
        found = family.errors(torch.arange(100), worth)
        above = errors > worth
        torch.testing.assert_close(found[above], errors[above], rtol=0, atol=1e-13)
        assert bool((found[~above] <= worth + 1e-12).all())


def test_most_utilities_are_never_sorted(monkeypatch):
    state = patched(3000, 100, 2)
    auditor = Auditor(100, 0, 0, CPU)
    sorted_columns = []
    errors = Indicators.errors

    def counted(self, columns, worth):
        sorted_columns.append(len(columns))
        return errors(self, columns, worth)

    monkeypatch.setattr(Indicators, "errors", counted)
    found = find_worst(auditor.fixed_families(state))
    assert sum(sorted_columns) < 100  # of 200
    monkeypatch.setattr(Indicators, "bounds", lambda self: torch.full((100,), torch.inf))
    assert find_worst(auditor.fixed_families(state)) == found


def test_loose_bounds_do_not_hide_the_worst_utility():
    """Fifty utilities whose bounds say 1/2 err by almost nothing; the last says less, errs more."""
    n, decoys = 1000, 50
    labels = torch.arange(n) % 2
    tight = 0.5 + 1e-6 * torch.arange(n, dtype=torch.float64)  # all in one bucket, taking turns
    honest = torch.full((n,), 0.8, dtype=torch.float64)
    predicted = torch.stack([*[tight] * decoys, honest])
    payoffs = torch.tensor([[0.0, 1.0]] * decoys + [[0.4, 0.4]], dtype=torch.float64)
    for order in (torch.arange(decoys + 1), torch.arange(decoys, -1, -1)):
        v = predicted[order]
        family = Screened("linear", v.float(), payoffs[order], labels, 1e-7, v.__getitem__)
        bounds, honest_at = family.bounds(), int(v[:, 0].argmax())
        assert int((bounds > bounds[honest_at]).sum()) == decoys
        column, error = find_worst([family])[1:]
        assert column == honest_at
        assert error == pytest.approx(0.4)


def test_one_utility_at_a_time_finds_the_same(monkeypatch):
    state = patched(500, 40, 3)
    families = Auditor(40, 0, 0, CPU).fixed_families(state)
    found = find_worst(families)
    monkeypatch.setattr(audit, "EXACT_AT_ONCE", 1)
    assert find_worst(families) == found


def test_a_witness_holds_no_more_than_its_own_payoffs():
    for seed in range(6):
        witness = Auditor(6, 40, seed, CPU).worst(patched(300, 6, seed), 0)
        assert witness.payoff.untyped_storage().nbytes() == 6 * 8


def test_a_perfect_forecast_has_no_error():
    labels = torch.tensor([0, 1, 2, 1])
    state = PatchedForecast(torch.eye(3, dtype=torch.float64)[labels], labels)
    assert combined_error(state, Auditor(3, 0, 0, CPU)) == 0
