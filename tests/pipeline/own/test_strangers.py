"""Files as strangers write them: the numbers that NumPy gives, or one line that says why not."""

from __future__ import annotations

import csv
import unicodedata

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from metrics import InputError
from pipeline.sources.file import file_logits

N = 60
rng = np.random.default_rng(0)
P = rng.dirichlet(np.ones(3), N)
Y = np.array([rng.choice(3, p=row) for row in P])
Y[:3] = range(3)
LOGITS, NAMES = np.log(P), np.array(["cat", "dog", "bird"])


def table(p=P, y=Y, **columns):
    return pd.DataFrame(p, columns=["p_0", "p_1", "p_2"]).assign(label=y, **columns)


def given(path, content, **options):
    """The probability of each point's own class, after the content went through a file."""
    if isinstance(content, dict):
        path = path.with_suffix(".npz")
        np.savez(path, **content)
    elif isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    elif path.suffix == ".parquet":
        content.to_parquet(path)
    else:
        content.to_csv(path, index=False)
    result = file_logits(path=path, **options)
    own = softmax(np.asarray(result.logits, float), axis=1)[np.arange(len(result.labels))]
    return own[np.arange(len(own)), result.labels], result.details["warnings"]


@pytest.mark.parametrize("second", [LOGITS, 100 * P], ids=["logits", "percentages"])
def test_rows_of_two_scales_are_refused(tmp_path, second):
    first, other = tmp_path / "a.csv", tmp_path / "b.csv"
    table().to_csv(other, index=False)
    with pytest.raises(InputError, match="some rows look like"):
        given(first, table(second), test=other)
    with pytest.raises(InputError, match="some rows look like"):
        given(first, pd.concat([table(), table(second)]))
    given(first, table(second), test=other, values="logits")


def test_one_column_of_two_scales_is_refused(tmp_path):
    own = pd.DataFrame({"score": P[:, 0], "label": Y > 0})
    own.assign(score=LOGITS[:, 0]).to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(InputError, match="some rows look like"):
        given(tmp_path / "a.csv", own, test=tmp_path / "b.csv")


@pytest.mark.parametrize("name", ["weight", "split", "cluster", "y", "labels"])
def test_what_is_ignored_has_no_purpose(tmp_path, name):
    odd = {name: -np.ones(N)}
    np.testing.assert_allclose(
        given(tmp_path / "a.csv", table().assign(**odd), ignore=f"{name},")[0],
        P[range(N), Y],
        rtol=1e-5,
    )
    arrays = {"logits": LOGITS, "label": Y, "probabilities": P, **odd}
    own, _ = given(tmp_path / "a", arrays, ignore=f"{name}, probabilities")
    np.testing.assert_allclose(own, P[range(N), Y], rtol=1e-5)


def test_one_of_two_files_may_have_what_is_ignored(tmp_path):
    table(id=1).to_csv(tmp_path / "b.csv", index=False)
    own, _ = given(tmp_path / "a.csv", table(), test=tmp_path / "b.csv", ignore="id")
    assert len(own) == 2 * N


