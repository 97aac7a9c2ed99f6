"""Every rule on matrices that are no forecast has its case, and forecasts break none."""

import numpy as np
import pytest

from tests.pipeline.own.files import P
from utility_calibration.pipeline.own.rules import (
    ENOUGH_ROWS,
    SUMS_ARE_NOT_ONE,
    first_that_holds,
    is_softmax_of_probabilities,
)

LARGEST = P.max(axis=1, keepdims=True)
SMALLEST = P.min(axis=1, keepdims=True)
SHARE = np.linspace(0.5, 1, len(P))[:, None]
CASES = {
    "transposed": [P[:3].T / P[:3].sum(axis=1), P / P.sum(axis=0)],
    "cumulative": [P.cumsum(axis=1), P[:, ::-1].cumsum(axis=1)[:, ::-1], P.cumsum(axis=1).round(2)],
    "one value per row": [np.where(P == LARGEST, P, 0), np.where(P == LARGEST, 0.9, 0)],
    "cut off": [np.where(P == SMALLEST, 0, P), np.where((P < 0.2) & (P < LARGEST), 0, P)],
    "in order": [P.cumsum(axis=1) * SHARE, 0.9 * np.sort(P, axis=1)[:, ::-1]],
    "a class lacks": [0.8 * P, P * SHARE],
    "scores of each class by itself": [P**0.5, P.round(1), P**0.9],
}


def test_every_rule_has_a_case():
    assert list(CASES) == [rule.name for rule in SUMS_ARE_NOT_ONE]


@pytest.mark.parametrize("name", CASES)
def test_a_rule_holds_for_its_cases(name):
    for matrix in CASES[name]:
        assert first_that_holds(SUMS_ARE_NOT_ONE, matrix).name == name


def test_a_softmax_of_probabilities_needs_rows_that_show_it():
    twice = P - np.log(np.exp(P).sum(axis=1, keepdims=True))
    assert is_softmax_of_probabilities(twice)
    assert not is_softmax_of_probabilities(twice[: ENOUGH_ROWS - 1])
    assert not is_softmax_of_probabilities(np.log(P))
