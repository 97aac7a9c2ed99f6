"""Every rule on matrices that are no forecast has its case, and forecasts break none."""

import numpy as np
import pytest

from tests.pipeline.own.files import LOGITS, P, Y
from utility_calibration.pipeline.own.columns.file_points import FilePoints
from utility_calibration.pipeline.own.columns.rules import (
    ARE_NO_ANSWERS,
    ENOUGH_ROWS,
    SUMS_ARE_NOT_ONE,
    Values,
    first_that_holds,
    is_softmax_of_probabilities,
)
from utility_calibration.pipeline.own.points.point_rules import POINTS_ARE_NO_FORECAST

LARGEST = P.max(axis=1, keepdims=True)
SMALLEST = P.min(axis=1, keepdims=True)
SHARE = np.linspace(0.5, 1, len(P))[:, None]
CASES = {
    "transposed": [P[:3].T / P[:3].sum(axis=1), P / P.sum(axis=0)],
    "cumulative": [
        P.cumsum(axis=1),
        P[:, ::-1].cumsum(axis=1)[:, ::-1],
        P.cumsum(axis=1).round(2),
        P.cumsum(axis=1)[:, [2, 0, 1]],  # columns with names, in the order of the names
        P[:, ::-1].cumsum(axis=1)[:, [1, 2, 0]],
    ],
    "one value per row": [np.where(P == LARGEST, P, 0), np.where(P == LARGEST, 0.9, 0)],
    "cut off": [np.where(P == SMALLEST, 0, P), np.where((P < 0.2) & (P < LARGEST), 0, P)],
    "in order": [
        P.cumsum(axis=1) * SHARE,
        (P.cumsum(axis=1) * SHARE)[:, [2, 0, 1]],
        0.9 * np.sort(P, axis=1)[:, ::-1],
    ],
    "a class lacks": [0.8 * P, P * SHARE],
    "scores of each class by itself": [P**0.5, P.round(1), P**0.9],
}

SINGLE = P[:, :1]
VALUES = {
    "certain classes": [Values(Y[:, None] % 2, None), Values(np.eye(3)[Y], "probabilities")],
    "predicted classes": [Values(Y[:, None], None), Values(1 + Y[:, None] % 2, "logits")],
    "shares times a number": [Values(100 * P, "probabilities")],
    "percentages": [Values(100 * SINGLE, None), Values(3 + SINGLE, "logits")],
}
FORECASTS = [Values(P, None), Values(SINGLE, None), Values(9 * P, "logits"), Values(100 * P, None)]
TURNED = 9 * np.eye(3)[Y]
FIRST, SECOND = np.triu_indices(3, 1)
IMPOSSIBLE = np.where(np.eye(3)[Y] * (np.arange(len(Y)) == 50)[:, None] > 0, -np.inf, LOGITS)
POINTS = {
    "pairs of classes": [FilePoints("logits", TURNED[:, FIRST] - TURNED[:, SECOND], labels=Y)],
    "one class": [FilePoints("logits", LOGITS, labels=0 * Y)],
    "impossible labels": [FilePoints("logits", IMPOSSIBLE, labels=Y)],
}
TESTED = np.arange(len(Y))[None] >= 50
GOOD_POINTS = [
    FilePoints("logits", LOGITS, labels=Y),
    FilePoints("probabilities", IMPOSSIBLE, labels=Y),
    FilePoints("logits", IMPOSSIBLE, labels=Y, tested=TESTED),
]
TABLES = [(SUMS_ARE_NOT_ONE, CASES), (ARE_NO_ANSWERS, VALUES), (POINTS_ARE_NO_FORECAST, POINTS)]


@pytest.mark.parametrize(("rules", "cases"), TABLES)
def test_every_rule_has_a_case(rules, cases):
    assert list(cases) == [rule.name for rule in rules]
    assert all(cases.values())


@pytest.mark.parametrize(("rules", "cases"), TABLES)
def test_a_rule_holds_for_its_cases_and_says_what_settles_it(rules, cases):
    for name, examples in cases.items():
        for facts in examples:
            rule = first_that_holds(rules, facts)
            assert rule.name == name
            error = rule.error(facts, "values")
            assert rule.message_of(facts) and error.fixes and error.field == "values"


@pytest.mark.parametrize(
    ("rules", "good"), [(TABLES[1][0], FORECASTS), (TABLES[2][0], GOOD_POINTS)]
)
def test_no_rule_holds_for_a_forecast(rules, good):
    assert [first_that_holds(rules, facts) for facts in good] == [None] * len(good)


def test_a_point_that_no_method_can_fit_is_named_by_its_row():
    rule = first_that_holds(POINTS_ARE_NO_FORECAST, POINTS["impossible labels"][0])
    assert rule.error(POINTS["impossible labels"][0]).where.row == 50


def test_a_softmax_of_probabilities_needs_rows_that_show_it():
    twice = P - np.log(np.exp(P).sum(axis=1, keepdims=True))
    assert is_softmax_of_probabilities(twice)
    assert not is_softmax_of_probabilities(twice[: ENOUGH_ROWS - 1])
    assert not is_softmax_of_probabilities(np.log(P))
