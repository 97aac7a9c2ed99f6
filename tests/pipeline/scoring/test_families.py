"""Errors of many groups together: their p-values by hand, and their rate on calibrated ones."""

import numpy as np
import pytest

from tests.pipeline.reporting.conftest import facts_of, scored, write
from utility_calibration.metrics.resampling import NoiseFloor
from utility_calibration.pipeline.scoring.deciding import decide
from utility_calibration.pipeline.scoring.families import p_values_together, step_down
from utility_calibration.pipeline.scoring.files import ScoreFiles


def test_p_values_by_hand():
    draws = np.array([1.0, 2.0, 3.0, 4.0])
    assert step_down([4.0], [draws]) == NoiseFloor.of(draws, 4.0).p_value == 0.4
    # The first error is larger than all chance makes; the second only counts against itself.
    assert step_down([9.0, 4.0], [draws, draws[::-1]]).tolist() == [0.2, 0.4]
    # A larger error counts first, so a smaller one never has a smaller p-value.
    assert step_down([3.0, 4.0], [draws, draws[::-1]]).tolist() == [0.6, 0.6]
    assert step_down([1.0, 1.0], [np.ones(4), draws]).tolist() == [1.0, 1.0]  # no error by chance


def test_one_of_twenty_calibrated_groups_is_marked_in_five_percent_and_a_bad_one_is_found():
    random = np.random.default_rng(0)
    alone, together, found = [], [], []
    for _ in range(400):
        scale = random.uniform(0.5, 5, size=(20, 1))  # of groups of different sizes
        draws = scale * random.gamma(4, size=(20, 201))
        errors, floors = draws[:, 0], draws[:, 1:]
        p_values = [NoiseFloor.of(f, e).p_value for e, f in zip(errors, floors, strict=True)]
        alone.append(min(p_values) <= 0.05)
        together.append(step_down(errors, floors).min() <= 0.05)
        errors[3] = 15 * scale[3, 0]
        found.append(step_down(errors, floors)[3] <= 0.05)
    assert np.mean(alone) > 0.5
    assert np.mean(together) <= 0.05 + 2 * 0.011
    assert np.mean(found) > 0.9


def test_few_draws_mark_no_more_calibrated_groups():
    """Deviations of the draws alone are a little small for the error itself: .084 of cases."""
    random = np.random.default_rng(0)
    trials = 1500
    found = 0
    for _ in range(trials):
        draws = random.gamma(2, size=(20, 101))
        found += step_down(draws[:, 0], draws[:, 1:]).min() <= 0.05
    assert found / trials <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / trials)


def split_of(**errors):
    """One split whose floors are 0.01 … 0.4 and whose errors are given."""
    keys = {key: value / 100 for key, value in errors.items()}
    arrays = {f"floor_{key}": np.arange(1, 41) / 100 for key in keys}
    return [scored(0, keys, arrays=arrays, noise_floor={key: {} for key in keys})]


@pytest.mark.parametrize("group", ["north", "south"])
def test_groups_are_a_family_by_metric_and_own_utilities_are_one_in_all_groups(group):
    parts = {"north": split_of(u_cwe=40, u_a=90, u_b=20), "south": split_of(u_cwe=1, u_a=3, u_b=4)}
    found = p_values_together(parts, ["u_a", "u_b"])
    assert set(found[group]) == {"u_cwe", "u_a", "u_b"}
    assert found["north"]["u_a"] == pytest.approx(1 / 41)
    assert p_values_together({"": parts["north"]}, ["u_a"]) == {}  # each stands alone
    assert set(p_values_together({"": parts["north"]}, ["u_a", "u_b"])[""]) == {"u_a", "u_b"}


def test_the_mark_of_a_group_follows_the_family_and_its_own_p_value_stays(tmp_path):
    parts = {"isotonic": [scored(0, {"u_cwe": 0.3}, arrays={"floor_u_cwe": np.full(39, 0.2)})]}
    facts = facts_of("b", 1)
    facts["calibrators"] = {"isotonic": {"config": {}, "together": {"": {"u_cwe": 0.2}}}}
    row = decide(write(ScoreFiles.below(tmp_path, "b"), parts, facts), ["isotonic"]).rows
    one = row["isotonic", "u_cwe"]
    assert (one.p_value, one.p_together, one.beyond_floor) == (0.025, 0.2, False)
    assert one.is_one_of_many and one.within_noise
