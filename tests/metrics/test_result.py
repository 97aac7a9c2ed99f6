"""The record of a utility class: computed when asked for, kept, and the same in a scorecard."""

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import torch

from tests.forecasts import forecast_of
from utility_calibration import metrics as m
from utility_calibration.metrics.result import CalibrationResult

P, Y = forecast_of("smooth", 120, 3, 1)
PARTS = ("errors", "error", "worst", "floor", "interval", "gain")


class Counted(m.TopK):
    """Counts how often its errors are computed, under how many draws."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def errors(self, forecast, outcomes):
        self.calls.append(outcomes.draws)
        return super().errors(forecast, outcomes)


def test_each_part_is_computed_when_it_is_asked_for_and_kept():
    users = Counted()
    result = users.evaluate(P, Y)
    assert users.calls == []
    assert result.error == result.errors.max() == result.value
    assert result.worst.error == pytest.approx(result.error, abs=1e-12)
    assert users.calls == [1]
    first = result.floor, result.interval
    drawn = sum(users.calls) - 1
    assert (result.floor, result.interval) == first
    assert sum(users.calls) - 1 == drawn == 400  # the floor's draws serve the interval, too


def test_the_record_does_not_change_and_can_be_stored():
    result = m.TopK().evaluate(P, Y, repetitions=20)
    with pytest.raises(FrozenInstanceError):
        result.error = 0.0
    again = pickle.loads(pickle.dumps(result))
    assert [getattr(again, part) for part in PARTS[1:]] == [getattr(result, p) for p in PARTS[1:]]


def test_a_scorecard_has_the_same_record():
    result = m.TopK().evaluate(P, Y, repetitions=400)
    card = m.scorecard(P, Y, utilities=0, floor_repetitions=400)
    found = card["u_topk"]
    assert type(found) is type(result) is CalibrationResult
    for part in ("errors", "error", "worst", "floor", "floor_draws", "interval"):
        np.testing.assert_allclose(getattr(found, part), getattr(result, part), atol=1e-12)
    assert found.gain.gain <= result.gain.gain + 1e-12  # of the worst utility alone
    assert list(card) == list(card.metrics) and len(card) == len(card.results)


def test_what_does_not_apply_is_no_attribute_and_the_error_names_it():
    card = m.scorecard(P, Y, utilities=0, floor_repetitions=3)
    assert not any(hasattr(card["accuracy"], part) for part in PARTS)
    assert hasattr(card["tce_bin"], "floor") and not hasattr(card["tce_bin"], "worst")
    assert not hasattr(card["u_topk"], "bootstrap_draws")
    with pytest.raises(AttributeError, match=r"^nll: .*floor"):
        _ = card["nll"].floor


def test_it_prints_its_numbers():
    result = m.ClassWise().evaluate(P, Y, repetitions=20)
    shown = repr(result)
    for number in (result.error, result.floor.q95, result.interval.upper):
        assert f"{number:.4f}" in shown
    assert f"utility {result.worst.utility}" in shown
    assert f"{result.gain.gain:.4f}" in repr(result).splitlines()[-1]


def test_errors_are_of_the_kind_of_the_probabilities():
    tensor = m.TopK().evaluate(torch.from_numpy(P), Y).errors
    np.testing.assert_array_equal(tensor.numpy(), m.TopK().calibration_errors(P, Y))
    assert isinstance(m.TopK().evaluate(P.tolist(), Y.tolist()).errors, np.ndarray)
