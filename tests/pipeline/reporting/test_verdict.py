"""The sentences follow the tests and not the smallest number."""

import pytest

from metrics.registry import metric
from pipeline.reporting.table_model import Cell, Column, ResultTable, TableSpec
from pipeline.reporting.uses import BEYOND as BEYOND_NOISE
from pipeline.reporting.uses import WITHIN as WITHIN_NOISE
from pipeline.reporting.uses import WORSE, refusal
from pipeline.reporting.verdict import verdict_of
from pipeline.reporting.wording import interval, rounded_up

BEYOND = {"beyond": True}


def cell(mean, best=False, beyond=False, infinite=0.0):
    row = {"mean": mean, "floor_q95": 0.005, "zero_likelihood": infinite}
    return Cell("", "", best, beyond, row=row)


def verdict(columns, points=3000, splits=10, certificates=(), refused="", decisions=None):
    """The verdict on cells by metric and method."""
    methods = list(next(iter(columns.values())))
    table = ResultTable(
        TableSpec("b", "B", list(columns), methods),
        tuple(Column(metric(key), cells) for key, cells in columns.items()),
        "Temp. Scaling",
        splits,
        test_points=points,
        certificates=dict(certificates),
    )
    return verdict_of(table, refused, decisions)


def test_a_method_within_noise_goes_before_a_smaller_error_that_no_test_tells_apart():
    good = {"temperature": cell(0.004, True, **BEYOND), "vector": cell(0.0045, True)}
    result = verdict({"u_cwe": good | {"isotonic": cell(0.09, **BEYOND)}})
    assert (result.uses[0].named, result.overall) == (("vector",), "vector")
    assert result.prose[0] == (
        "Single decisions by class: beyond noise: Temp. Scaling; within noise: Vector Scaling; "
        "worse than the best: IR. Take Vector Scaling."
    )


@pytest.mark.parametrize(
    ("best", "overall", "words"),
    [
        ({"u_cwe": ["vector"], "u_topk": ["vector"]}, "vector", "is Vector Scaling: clearly"),
        (
            {"u_cwe": ["vector", "isotonic"], "u_topk": ["isotonic"]},
            "isotonic",
            "is IR: no test finds a better one",
        ),
        ({"u_cwe": ["vector"], "u_topk": ["isotonic"]}, None, "choose for yours"),
    ],
)
def test_one_method_for_all_uses_where_it_is_among_the_best_everywhere(best, overall, words):
    """Of several the one with the best Brier score."""
    table = {
        key: {m: cell(0.01, m in best[key]) for m in ("vector", "isotonic", "dirichlet")}
        for key in ("u_cwe", "u_topk")
    }
    table["brier"] = {"vector": cell(0.2, beyond=None), "isotonic": cell(0.1, beyond=None)}
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
    result = verdict(table, certificates={"vector": 0.0123})
    assert result.headline == (
        "Any of four methods will do for single decisions; for shortlists and graded gains take "
        "Vector Scaling."
    )
    assert result.uses[0].signs["vector"] == BEYOND_NOISE
    assert result.uses[1].signs == {m: WITHIN_NOISE if m == "vector" else WORSE for m in FIVE}
    assert result.grid[1] == ["Vector Scaling", "○", "✓", "✓"]
    assert result.summary == [
        "One method for all of these is Vector Scaling: no test finds a better one. It is within "
        "noise for shortlists and graded gains and beyond noise for single decisions.",
        "With Vector Scaling the 95 % upper bound on the error of any user of these classes "
        "(U_CWE, U_topK, U_dcg and the like) is .013, on average over the 10 splits.",
        "With 3,000 test points a split, errors below .0050 (U_CWE), .0050 (U_topK) and .0050 "
        "(U_dcg) cannot be told from chance.",
    ]


def test_where_no_test_finds_a_difference_that_is_the_headline():
    column = column_of(*THREE, best=THREE)
    result = verdict({"u_cwe": column, "brier": column}, certificates={"vector": 0.12})
    assert result.headline == (
        "Too few points to rank the methods: no test finds a difference among the three."
    )
    assert result.overall is None and result.uses[0].take == ""
    assert not any("Take" in sentence for sentence in result.prose)
    assert "With each of these methods" not in result.summary[0]  # three are named
    assert "is at most .12, on average" in result.summary[0]
    assert result.legend == "✓ within noise of perfectly calibrated"


