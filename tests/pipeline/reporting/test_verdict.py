"""The verdict follows the tests and not the smallest number. Its sentences are in tests/golden."""

import pytest

from tests.pipeline.reporting.conftest import decided
from tests.pipeline.reporting.verdicts import (
    BEYOND,
    DIR,
    ISO,
    TEMP,
    VEC,
    cell,
    column_of,
    costs_of,
    verdict,
)
from utility_calibration.pipeline.reporting.limits import left_words
from utility_calibration.pipeline.reporting.names import method_name
from utility_calibration.pipeline.reporting.verdict import (
    COSTS,
    LIMITS,
    MEANING,
    METHODS,
)
from utility_calibration.pipeline.reporting.wording import bound, interval, p_value
from utility_calibration.pipeline.scoring.choice import choice_of
from utility_calibration.pipeline.scoring.decisions import HARMED, INFINITE, Rarest
from utility_calibration.pipeline.scoring.recommended import LOWEST, UNTOUCHED
from utility_calibration.pipeline.scoring.use_columns import UNSEEN, WITHIN, WORSE

THREE, FIVE = (TEMP, VEC, ISO), (TEMP, VEC, ISO, DIR, "uncalibrated")


def of_best(**best):
    """For each use the methods that no test finds worse; isotonic has the best Brier score."""
    table = {
        f"u_{use}": {m: cell(0.01, m in of) for m in (VEC, ISO, DIR)} for use, of in best.items()
    }
    return table | {"brier": {m: cell(mean) for m, mean in ((VEC, 0.2), (ISO, 0.1), (DIR, 0.3))}}