@pytest.mark.parametrize("purpose", ["groups", "clusters"])
def test_a_point_without_a_group_or_cluster_is_refused(tmp_path, purpose):
    some = {purpose: np.where(np.arange(N) == 4, np.nan, np.arange(N) // 3)}
    with pytest.raises(InputError, match=f"{purpose}: none in row 4"):
        given(tmp_path / "a.csv", table(**some))


def test_labels_are_never_answers(tmp_path):
    with pytest.raises(InputError, match="no column of answers is called label"):
        given(tmp_path / "a.csv", table(), classes="p_0,p_1,label")


@pytest.mark.parametrize("name", ["p_3", "p_-1"])
def test_a_number_beside_complete_probabilities_is_in_question(tmp_path, name):
    with pytest.raises(InputError, match=f"{name}: no label has this name.* --ignore {name}"):
        given(tmp_path / "a.csv", table(**{name: P.max(axis=1)}))


def test_what_is_cut_to_the_top_is_no_rounding(tmp_path):
    p = rng.dirichlet(np.ones(20), N)
    y = p.argmax(axis=1)
    cut = np.where(p >= np.sort(p, axis=1)[:, [5]], p, 0)
    with pytest.raises(InputError, match="cut to the top K"):
        given(tmp_path / "a", {"probabilities": cut, "labels": y})
    two = np.array([[float(f"{value:.2g}") for value in row] for row in p])
    for rounded in (p.round(2), two, p.round(2).astype(np.float16), p.clip(0.01, 0.99)):
        _, notes = given(tmp_path / "a", {"probabilities": rounded, "labels": y})
        assert any("taken for rounding" in note for note in notes)


def test_sorted_rows_are_noted(tmp_path):
    content = {"probabilities": -np.sort(-P, axis=1), "labels": Y}
    assert "K largest values" in given(tmp_path / "a", content)[1][0]


@pytest.mark.parametrize(
    "ending, sign, decimal", [("csv", ";", ","), ("tsv", "\t", ","), ("csv", "|", ".")]
)
def test_decimal_commas_are_seen_after_whole_numbers(tmp_path, ending, sign, decimal):
    text = table().to_csv(sep=sign, decimal=decimal, index=False)
    names, *rows = text.splitlines()
    whole = sign.join(["1", "0", "0", "0"])
    own, _ = given(tmp_path / f"a.{ending}", "\n".join([names, whole, *rows]))
    np.testing.assert_allclose(own[1:], P[range(N), Y], rtol=1e-5)


def test_spaces_after_separators_do_not_count(tmp_path):
    text = table().to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC).replace(",", ", ")
    np.testing.assert_allclose(given(tmp_path / "a.csv", text)[0], P[range(N), Y], rtol=1e-5)


def test_names_may_hold_signs_that_separate_elsewhere(tmp_path):
    held = pd.DataFrame(P, columns=["p(a,b,c)", "p(d,e,f)", "p(g)"])
    held["label"] = np.array(["a,b,c", "d,e,f", "g"])[Y]
    own, _ = given(tmp_path / "a.csv", held.to_csv(sep=";", index=False))
    np.testing.assert_allclose(own, P[range(N), Y], rtol=1e-5)


@pytest.mark.parametrize("name", ["label", "groups"])
def test_a_column_of_lists_is_no_label_or_group(tmp_path, name):
    for held in (table(), pd.DataFrame({"logits": list(LOGITS), "label": Y})):
        with pytest.raises(InputError, match=f"column `{name}` holds lists"):
            given(tmp_path / "a.parquet", held.assign(**{name: [[0]] * N}))


def test_letters_are_the_same_in_both_codings(tmp_path):
    names = np.array(["thé", "café", "eau"])
    columns = [unicodedata.normalize("NFD", f"p_{name}") for name in names]
    own, _ = given(tmp_path / "a.csv", pd.DataFrame(P, columns=columns).assign(label=names[Y]))
    np.testing.assert_allclose(own, P[range(N), Y], rtol=1e-5)


def test_a_data_set_says_the_order_of_its_classes(tmp_path):
    datasets = pytest.importorskip("datasets")
    held = datasets.Dataset.from_dict({"logits": LOGITS.tolist(), "label": Y.tolist()})
    held = held.cast_column("label", datasets.ClassLabel(names=NAMES.tolist()))
    held.save_to_disk(str(tmp_path / "a"))
    result = file_logits(path=tmp_path / "a")
    assert result.details["class_names"] == NAMES.tolist() and not result.details["warnings"]
    np.testing.assert_array_equal(result.labels, Y)


def test_categories_of_parquet_are_names_as_any_text(tmp_path):
    order = np.argsort(NAMES)
    held = pd.DataFrame({"logits": list(LOGITS[:, order])})
    held["label"] = pd.Categorical.from_codes(Y, NAMES)
    own, notes = given(tmp_path / "a.parquet", held)
    np.testing.assert_allclose(own, P[range(N), Y], rtol=1e-5)
    assert "alphabetical" in notes[0]


@pytest.mark.parametrize("cell, told", [(None, "0 entries|in row 0"), ([None, 0.0, 1.0], "NaN")])
def test_a_list_that_is_not_complete_is_told_with_its_row(tmp_path, cell, told):
    held = pd.DataFrame({"logits": [cell, *list(LOGITS[1:])], "label": Y})
    with pytest.raises(InputError, match=told):
        given(tmp_path / "a.parquet", held)


def test_numbers_that_fit_as_places_are_not_taken_for_names(tmp_path):
    kept = Y > 0
    content = {"logits": 9 * np.eye(3)[Y[kept]], "labels": Y[kept], "class_names": [1, 2, 3]}
    with pytest.raises(InputError, match="counted from 0"):
        given(tmp_path / "a", content)


def test_a_sign_belongs_to_the_number(tmp_path):
    own, _ = given(tmp_path / "a.csv", pd.DataFrame({"p_-1": P[:, 0], "label": np.sign(Y - 0.5)}))
    np.testing.assert_allclose(own, np.where(Y > 0, 1 - P[:, 0], P[:, 0]), rtol=1e-4)


def test_the_arrays_of_an_npz_are_named_if_none_has_answers(tmp_path):
    with pytest.raises(InputError, match="it holds arr_0, arr_1"):
        given(tmp_path / "a", {"arr_0": LOGITS, "arr_1": Y})


def test_a_point_of_an_impossible_class_is_told_by_its_row_in_the_file(tmp_path):
    odd, split = LOGITS.copy(), np.where(np.arange(N) < 40, "calibration", "test")
    odd[50, Y[50]] = -np.inf
    with pytest.raises(InputError, match=r"1 points have a class .* row 50"):
        given(tmp_path / "a", {"logits": odd, "labels": Y})
    _, notes = given(tmp_path / "a", {"logits": odd, "labels": Y, "split": split})
    assert any("1 test points" in note for note in notes)


@pytest.mark.parametrize(
    ("values", "options", "count"),
    [
        (np.arange(N) // 6, {"ignore": "patient_id"}, 1),
        (np.arange(N) // 6, {"clusters": "patient_id"}, 0),
        (np.arange(N), {"ignore": "patient_id"}, 0),
    ],
    ids=["repeated", "named", "one row each"],
)
def test_repeated_names_of_patients_bring_one_line_of_advice(tmp_path, values, options, count):
    arrays = {"logits": LOGITS, "labels": Y, "patient_id": values}
    for content in (table(patient_id=values), arrays):
        _, notes = given(tmp_path / "a.csv", content, **options)
        assert sum("say --clusters patient_id" in note for note in notes) == count


@pytest.mark.parametrize("classes", [3, 4])
def test_scores_for_pairs_of_classes_are_refused(tmp_path, classes):
    y = np.arange(200) % classes
    scores = 2 * np.eye(classes)[y] + np.random.default_rng(0).normal(size=(200, classes))
    first, second = np.triu_indices(classes, 1)
    content = {"logits": scores[:, first] - scores[:, second], "labels": y}
    with pytest.raises(InputError, match='SVC: decision_function_shape="ovr"'):
        given(tmp_path / "a", content)


def test_percentages_are_told_by_any_name(tmp_path):
    with pytest.raises(InputError, match=r"sum to about 100 .*; divide each row by its sum"):
        given(tmp_path / "a", {"probabilities": 100 * P, "labels": Y})
