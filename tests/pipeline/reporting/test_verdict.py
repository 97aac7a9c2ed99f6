"""The sentences follow the tests and not the smallest number."""

import pytest

from tests.pipeline.reporting.conftest import decided
from utility_calibration.pipeline.reporting.verdict import verdict_of
from utility_calibration.pipeline.reporting.wording import bound, interval, p_value
from utility_calibration.pipeline.scoring.choice import WITHIN, WORSE
from utility_calibration.pipeline.scoring.decisions import HARMED, INFINITE, Rarest

BEYOND = {"beyond_floor": True}


def cell(mean, best=False, **more):
    return {"mean": mean, "floor_q95": 0.005, "not_worse": best, "beyond_floor": False} | more


def verdict(columns, points=3000, priced=None, **more):
    """The verdict on rows by metric and method."""
    return verdict_of(decided(columns, test_points=points, **more), priced)


def test_a_method_within_noise_goes_before_a_smaller_error_that_no_test_tells_apart():
    good = {"temperature": cell(0.004, True, **BEYOND), "vector": cell(0.0045, True)}
    result = verdict({"u_cwe": good | {"isotonic": cell(0.09, **BEYOND)}})
    assert (result.uses[0].named, result.overall) == (("vector",), "vector")


@pytest.mark.parametrize(
    ("best", "overall", "words"),
    [
        ({"u_cwe": ["vector"], "u_topk": ["vector"]}, "vector", "is Vector Scaling: clearly"),
        ({"u_cwe": ["vector", "isotonic"], "u_topk": ["isotonic"]}, "isotonic", "is IR: no test"),
        ({"u_cwe": ["vector"], "u_topk": ["isotonic"]}, None, "choose for yours"),
    ],
)
def test_one_method_for_all_uses_where_it_is_among_the_best_everywhere(best, overall, words):
    """Of several the one with the best Brier score."""
    table = {
        key: {m: cell(0.01, m in best[key]) for m in ("vector", "isotonic", "dirichlet")}
        for key in ("u_cwe", "u_topk")
    }
    table["brier"] = {m: cell(mean) for m, mean in zip(table["u_cwe"], (0.2, 0.1, 0.3))}
    result = verdict(table)
    assert result.overall == overall
    assert any(words in sentence for sentence in result.summary)


def column_of(*methods, best=(), **rest):
    return {m: cell(0.01 * (k + 1), m in best, **rest) for k, m in enumerate(methods)}


THREE = ("temperature", "vector", "isotonic")
FIVE = ("temperature", "vector", "isotonic", "dirichlet", "uncalibrated")


def test_the_headline_says_for_each_use_what_will_do_and_the_signs_say_why():
    table = {
        "u_cwe": column_of(*FIVE, best=FIVE[:4], **BEYOND),
        "u_topk": column_of(*FIVE, best=["vector"]),
        "u_dcg": column_of(*FIVE, best=["vector"]),
    }
    table["u_cwe"]["vector"]["upper"] = 0.00713
    rarest = Rarest(100, 10_000, 0.3, 20)
    result = verdict(table, users={"vector": 0.0123}, rarest=rarest)
    any_of, take = result.headline.split(";")
    assert "four" in any_of and "○ (beyond noise)" in any_of and "single decisions" in any_of
    assert "shortlists and graded gains take Vector Scaling" in take
    assert result.uses[1].signs == {m: WITHIN if m == "vector" else WORSE for m in FIVE}
    assert result.grid[1] == ["Vector Scaling", "○", "✓", "✓"]
    assert result.summary == [
        "One method for all of these is Vector Scaling: no test finds a better one. It is within "
        "noise for shortlists and graded gains and beyond noise for single decisions.",
        "With Vector Scaling the 95 % upper bound on the error of any user of these classes "
        "(U_CWE, U_topK, U_dcg and the like) is .013, on average over the 10 splits.",
        "The rarest class has 100 of 10,000 points: compare its prevalence .010 with the bound "
        ".0072 (U_CWE).",
        "With 3,000 test points a split, observed errors below .0050 (U_CWE), .0050 (U_topK) and "
        ".0050 (U_dcg) cannot be told from chance.",
    ]
    assert "wrong in 5 % of cases for the truly best method in one column" in result.legend


def test_where_no_test_finds_a_difference_nothing_is_recommended():
    column = column_of(*THREE, best=THREE, difference_half_width=0.004)
    result = verdict({"u_cwe": column, "brier": column}, users={"vector": 0.12})
    assert result.headline == (
        "Too few points to rank the methods: no test finds a difference among the three."
    )
    assert result.overall is None and result.uses[0].take == ""
    assert "With each of these methods" not in result.summary[0]  # three are named
    assert "is at most .12, on average" in result.summary[0]
    assert result.legend == "✓ within noise of perfectly calibrated"
    told = verdict({"u_cwe": column, "u_topk": column_of(*THREE, best=["vector"])})
    assert told.headline == (
        "For single decisions no test tells the methods apart; for shortlists take Vector Scaling."
    )
    assert told.overall == "vector"
    assert "differences between methods are known to ± .0040 (U_CWE) only" in told.summary[-1]
    refused = verdict({"u_cwe": column_of(*THREE, best=["vector"])}, refused="Too few points.")
    assert refused.headline == "Too few points."
    assert (refused.overall, refused.uses[0].take) == (None, "")
    assert "ake Vector" not in " ".join(refused.summary)