ONE = column_of(*THREE, best=[VEC])
TWO = {"u_cwe": column_of(*THREE, best=[TEMP, VEC])}
EQUAL = column_of(*THREE, best=THREE, difference_half_width=0.004)
WIDE = {
    m: {**row, "difference": row["mean"] - 0.01, "difference_half_width": 0.008}
    for m, row in column_of(*THREE, best=[TEMP, VEC]).items()
}
DEFAULTS = column_of(VEC, "logit_shift", ISO, best=[VEC, "logit_shift"])
UNTESTED = column_of(*THREE, not_worse=None)
NEAR = {TEMP: cell(0.004, True, **BEYOND), VEC: cell(0.0045, True), ISO: cell(0.09, **BEYOND)}
TOLD = {TEMP: cell(0.1, True), VEC: cell(0.2)}
MANY = {
    "u_cwe": column_of(*FIVE, best=FIVE[:4], upper=0.00713, **BEYOND),
    "u_topk": column_of(*FIVE, best=[VEC]),
    "u_dcg": column_of(*FIVE, best=[VEC]),
}
MANY_KNOWN = {"users": {VEC: 0.0123}, "rarest": Rarest(100, 10_000, 0.3, 20, "cat")}
OWN = {key: {TEMP: cell(0.1, True, upper=0.031)} for key in ("u_payoffs_ann", "u_tce", "accuracy")}
RARE = {"u_cwe": {VEC: cell(0.001, True, within_noise=None, upper=0.0015)}}
LOSSES = {"u_losses": TWO["u_cwe"]}
ALONE = {"u_cwe": {TEMP: cell(0.1, True)}}
GUESS = {
    "u_topk": {TEMP: cell(0.1, True), VEC: cell(0.2, True)},
    "nll": {TEMP: {"mean": 0.52}, VEC: {"mean": 0.51}},
}
PRICED = {
    "costs": costs_of(0.05, temperature=0.2, vector=0.22, isotonic=0.3),
    "marks": {TEMP: (INFINITE,)},
}
WITHOUT_HALF = {"costs": costs_of(None, temperature=0.2, vector=0.22)}
MARKED = {"marks": {TEMP: (INFINITE,), ISO: (HARMED,)}}
SINGLE, NO_TEST = {"splits": 1, "test": "bootstrap"}, {"splits": 1, "test": ""}
CASES = {  # what is decided, what else is known; the method for all uses, and those named for each
    "within noise goes before a smaller error": ({"u_cwe": NEAR}, {}, VEC, [(VEC,)]),
    "one is best everywhere": (of_best(cwe=[VEC], topk=[VEC]), {}, VEC, [(VEC,), (VEC,)]),
    "one of two is": (of_best(cwe=[VEC, ISO], topk=[ISO]), {}, ISO, [(VEC, ISO), (ISO,)]),
    "each use has another": (of_best(cwe=[VEC], topk=[ISO]), {}, None, [(VEC,), (ISO,)]),
    "many will do for one use": (MANY, MANY_KNOWN, VEC, [FIVE[:4], (VEC,), (VEC,)]),
    "no test finds a difference": (
        {"u_cwe": EQUAL, "brier": EQUAL}, {"users": {VEC: 0.12}}, None, [()]
    ),
    "for one use": ({"u_cwe": EQUAL, "u_topk": ONE}, {}, VEC, [(), (VEC,)]),
    "refused": ({"u_cwe": ONE}, {"refused": "Too few points."}, None, [()]),
    "an infinite likelihood": (TWO, MARKED, VEC, [(VEC,)]),
    "an infinite one of many": (
        {"u_cwe": column_of(*FIVE, "sms", best=FIVE)}, MARKED, VEC, [FIVE[1:]]
    ),
    "too few points to rule out a large error": (
        {"u_cwe": WIDE, "nll": column_of(*THREE, best=THREE)}, {}, TEMP, [()]
    ),
    "the default": ({"u_cwe": DEFAULTS, "nll": column_of(VEC, "logit_shift", ISO)}, {},
        "logit_shift", [(VEC, "logit_shift")]),
    "the default that has a mark": ({"u_cwe": DEFAULTS, "nll": column_of(VEC, "logit_shift", ISO)},
        {"marks": {"logit_shift": (HARMED,)}}, VEC, [(VEC, "logit_shift")]),
    "one split": ({"u_cwe": ONE, "u_dcg": ONE}, SINGLE, VEC, [(VEC,), (VEC,)]),
    "one split without a test": ({"u_cwe": UNTESTED}, NO_TEST, None, [()]),
    "a rare class": (RARE, {"rarest": Rarest(16, 20_000, 0.3, 25, "cat")}, None, [()]),
    "losses": (LOSSES, PRICED, VEC, [(VEC,), (VEC,)]),
    "losses without a test": ({"u_losses": UNTESTED}, {**NO_TEST, **WITHOUT_HALF}, None, [()]),
    "an own utility": (OWN, {"users": {TEMP: 0.5}}, None, [()]),
    "a bound of one split": (ALONE, NO_TEST | {"users": {TEMP: 0.13}}, None, [()]),
    "a bound of ten splits": (ALONE, {"users": {TEMP: 0.13}}, None, [()]),
    "a truthful error where no test decides": (GUESS, {}, None, [()]),
    "and where one does": (GUESS | {"u_topk": TOLD}, {}, TEMP, [(TEMP,)]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_methods_that_are_named(case):
    columns, known, overall, named = CASES[case]
    found = verdict(columns, **known)
    assert (found.overall, [use.named for use in found.uses]) == (overall, named)
    assert all(bool(use.take) == bool(use.named) for use in found.uses)


def test_a_guess_never_has_an_infinite_likelihood():
    both = {VEC: (INFINITE,), TEMP: (INFINITE,)}
    for marked, guessed in ({}, VEC), ({VEC: (INFINITE,)}, TEMP), (both, ""):
        headline = verdict(GUESS, marks=marked).headline
        names = [m for m in (TEMP, VEC) if f"take {method_name(m)}." in headline]
        assert names == [guessed] * bool(guessed)


def test_signs_and_marks_say_why():
    found = verdict(MANY)
    assert found.uses[1].signs == {m: WITHIN if m == VEC else WORSE for m in FIVE}
    assert found.grid[1] == ["Vector Scaling", "†", "✓", "✓"]
    marked = verdict(TWO, **MARKED)
    assert [row[0] for row in marked.grid] == ["Temp. Scaling ∞", "Vector Scaling", "IR"]
    assert [line[0] for line in marked.legend[:3]] == ["✓", "✗", "∞"]
    explained = " ".join(marked.details[METHODS])
    assert "isotonic regression" in explained and "structured" not in explained
    assert list(verdict(RARE).uses[0].signs.values()) == [UNSEEN]
    columns, costs, *_ = CASES["losses"]
    assert [row[1:] for row in verdict(columns, **costs).grid] == [
        ["✓", "="],
        ["✓", "="],
        ["✗", "✗"],
    ]


def test_a_sign_speaks_only_of_columns_whose_named_methods_have_it():
    """Four are ✓ beside one † that is not named; in the other column the same four are †.

    A third column leaves another method, so that none is among the best for all uses.
    """
    four, beside = FIVE[:4], FIVE[4]
    one = {m: cell(0.01, True, beyond_floor=m == beside) for m in FIVE} | {"sms": cell(0.1)}
    other = {m: cell(0.01, True, **BEYOND) for m in four} | {beside: cell(0.1), "sms": cell(0.1)}
    third = {m: cell(0.1) for m in FIVE} | {"sms": cell(0.01, True)}
    found = verdict({"u_cwe": one, "u_topk": other, "u_dcg": third})
    assert [use.named for use in found.uses] == [four, four, ("sms",)]
    assert found.overall is None and found.by_use.count("four methods") == 2
    # In the first column they will do, in the second one none is better, but they err.
    assert found.by_use.count("still has errors") == 1


def test_where_tests_are_weak_it_is_said_how_much_worse_than_the_best_a_method_may_be():
    """WIDE: the difference of the method taken is 0 ± .008, and a one-sided bound is narrower."""
    strong = column_of(*THREE, best=[TEMP])
    found = verdict({"u_cwe": WIDE, "u_topk": strong})
    (line,) = found.details[LIMITS]
    assert found.overall == TEMP and "single decisions" in line and "shortlists" not in line
    assert ".68 per 100" in line
    assert LIMITS not in verdict({"u_topk": strong}).details


def test_a_tie_leaves_probabilities_that_are_fine_and_no_others():
    for present, overall in ((cell(0.3, True), UNTOUCHED), (cell(0.3, True, **BEYOND), LOWEST)):
        decisions = decided({"u_cwe": {"uncalibrated": present, TEMP: cell(0.1, True)}})
        assert choice_of(decisions).pick.why == overall


def test_a_rare_class_is_named_where_its_whole_frequency_cannot_be_excluded():
    for upper, count in ((0.0007, 1), (0.0009, 1), (0.0001, 0)):
        column = {"u_cwe": {VEC: cell(0.001, True, upper=upper)}}
        cautions = verdict(column, rarest=Rarest(16, 20_000, 0.3, 25, "cat")).cautions
        assert sum("“cat” (.080 %" in sentence for sentence in cautions) == count


def test_the_cheapest_method_and_the_one_to_take_are_never_confused():
    """One sentence names what to take, and no other sentence names another method as the best."""
    columns, known, *_ = CASES["losses"]
    found = verdict(columns, **known)
    assert "method Vector Scaling" in found.headline and "Temp" not in found.headline
    assert any("Temp. Scaling" in line and INFINITE in line for line in found.details[COSTS])
    for more in ({"refused": "Too few points."}, {**NO_TEST, **WITHOUT_HALF}):
        refused = verdict(columns, **{**known, **more}).headline
        assert "Repair" not in refused and "no recommendation" in refused


@pytest.mark.parametrize("marks", [{}, {TEMP: (INFINITE,)}])
def test_by_which_rule_decisions_are_made_is_said_of_every_method(marks):
    columns, known, *_ = CASES["losses"]
    assert "lowest predicted cost" in verdict(columns, **{**known, "marks": marks}).headline


def test_bounds_are_rounded_up_and_numbers_have_as_many_digits_as_they_need():
    assert [bound(value) for value in (0.1234, 0.13, 0.0991)] == [".13", ".13", ".10"]
    assert interval(0.7, 1.0) == ".70–1.00"
    assert interval(0.9123, 0.9155) == ".9123–.9155"
    assert interval(-0.5, 0.25) == "-.50 to .25"
    texts = [p_value(p) for p in (1e-9, 0.000123, 0.00468, 0.25, 1.0)]
    assert texts == ["p < .0001", "p = .0001", "p = .0047", "p = .25", "p = 1.0"]


def test_costs_are_compared_with_the_best_action_that_is_the_same_for_all_points():
    columns, known, *_ = CASES["losses"]
    headline = verdict(columns, **known).headline
    assert "“wait” always costs 1.200" in headline
    assert "1.000 ± 0.050 more" in headline


def test_an_infinite_log_loss_says_as_what_probabilities_of_0_count():
    gains = {"uncalibrated": (0.9, 0.3), TEMP: (0.0, 0.001)}
    *_, first, second = left_words(gains, {"uncalibrated": 1.5, TEMP: 0.6}, ["uncalibrated"])
    assert "1e-12" in first and "1e-12" not in second
    assert left_words({}, {}) == []


def test_only_uses_of_gains_or_costs_have_errors_that_count_no_points():
    columns = {key: {TEMP: cell(0.01, True)} for key in ("u_cwe", "u_topk")}
    counting = verdict(columns).details[MEANING]
    of_gains = verdict(columns | {"u_dcg": {TEMP: cell(0.01, True)}}).details[MEANING]
    (added,) = set(of_gains) - set(counting)
    assert "rankings" in added