def test_a_method_with_an_infinite_likelihood_is_not_recommended():
    nll = {m: cell(1.0, beyond=None, infinite=float(m == "temperature")) for m in THREE}
    table = {"nll": nll, "u_cwe": column_of(*THREE, best=THREE[:2])}
    result = verdict(table)
    assert result.overall == result.uses[0].take == "vector"
    assert result.headline == (
        "For single decisions take Vector Scaling (not named, because of an infinite NLL: Temp. "
        "Scaling)."
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((60,), "a split has 60, and at least 200 are needed"),
        ((500, 4, 0.3), "has 4 in all, and at least 10 are needed"),
    ],
)
def test_a_small_sample_gets_no_recommendation_but_what_is_needed(given, words):
    refused = refusal(*given)
    assert words in refused
    result = verdict({"u_cwe": column_of(*THREE, best=["vector"])}, refused=refused)
    assert result.headline == refused
    assert (result.overall, result.uses[0].take) == (None, "")
    assert "ake Vector" not in " ".join([*result.prose, *result.summary])
    assert refusal(500, 10, 0.3) == ""


def test_one_split_compares_nothing():
    table = {
        key: {"temperature": cell(0.1, True), "vector": cell(0.2)} for key in ("u_cwe", "u_dcg")
    }
    result = verdict(table, splits=1)
    assert result.overall is None
    assert result.headline.startswith("No method is recommended, because a single split")
    assert result.legend == (
        "✓ within noise of perfectly calibrated; not tested against each other: one split"
    )
    assert not any("Take" in sentence for sentence in result.prose)


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
    nll = {m: cell(1.0, beyond=None, infinite=float(m == "temperature")) for m in THREE}
    table = {"nll": nll, "u_losses": column_of(*THREE, best=["temperature", "vector"])}
    costs = costs_of(0.05, temperature=0.2, vector=0.22, isotonic=0.3)
    result = verdict(table, decisions=costs)
    assert result.headline == (
        "Temp. Scaling acts cheapest, though its NLL is infinite: mean loss 0.2, 0.020 ± 0.050 "
        "less than with Vector Scaling, the next, and surely less than with one of two others. "
        "Vector Scaling is calibrated best for these losses (not named, because of an infinite "
        "NLL: Temp. Scaling)."
    )
    assert result.overall == "temperature"
    assert result.grid == [
        ["Temp. Scaling", "✓", "="], ["Vector Scaling", "✓", "="], ["IR", "✗", "✗"],
    ]  # fmt: skip
    assert result.summary[0] == "The calibration of Temp. Scaling is within noise for losses."
    one = verdict(table, splits=1, decisions=costs_of(None, temperature=0.2, vector=0.22))
    assert one.overall is None and [use.label for use in one.uses] == ["losses"]
    assert one.headline == (
        "No method is recommended, because a single split cannot test one against another. On "
        "these test points Temp. Scaling acts cheapest, though its NLL is infinite: mean loss 0.2, "
        "0.02 less than with Vector Scaling, the next."
    )


def test_own_utilities_are_a_use_and_shared_columns_are_none():
    keys = ("u_payoffs_ann", "u_tce", "accuracy")
    table = {key: {"temperature": cell(0.1, True)} for key in keys}
    table["u_payoffs_ann"]["temperature"].row["upper"] = 0.031
    result = verdict(table, certificates={"temperature": 0.5})
    assert [use.use for use in result.uses] == ["your own utility payoffs_ann"]
    assert result.summary[0] == (
        "With Temp. Scaling the 95 % upper bound on the error of your utility is .031 "
        "(u_payoffs_ann), on average over the 10 splits; no monotone change of a threshold rule on "
        "this utility gains more than twice the bound."
    )


def test_only_the_bound_of_a_single_split_is_said_to_hold_with_95_percent_confidence():
    table = {"u_cwe": {"temperature": cell(0.1, True)}}
    (one, many) = (verdict(table, 50, k, {"temperature": 0.13}).prose[1] for k in (1, 10))
    assert one.startswith("With 95 % confidence no user of these classes")
    assert "confidence" not in many and "is .13, on average over the 10 splits" in many


def test_bounds_are_rounded_up_and_intervals_have_as_many_digits_as_tell_their_ends_apart():
    assert [rounded_up(bound, 2) for bound in (0.1234, 0.13, 0.0991)] == [0.13, 0.13, 0.1]
    assert interval(0.7, 1.0) == ".70–1.00"
    assert interval(0.9123, 0.9155) == ".9123–.9155"
    assert interval(-0.5, 0.25) == "-.50 to .25"
