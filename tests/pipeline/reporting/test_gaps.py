"""The largest gap between groups: which, how large, and how sure."""

import numpy as np
import pytest

from pipeline.reporting.gaps import largest_gaps


def row(mean, floor, half_width):
    return {("m", "u_cwe"): {"mean": mean, "floor_mean": floor, "half_width": half_width}}


def test_a_small_group_with_much_noise_is_no_worse_for_that():
    groups = {"large": row(0.02, 0.01, 0.005), "small": row(0.09, 0.085, 0.005)}
    (gap,) = largest_gaps(groups, ["m"], ["u_cwe"])
    assert (gap.larger, gap.smaller) == ("large", "small")
    assert gap.difference == pytest.approx(0.005)
    assert gap.values == (0.02, 0.09)


def test_the_p_value_counts_every_pair():
    two = {"a": row(0.05, 0.01, 0.0196), "b": row(0.01, 0.01, 0.0196)}
    three = two | {"c": row(0.03, 0.01, 0.0196)}
    # 0.04 apart with standard errors of 0.01 each: z = 2.83
    (gap,) = largest_gaps(two, ["m"], ["u_cwe"])
    assert gap.p_value == pytest.approx(0.00468, abs=2e-5)
    assert largest_gaps(three, ["m"], ["u_cwe"])[0].p_value == pytest.approx(3 * gap.p_value)


def test_one_group_has_no_gap_and_a_single_split_without_interval_no_p_value():
    assert largest_gaps({"a": row(0.1, 0, 0.1)}, ["m"], ["u_cwe"]) == []
    groups = {"a": row(0.1, 0, np.nan), "b": row(0.2, 0, 0.1)}
    (gap,) = largest_gaps(groups, ["m"], ["u_cwe"])
    assert np.isnan(gap.p_value)
