"""What is said of the present forecast, and of what recalibration could still gain."""

import pytest

from tests.pipeline.reporting.test_verdict import cell, decided
from utility_calibration.pipeline.reporting.verdict import verdict_of
from utility_calibration.pipeline.reporting.worst import Worst, left_words, present_of


def worst(gain, act_from):
    numbers = {"utility": 2, "error": 0.2, "floor": 0.01, "low": 0.1, "high": 0.9}
    at = {"gain": gain, "threshold": 0.4, "act_from": act_from}
    return {"uncalibrated": Worst("class cat", **numbers, share=0.5, gap=0.1, **at, diagram={})}


def said(beyond, gains=(0.013, 0.4713)):
    noise = {"beyond_floor": beyond, "within_noise": not beyond, "floor_q95": 0.011}
    row = cell(0.17, not beyond, **noise)
    decisions = decided({"u_topk": {"uncalibrated": row, "temperature": cell(0.1, True)}})
    return present_of(decisions, {"u_topk": worst(*gains)})


def test_the_present_forecast_comes_with_its_error_by_chance_and_the_gain_of_a_threshold():
    error, gain = said(beyond=True)
    assert ".17 in shortlists" in error and ".011" in error
    assert all(text in gain for text in ("“class cat”", "at least 0.40", ".013 a decision", "0.47"))


@pytest.mark.parametrize(
    ("gains", "told"),
    [
        ((0.013, None), "never act"),
        ((0.01, 0.4003), "act from 0.40030 on"),
        ((0.01, 0.4), "only where more than 0.40"),
        ((0.01, 0.1), "only where more than 0.40"),
    ],
)
def test_thresholds_have_so_many_digits_that_they_differ(gains, told):
    assert told in said(True, gains)[1]


def test_within_noise_no_gain_is_told():
    (only,) = said(beyond=False)
    assert "within noise" in only and "shortlists" in only


def test_a_gain_of_recalibration_is_told_apart_from_none():
    (line,) = left_words({"uncalibrated": (0.26, 0.04), "temperature": (0.001, 0.002)})
    assert ".26 ± .040 with Uncalibrated" in line
    assert "nothing that a test finds with Temp. Scaling (at most .0030)" in line
    assert not list(left_words({}))


def test_the_truthful_error_decides_only_where_no_test_does():
    errors = {"uncalibrated": cell(0.02, True), "temperature": cell(0.03, True)}
    two_bin = {"uncalibrated": {"mean": 2e-4}, "temperature": {"mean": 1e-4}}
    equal = verdict_of(decided({"u_topk": errors, "two_bin": two_bin}))
    assert any("take Temp. Scaling" in line and "two-bin" in line for line in equal.summary)
    errors["uncalibrated"]["not_worse"] = False
    told = verdict_of(decided({"u_topk": errors, "two_bin": two_bin}))
    assert not any("two-bin" in line for line in told.summary)
