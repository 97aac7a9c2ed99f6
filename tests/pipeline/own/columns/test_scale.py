"""Whether answers are logits or probabilities, also rounded ones."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from tests.pipeline.own.files import LOGITS, N, P, Y, own_of, read, table
from tests.refusals import refuses

TWENTY = np.random.default_rng(0).dirichlet(np.ones(20), N)


@pytest.mark.parametrize(
    ("p", "off"),
    [
        (TWENTY.round(2), "0.0"),
        (TWENTY.round(3), "0.00"),
        (TWENTY.round(4), "0.000"),
        (np.array([[float(f"{value:.2g}") for value in row] for row in TWENTY]), "0.0"),
        (TWENTY.round(2).astype(np.float16), "0.0"),
        (TWENTY.clip(0.01, 0.99), "0.0"),
    ],
)
def test_rounded_and_clipped_probabilities_are_renormalised_with_a_note(tmp_path, p, off):
    result = read(tmp_path / "a", {"probabilities": p, "labels": np.arange(N) % 20})
    p = p.astype(float)
    renormalised = softmax(result.logits.astype(float), axis=1)
    np.testing.assert_allclose(renormalised, p / p.sum(axis=1, keepdims=True), atol=1e-6)
    assert f"off by up to {off}" in result.details["warnings"][0]


@pytest.mark.parametrize("rows", [P, np.round(100 * P)])
def test_a_person_may_say_that_these_are_logits(tmp_path, rows):
    for content in ({"logits": rows, "labels": Y}, table(rows)):
        result = read(tmp_path / "a.csv", content, values="logits")
        np.testing.assert_allclose(result.logits, rows, rtol=1e-6)


@pytest.mark.parametrize(
    "scores", [1 / (1 + np.exp(-LOGITS - 2)), P, P**0.5, np.clip(LOGITS / 9 + 1, 0, 1)]
)
def test_logits_that_look_like_probabilities_are_noted(tmp_path, scores):
    result = read(tmp_path / "a.csv", table(scores), values="logits")
    assert result.details["origin"]["values"] == "logits"
    assert "sigmoid" in " ".join(result.details["warnings"])
    result = read(tmp_path / "a.csv", table(LOGITS), values="logits")
    assert "sigmoid" not in " ".join(result.details["warnings"])


@pytest.mark.parametrize(("few", "many"), [(P + 7, P), (P, LOGITS)])
def test_rows_of_another_kind_are_refused_with_the_first_of_them(tmp_path, few, many):
    rows = np.where(np.arange(N)[:, None] % 9 == 5, few, many)
    with refuses("logits", row=5):
        read(tmp_path / "a.csv", table(rows))


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("names", ["z_{}", "{}"])
def test_an_infinite_logit_in_a_column_gives_no_warning_of_numpy(tmp_path, names):
    logits = LOGITS.copy()
    logits[3, (Y[3] + 1) % 3] = -np.inf
    expected = softmax(logits, axis=1)[range(N), Y]
    columns = [names.format(number) for number in range(3)]
    result = read(tmp_path / "a.csv", table(logits, names=columns))
    np.testing.assert_allclose(own_of(result)[0], expected, rtol=1e-5)
