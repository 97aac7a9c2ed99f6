"""Rows that list candidates by name: each class has its own mass, whatever the form or order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from tests.pipeline.own.files import LOGITS, NAMES, OWN, N, P, Y, own_of, read
from tests.refusals import refuses
from utility_calibration.pipeline.own.rows.entries import word_of

LABELS = NAMES[Y]
ORDERS = np.argsort(-P, axis=1)
CHOSEN = {"classes": "ant,bee,cat"}
REST = "the"  # a word that is no class


def rows_of(make) -> list[Any]:
    """What `make` writes of each row: words and logarithms, the largest first."""
    shares = np.log(0.9) + np.log(P)
    words = [
        [(str(NAMES[k]), float(row[k])) for k in order] + [(REST, float(np.log(0.1)))]
        for order, row in zip(ORDERS, shares, strict=True)
    ]
    return list(map(make, words))


def tokens(pairs):
    return [{"token": word, "logprob": number} for word, number in pairs]


def spaced(pairs):
    """Each word three times, as tokenizers write it with a space or a line end."""
    forms = [(" {}", 0.5), ("{}\n", 0.3), ("Ġ{}", 0.2)]
    split = [(form.format(w), z + np.log(part)) for w, z in pairs for form, part in forms]
    return tokens(split)


FORMS = {
    "tokens": tokens,
    "spaced": spaced,
    "labels": lambda pairs: [{"label": w, "score": np.exp(z)} for w, z in pairs],
    "object": lambda pairs: dict(pairs),
    "legacy": lambda pairs: [{f" {word}": z for word, z in pairs}],
    "completion": lambda pairs: {"tokens": ["cat"], "top_logprobs": [dict(pairs)]},
    "vllm": lambda pairs: {word: {"logprob": z, "rank": 1} for word, z in pairs},
    "numbered": lambda pairs: [
        {str(k): {"logprob": z, "decoded_token": f" {w}"} for k, (w, z) in enumerate(pairs)}
    ],
    "chat": lambda pairs: {
        "content": [{"token": "cat", "logprob": -1.0, "top_logprobs": tokens(pairs)}]
    },
}


def table_of(form: str, **columns: Any) -> pd.DataFrame:
    name = "scores" if form == "labels" else "logprobs"
    return pd.DataFrame({name: rows_of(FORMS[form]), "label": LABELS, **columns})


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("classes", ["ant,bee,cat", "cat,ant,bee"])
def test_the_classes_are_chosen_by_name_and_the_share_left_out_is_told(tmp_path, form, classes):
    result = read(tmp_path / "a.jsonl", table_of(form), classes=classes)
    own, notes = own_of(result)
    np.testing.assert_allclose(own, OWN, rtol=1e-4)
    assert result.details["class_names"] == classes.split(",")
    assert any("10 % of the mass" in note for note in notes)


@pytest.mark.parametrize("form", ["tokens", "spaced", "vllm", "chat"])
def test_words_that_are_no_label_are_refused_with_the_classes_to_name(tmp_path, form):
    with refuses(fix="--classes ant,bee,cat", number=REST):
        read(tmp_path / "a.jsonl", table_of(form))


def test_names_beside_numbers_have_no_order(tmp_path):
    scores = [[{"label": NAMES[k], "score": row[k]} for k in np.argsort(-row)] for row in P]
    table = pd.DataFrame({"scores": scores, "label": Y})
    with refuses("label", fix="--classes"):
        read(tmp_path / "a.jsonl", table)
    np.testing.assert_allclose(
        own_of(read(tmp_path / "a.jsonl", table, **CHOSEN))[0], OWN, rtol=1e-4
    )


@pytest.mark.parametrize("kind", ["token", "label"])
def test_a_class_that_is_not_listed_gets_what_the_rest_leaves(tmp_path, kind):
    """The two largest of three classes, so that the third has the rest."""
    number = "logprob" if kind == "token" else "score"
    values = LOGITS if kind == "token" else P
    cells = [
        [{kind: NAMES[k], number: row[k]} for k in order[:2]]
        for order, row in zip(ORDERS, values, strict=True)
    ]
    name = "logprobs" if kind == "token" else "scores"
    result = read(tmp_path / "a.jsonl", pd.DataFrame({name: cells, "label": LABELS}))
    own, notes = own_of(result)
    np.testing.assert_allclose(own, OWN, rtol=1e-4)
    assert any(f"{N} cases do not list all 3 classes" in note for note in notes)


def test_a_missing_class_gets_no_more_than_the_smallest_listed_and_none_is_a_tie(tmp_path):
    cells = [[{"token": "ant", "logprob": np.log(0.6)}, {"token": "the", "logprob": np.log(0.1)}]]
    cells += [[{"token": "the", "logprob": np.log(0.5)}]] * 9
    table = pd.DataFrame({"logprobs": cells, "label": [*NAMES, *LABELS[:7]]})
    result = read(tmp_path / "a.jsonl", table, **CHOSEN)
    p = softmax(result.logits.astype(float), axis=1)
    np.testing.assert_allclose(p[0], [0.75, 0.125, 0.125], rtol=1e-5)
    np.testing.assert_allclose(p[1:], 1 / 3, rtol=1e-5)
    assert any("9 cases list no class" in note for note in result.details["warnings"])


def test_zero_shot_output_goes_by_its_names(tmp_path):
    cells = {
        "labels": [list(NAMES[order]) for order in ORDERS],
        "scores": [list(row[order]) for order, row in zip(ORDERS, P, strict=True)],
    }
    for options in ({}, CHOSEN, {"labels": "label", "probabilities": "scores"}):
        result = read(tmp_path / "a.jsonl", pd.DataFrame({**cells, "label": LABELS}), **options)
        np.testing.assert_allclose(own_of(result)[0], OWN, rtol=1e-4)
        assert not result.details["warnings"]
    cells["labels"][3] = ["ant"]
    with refuses(row=3, column="scores"):
        read(tmp_path / "a.jsonl", pd.DataFrame({**cells, "label": LABELS}))


def test_several_positions_are_refused(tmp_path):
    table = pd.DataFrame(
        {"top_logprobs": [[{"ant": -1.0}, {"bee": -1.0}]] * 3, "label": LABELS[:3]}
    )
    with refuses(row=0, column="top_logprobs", fix="answer stands"):
        read(tmp_path / "a.jsonl", table)


@pytest.mark.parametrize("token", [" A", "A\n", "ĠA", "▁A", "\tA "])
def test_a_word_is_a_token_without_spaces(token):
    assert word_of(token) == "A"
