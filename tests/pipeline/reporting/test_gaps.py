"""The largest gap between groups: which, how large, and how sure."""

import numpy as np
import pytest

from metrics import scorecard
from pipeline.reporting.gaps import largest_gaps
from pipeline.scoring.tidy import rows_of
from tests.pipeline.reporting.conftest import scored


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
    assert gap.as_json()["p_value"] is None
    assert "not" in gap.words or "nothing" in gap.words


def statistics(random, n, shift):
    """One split's scores of a forecast on three classes, miscalibrated by `shift` of a logit."""
    logits = random.normal(size=(n, 3))
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = np.array([random.choice(3, p=one) for one in p])
    q = p * np.exp([shift, 0, 0])
    card = scorecard(
        q / q.sum(axis=1, keepdims=True),
        labels,
        utilities=0,
        floor_repetitions=60,
        bootstrap_repetitions=60,
    )
    rows = rows_of("m", [scored(0, card.metrics, arrays=card.draws)], {})
    (whole,) = [row for row in rows if row["split"] == "all" and row["metric"] == "u_cwe"]
    return row(whole["value"], whole["floor_mean"], whole["half_width"])


@pytest.mark.slow
@pytest.mark.parametrize(("shift", "least", "most"), [(0.0, 0.0, 0.16), (1.0, 0.8, 1.0)])
def test_equal_groups_seldom_differ_and_a_miscalibrated_one_nearly_always(shift, least, most):
    random = np.random.default_rng(1)
    found = []
    for _ in range(25):
        groups = {"a": statistics(random, 300, shift), "b": statistics(random, 100, 0.0)}
        (gap,) = largest_gaps(groups, ["m"], ["u_cwe"])
        found.append(gap.p_value <= 0.05)
    assert least <= np.mean(found) <= most
