"""The sentences follow the tests and not the smallest number."""

import math

import pytest

from pipeline.reporting.verdict import Evidence, interval, rounded_up, short, verdict_of

WITHIN = {"beyond": False, "floor": 0.005, "p_value": 0.3}
BEYOND = {"beyond": True, "floor": 0.005, "p_value": 0.002}


def cell(mean, best=False, **rest):
    return Evidence(mean, best, **{**WITHIN, **rest})


def test_a_method_within_noise_goes_before_a_smaller_error_that_no_test_tells_apart():
    column = {"temperature": cell(0.004, True, **BEYOND), "vector": cell(0.0045, True)}
    verdict = verdict_of({"u_cwe": column}, points=3000, splits=10)
    (use,) = verdict.uses
    assert (use.take, use.as_good) == ("vector", ("temperature",))
    assert verdict.sentences[0] == (
        "Single decisions by class (U_CWE): Vector Scaling is within noise of perfectly calibrated "
        "(p = .30), Temp. Scaling is not. Take Vector Scaling; no test tells Temp. Scaling from it."
    )


def test_a_clear_winner_that_is_beyond_its_floor_says_both():
    column = {"temperature": cell(0.02, True, **BEYOND), "isotonic": cell(0.09, **BEYOND)}
    text = verdict_of({"u_topk": column}, 3000, 10).sentences[0]
    assert "no method is within noise" in text
    assert "Take Temp. Scaling: every other method's error is significantly larger." in text
    assert text.endswith("It is off by more than chance, too: .020, floor .0050.")


def test_an_error_just_beyond_its_floor_is_not_printed_as_equal_to_it():
    column = {"temperature": cell(0.02512, True, beyond=True, floor=0.02487)}
    text = verdict_of({"u_topk": column}, 3000, 10).sentences[0]
    assert text.endswith("It is off by more than chance, too: .0251, floor .0249.")


@pytest.mark.parametrize(
    ("best", "overall", "words"),
    [
        ({"u_cwe": ["vector"], "u_topk": ["vector"]}, "vector", "Vector Scaling, clearly"),
        (
            {"u_cwe": ["vector", "isotonic"], "u_topk": ["isotonic"]},
            "isotonic",
            "IR; no test finds a better one",
        ),
        ({"u_cwe": ["vector"], "u_topk": ["isotonic"]}, None, "choose by yours"),
    ],
)
def test_one_method_for_all_uses_where_it_is_among_the_best_everywhere(best, overall, words):
    table = {
        key: {m: cell(0.01, m in best[key]) for m in ("isotonic", "vector")}
        for key in ("u_cwe", "u_topk")
    }
    verdict = verdict_of(table, 3000, 10)
    assert verdict.overall == overall
    assert any(words in sentence for sentence in verdict.sentences)


def test_of_several_for_all_uses_the_one_with_the_best_brier_score():
    table = {"brier": {"isotonic": cell(0.2, beyond=None), "vector": cell(0.1, beyond=None)}}
    table["u_cwe"] = {m: cell(0.01, True) for m in ("isotonic", "vector")}
    table["u_topk"] = {"isotonic": cell(0.01, True), "vector": cell(0.02, True)}
    verdict = verdict_of(table, 3000, 10)
    assert verdict.overall == "vector"
    assert verdict.sentences[2] == (
        "One method for all of these: Vector Scaling; no test finds a better one, and of such "
        "methods its Brier score is smallest."
    )


def test_what_a_small_sample_cannot_show_is_said():
    table = {"u_cwe": {"temperature": cell(0.1, True, floor=0.3)}}
    assert verdict_of(table, 12, 10).sentences[-1] == (
        "Not known: with 12 test points a split an error below .30 (U_CWE) could not have "
        "been seen."
    )


def test_one_split_compares_nothing():
    table = {
        key: {"temperature": cell(0.1, True), "vector": cell(0.2)} for key in ("u_cwe", "u_dcg")
    }
    verdict = verdict_of(table, 50, 1)
    assert verdict.overall is None
    assert all(use.sure == "not tested" for use in verdict.uses)
    assert not any("Take" in sentence for sentence in verdict.sentences)


def test_own_utilities_are_a_use_and_shared_columns_are_none():
    keys = ("u_payoffs_ann", "u_tce", "u_lin_q95", "accuracy")
    table = {key: {"temperature": cell(0.1, True)} for key in keys}
    (use,) = verdict_of(table, 50, 10).uses
    assert use.use == "your own utility payoffs_ann"
    (function,) = verdict_of({"u_utility": {"temperature": cell(0.1, True)}}, 50, 10).uses
    assert function.use == "your own utility"


def test_without_floors_nothing_is_claimed_of_noise():
    column = {"temperature": Evidence(0.1, True, None)}
    verdict = verdict_of({"u_cwe": column}, 50, 10)
    assert "no noise floor was computed" in verdict.sentences[0]
    assert not any("Not known" in sentence for sentence in verdict.sentences)
    assert verdict.as_json()["uses"][0]["not_seen_below"] is None


def test_the_certificate_of_the_method_taken():
    table = {"u_cwe": {"temperature": cell(0.1, True)}}
    sentences = verdict_of(table, 50, 10, {"temperature": 0.13}).sentences
    bound = "no user of these classes (U_CWE, U_topK, U_dcg and the like) is off by more than .13 "
    assert bound in sentences[1]


def test_an_own_utility_has_a_bound_of_its_own_and_standard_ones_share_theirs():
    column = {
        "temperature": Evidence(0.1, True, True, upper=0.13),
        "vector": Evidence(0.2, False, True, upper=0.3),
    }
    own, standard = verdict_of({"u_losses": column, "u_cwe": column}, 50, 10).sentences[:2]
    assert own.endswith(" With 95 % confidence it is off by no more than .13.")
    assert "confidence" not in standard


@pytest.mark.parametrize(
    ("value", "digits", "expected"),
    [(0.1234, 2, 0.13), (0.13, 2, 0.13), (0.0991, 2, 0.1), (1.6026, 2, 1.7), (12.01, 3, 12.1),
     (0.99501, 2, 1.0), (0.0, 2, 0.0), (31.0, 1, 40.0), (5.2e-18, 2, 1e-9)],
)  # fmt: skip
def test_a_bound_is_rounded_up(value, digits, expected):
    assert rounded_up(value, digits) == expected
    assert math.isnan(rounded_up(math.nan))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.00614, ".0061"),
        (0.3, ".30"),
        (0.0, ".00"),
        (1.25, "1.2"),
        (-0.021, "-.021"),
        (math.nan, "?"),
    ],
)
def test_numbers_are_short(value, text):
    assert short(value) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (3.9e-6, 0.31, ".00–.31"),
        (0.7, 1.0, ".70–1.00"),
        (0.9123, 0.9155, ".9123–.9155"),
        (-0.5, 0.25, "-.50 to .25"),
        (-0.37, -0.08, "-.37 to -.08"),
        (0.2, 0.2, ".20–.20"),
    ],
)
def test_intervals_have_as_many_digits_as_tell_their_ends_apart(low, high, text):
    assert interval(low, high) == text


def test_a_method_alone_is_compared_with_none():
    verdict = verdict_of({k: {"vector": cell(0.1, True)} for k in ("u_cwe", "u_dcg")}, 50, 10)
    assert verdict.overall is None
    assert "is the only method here" in verdict.sentences[0]