def test_marks_stand_in_the_grid_and_an_infinite_likelihood_is_not_recommended():
    marks = {"temperature": (INFINITE,), "isotonic": (HARMED,)}
    table = {"u_cwe": column_of(*THREE, best=THREE[:2])}
    result = verdict(table, marks=marks)
    assert result.overall == result.uses[0].take == "vector"
    assert result.headline == "For single decisions take Vector Scaling."
    assert [row[0] for row in result.grid] == ["Temp. Scaling ∞", "Vector Scaling", "IR ▽"]
    assert "∞ infinite NLL, so it is not recommended" in result.legend
    many = verdict({"u_cwe": column_of(*FIVE, "sms", best=FIVE)}, marks=marks)
    assert "four methods with ✓ (within noise)" in many.headline and "∞" in many.headline


def test_a_single_split_is_tested_over_points_or_compares_nothing():
    table = {key: column_of(*THREE, best=["vector"]) for key in ("u_cwe", "u_dcg")}
    tested = verdict(table, splits=1, test="bootstrap")
    assert tested.headline == "For single decisions and graded gains take Vector Scaling."
    assert "the spread over other calibration sets is not known" in tested.legend
    for column in table.values():
        for row in column.values():
            row["not_worse"] = None
    result = verdict(table, splits=1, test="")
    assert result.overall is None
    assert result.headline.startswith("No method is recommended: no test compares the methods")


def test_too_few_points_of_a_class_are_told_beside_the_bound():
    row = cell(0.001, True, within_noise=None, upper=0.0015)
    result = verdict({"u_cwe": {"vector": row}}, rarest=Rarest(16, 20_000, 0.3, 25))
    assert result.grid == [["Vector Scaling", "?"]] and "✓" not in result.legend
    assert result.summary[0] == (
        "The rarest class has 16 of 20,000 points: compare its prevalence .00080 with the bound "
        ".0015 (U_CWE). A test part has about 5 of them; fewer than 25 do not show whether that "
        "class is predicted half too often."
    )


def costs_of(half, **costs):
    """The record of decisions with these costs by method."""
    always = {"always wait": {"difference": -1.0}}
    methods = {
        name: {"cost": cost, "against": always | {
            other: {"difference": cost - costs[other], "difference_half_width": half}
            for other in costs if other != name
        }}
        for name, cost in costs.items()
    }  # fmt: skip
    return {"methods": methods, "best_constant": "wait"}


def test_with_losses_headline_grid_and_summary_name_the_cheapest_method():
    """Also where another one is among the best for all uses, or has an infinite NLL."""
    table = {"u_losses": column_of(*THREE, best=["temperature", "vector"])}
    marks = {"temperature": (INFINITE,)}
    costs = costs_of(0.05, temperature=0.2, vector=0.22, isotonic=0.3)
    result = verdict(table, priced=costs, marks=marks)
    assert result.headline == (
        "Temp. Scaling has the lowest mean loss, though its NLL is infinite: 0.2, 0.020 ± 0.050 "
        "less than with Vector Scaling, the next; a test finds one of the two others costlier. "
        "Vector Scaling is calibrated best for these losses."
    )
    assert result.overall == "temperature"
    assert result.grid == [
        ["Temp. Scaling ∞", "✓", "="], ["Vector Scaling", "✓", "="], ["IR", "✗", "✗"],
    ]  # fmt: skip
    assert result.summary[0] == "The calibration of Temp. Scaling is within noise for losses."
    for row in table["u_losses"].values():
        row["not_worse"] = None
    untested = costs_of(None, temperature=0.2, vector=0.22)
    one = verdict(table, splits=1, test="", priced=untested)
    assert one.overall is None and [use.label for use in one.uses] == ["losses"]
    assert one.headline.startswith("No method is recommended: no test compares the methods")
    assert one.headline.endswith("0.2, 0.02 less than with Vector Scaling, the next.")


def test_own_utilities_are_a_use_and_shared_columns_are_none():
    keys = ("u_payoffs_ann", "u_tce", "accuracy")
    table = {key: {"temperature": cell(0.1, True, upper=0.031)} for key in keys}
    result = verdict(table, users={"temperature": 0.5})
    assert [use.label for use in result.uses] == ["payoffs_ann"]
    assert result.summary[0] == (
        "With Temp. Scaling the 95 % upper bound on the error of your utility is .031 "
        "(u_payoffs_ann), on average over the 10 splits; no monotone change of a threshold rule on "
        "this utility gains more than twice the bound."
    )


def test_only_the_bound_of_a_single_split_is_said_to_hold_with_95_percent_confidence():
    table = {"u_cwe": {"temperature": cell(0.1, True)}}
    users = {"temperature": 0.13}
    one, many = (verdict(table, 50, splits=k, users=users).summary[0] for k in (1, 10))
    assert one.startswith("With 95 % confidence no user of these classes")
    assert "confidence" not in many and "is .13, on average over the 10 splits" in many


def test_bounds_are_rounded_up_and_numbers_have_as_many_digits_as_they_need():
    assert [bound(value) for value in (0.1234, 0.13, 0.0991)] == [".13", ".13", ".10"]
    assert interval(0.7, 1.0) == ".70–1.00"
    assert interval(0.9123, 0.9155) == ".9123–.9155"
    assert interval(-0.5, 0.25) == "-.50 to .25"
    texts = [p_value(p) for p in (1e-9, 0.000123, 0.00468, 0.25, 1.0)]
    assert texts == ["p < .0001", "p = .0001", "p = .0047", "p = .25", "p = 1.0"]
