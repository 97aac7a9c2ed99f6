"""One column of answers for two classes: which class it is of, and what may stand beside it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from tests.pipeline.own.files import OWN, N, P, Y, own_of, read
from tests.refusals import refuses


@pytest.mark.parametrize(
    ("labels", "column", "values", "meant"),
    [
        (["well", "sick"], "p_sick", OWN, "probability of sick"),
        (["well", "sick"], "P(well)", 1 - OWN, "probability of well"),
        (["No", "Yes"], "probability_of_yes", OWN, "probability of Yes"),
        ([0, 1], "p", OWN, "probability of 1"),
        ([0, 1], "p_sick", OWN, "probability of 1"),
        ([0, 1], "risk", OWN, "probability of 1"),
        ([0, 1], "Probability_X", OWN, "probability of 1"),
        ([0, 1], "p_0", 1 - OWN, "probability of 0"),
        ([-1, 1], "p_-1", 1 - OWN, "probability of -1"),
        (["no", "yes"], "z", np.log(OWN / (1 - OWN)), "log-odds of yes"),
    ],
)
def test_one_column_is_of_the_class_that_it_names_or_of_the_second(
    tmp_path, labels, column, values, meant
):
    y = np.arange(N) % 2
    result = read(tmp_path / "a.csv", pd.DataFrame({column: values, "label": np.array(labels)[y]}))
    own, notes = own_of(result)
    expected = np.where(np.array(labels)[y] == max(labels, key=str), OWN, 1 - OWN)
    if labels == ["well", "sick"]:
        expected = 1 - expected
    np.testing.assert_allclose(own, expected, rtol=1e-4)
    assert f"the single column is taken for the {meant}" in notes


@pytest.mark.parametrize("name", ["date", "remark", "diagnosis_text"])
def test_text_beside_a_single_column_of_answers_is_left_out(tmp_path, name):
    risk, outcome = P[:, 1], 1 * (Y == 1)
    content = pd.DataFrame({"patient": np.arange(N), "risk": risk, "outcome": outcome})
    result = read(tmp_path / "a.csv", content.assign(**{name: "2024-01-01, none"}))
    np.testing.assert_allclose(softmax(result.logits, axis=1)[:, 1], risk, atol=1e-6)
    assert name in " ".join(result.details["warnings"])
    with refuses("columns", fix="--classes risk", number=name):  # numbers may be answers
        read(tmp_path / "a.csv", content.assign(**{name: np.arange(N) / 7}))
