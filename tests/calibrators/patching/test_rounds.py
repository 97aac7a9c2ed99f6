"""The audit finds the worst of all utilities, without sorting all of them."""

import pytest
import torch

from calibrators.patching import audit
from calibrators.patching.audit import (
    TIED,
    Family,
    find_worst,
    witness_of,
)
from calibrators.patching.state import PatchedForecast
from calibrators.patching.utilities import PayoffUtility


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
