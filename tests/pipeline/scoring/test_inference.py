"""How sure a difference is: between methods, between groups, and on data with a known truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from pipeline.scoring.choice import PLAIN, REPAIRS, largest_gap, repairs_of
from pipeline.scoring.inference import against_best, corrected_half_width, two_standard_errors
from pipeline.scoring.points import split_indices
from tests.pipeline.reporting.conftest import decided

N, SPLITS, TRIALS, SHARE = 400, 10, 300, 0.3
TESTS = [split_indices(N, split)[1] for split in range(SPLITS)]


def not_worse(values, draws=None, **how):
    found = against_best(values, SHARE, draws or {}, **how)
    return {method for method, one in found.items() if one.not_worse}


def test_the_set_of_the_best_holds_the_truly_best_and_leaves_out_the_bad() -> None:
    random = np.random.default_rng(2)
    kept, sizes = [], []
    for _ in range(TRIALS):
        shared = random.normal(size=N)
        losses = {
            name: excess + shared + 0.5 * random.normal(size=N)
            for name, excess in (("best", 0.0), ("near", 0.01), ("far", 0.05), ("bad", 0.6))
        }
        values = {name: [loss[test].mean() for test in TESTS] for name, loss in losses.items()}
        found = not_worse(values)
        kept.append("best" in found)
        sizes.append(len(found))
        assert "bad" not in found
    assert np.mean(kept) >= 0.95
    assert 1.5 < np.mean(sizes) < 3.01


def test_larger_is_better_and_few_splits_need_draws() -> None:
    scores = {"a": [0.9, 0.91, 0.92, 0.9, 0.91], "b": [0.5, 0.52, 0.51, 0.5, 0.52]}
    assert not_worse(scores, larger_is_better=True) == {"a"}
    one = {"a": [0.1], "b": [0.1 + 1e-9], "c": [0.2]}
    untested = against_best(one, SHARE, {})
    assert {found.not_worse for found in untested.values()} == {None}
    noise = np.random.default_rng(0).normal(0, 0.05, size=200)
    draws = {"a": 0.1 + noise, "b": 0.1 + noise, "c": 0.2 + 1.1 * noise}
    found = against_best(one, SHARE, draws)
    assert {method for method, of in found.items() if of.not_worse} == {"a", "b"}
    assert found["c"].difference == pytest.approx(0.1)
    assert found["c"].half_width == pytest.approx(1.96 * 0.1 * noise.std(ddof=1), rel=1e-4)


def test_the_corrected_interval_by_hand() -> None:
    values = [3.0, 4.0, 5.0]  # std 1, so the variance is 1/3 + 3/7
    expected = stats.t.ppf(0.975, 2) * math.sqrt(1 / 3 + 3 / 7)
    assert corrected_half_width(values, 0.3) == pytest.approx(expected)
    assert math.isnan(corrected_half_width([1.0], SHARE))
    assert two_standard_errors(values) == pytest.approx(2 / math.sqrt(3))


def row(mean, floor, half_width):
    numbers = {"mean": mean, "floor_mean": floor, "half_width": half_width}
    return decided({"u_cwe": {"m": numbers}}).rows["m", "u_cwe"]


def test_a_small_group_with_much_noise_is_no_worse_for_that():
    gap = largest_gap({"large": row(0.02, 0.01, 0.005), "small": row(0.09, 0.085, 0.005)})
    assert (gap.larger, gap.smaller) == ("large", "small")
    assert gap.difference == pytest.approx(0.005)
    assert gap.values == (0.02, 0.09)


def test_the_p_value_counts_every_pair_and_needs_intervals():
    two = {"a": row(0.05, 0.01, 0.0196), "b": row(0.01, 0.01, 0.0196)}
    three = two | {"c": row(0.03, 0.01, 0.0196)}
    # 0.04 apart with standard errors of 0.01 each: z = 2.83
    gap = largest_gap(two)
    assert gap.p_value == pytest.approx(0.00468, abs=2e-5)
    assert largest_gap(three).p_value == pytest.approx(3 * gap.p_value)
    assert largest_gap({"a": row(0.1, 0, np.nan), "b": row(0.2, 0, 0.1)}).p_value is None


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        (True, False, "closed"),
        (True, True, "still beyond noise"),
        (False, False, "within noise without and with them"),
        (False, True, "beyond noise only with them"),
        (None, None, "no floor, or too few points of a class, to tell"),
    ],
)
def test_a_gap_is_closed_where_the_error_comes_down_to_noise(before, after, outcome):
    plain = {"mean": 0.2, "beyond_floor": before}
    patched = {"mean": 0.1, "floor_q95": 0.05, "beyond_floor": after}
    own = decided({"u_cwe": {PLAIN[1]: plain, REPAIRS: patched}})
    (repair,) = repairs_of({"north": own})
    assert (repair.plain, repair.errors, repair.floor) == (PLAIN[1], (0.2, 0.1), 0.05)
    assert (repair.group, repair.outcome) == ("north", outcome)
    assert not repairs_of({"north": decided({"u_cwe": {PLAIN[1]: plain}})})
