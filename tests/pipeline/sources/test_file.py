"""A person's file: what is accepted, and the one line for what is not."""

import os

import numpy as np
import pytest

from metrics import InputError
from pipeline.sources.file import file_logits
from pipeline.sources.result import MissingResource

LOGITS = np.array([[2.0, 0.0, -1.0], [0.0, 1.0, 0.5]])
LABELS = np.array([0, 2])


def save(path, **arrays):
    np.savez(path, **arrays)
    return path


def softmax(z):
    p = np.exp(z.astype(np.float64) - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def test_logits_and_labels(tmp_path):
    result = file_logits(path=save(tmp_path / "a.npz", logits=LOGITS, labels=LABELS))
    assert (result.logits.dtype, result.labels.dtype) == (np.float32, np.int64)
    np.testing.assert_array_equal(result.logits, LOGITS)
    np.testing.assert_array_equal(result.labels, LABELS)
    assert result.details["origin"]["values"] == "logits"


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_probabilities_come_back_from_the_softmax(tmp_path, dtype):
    probabilities = softmax(LOGITS).astype(dtype)
    result = file_logits(
        path=save(tmp_path / "a.npz", probabilities=probabilities, labels=LABELS.astype(np.int32))
    )
    np.testing.assert_allclose(softmax(result.logits), probabilities, atol=1e-3)


def test_exact_zeros_and_ones(tmp_path):
    probabilities = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]])
    result = file_logits(path=save(tmp_path / "a.npz", probabilities=probabilities, labels=LABELS))
    assert np.isfinite(result.logits).all()
    np.testing.assert_allclose(softmax(result.logits), probabilities, atol=1e-11)


def test_probabilities_win_only_if_asked_for(tmp_path):
    path = save(tmp_path / "a.npz", logits=LOGITS, probabilities=softmax(LOGITS), labels=LABELS)
    assert file_logits(path=path).details["origin"]["values"] == "logits"
    chosen = file_logits(path=path, values="probabilities")
    assert chosen.details["origin"]["values"] == "probabilities"


@pytest.mark.parametrize("label", ["label", "labels", " Label"])
def test_csv_of_logits(tmp_path, label):
    (tmp_path / "a.csv").write_text(f"cat,{label},dog\n1.5,1,-2\n0,0,3\n")
    result = file_logits(path=tmp_path / "a.csv")
    np.testing.assert_array_equal(result.logits, [[1.5, -2], [0, 3]])
    np.testing.assert_array_equal(result.labels, [1, 0])
    assert result.details["origin"]["values"] == "logits"


def test_csv_of_probabilities_is_recognised_and_can_be_overruled(tmp_path):
    (tmp_path / "a.csv").write_text("label,p0,p1\n1,0.25,0.75\n0,1,0\n")
    result = file_logits(path=tmp_path / "a.csv")
    np.testing.assert_allclose(softmax(result.logits), [[0.25, 0.75], [1, 0]], atol=1e-7)
    as_logits = file_logits(path=tmp_path / "a.csv", values="logits")
    np.testing.assert_array_equal(as_logits.logits, [[0.25, 0.75], [1, 0]])


def test_probabilities_of_three_decimals_are_renormalised_with_a_note(tmp_path):
    (tmp_path / "a.csv").write_text("label,p0,p1,p2\n1,0.334,0.334,0.333\n0,0.333,0.333,0.333\n")
    result = file_logits(path=tmp_path / "a.csv")
    expected = [[0.334 / 1.001, 0.334 / 1.001, 0.333 / 1.001], [1 / 3] * 3]
    np.testing.assert_allclose(softmax(result.logits), expected, rtol=1e-6)
    note, rare = result.details["warnings"]
    assert "off by up to 0.001, taken for rounding; rows are renormalised" in note
    assert rare.startswith("no point's label is 2")


def test_what_looks_like_probabilities_is_not_taken_for_logits(tmp_path):
    (tmp_path / "rounded.csv").write_text("label,p0,p1,p2\n1,0.335,0.335,0.335\n0,1,0,0\n")
    rows = np.array([[0.25, 0.75], [1, 0]])
    misnamed = save(tmp_path / "misnamed.npz", logits=rows, labels=np.array([0, 1]))
    for path in (tmp_path / "rounded.csv", misnamed):
        with pytest.raises(InputError, match=r"look like probabilities.*--values logits") as caught:
            file_logits(path=path)
        assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)
        assert file_logits(path=path, values="logits").labels.shape == (2,)


NAN = LOGITS.copy()
NAN[1, 1] = np.nan
INFINITE = LOGITS.copy()
INFINITE[0, 0] = np.inf


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"logits": LOGITS}, ["labels", "logits"]),
        ({"labels": LABELS}, ["logits", "probabilities"]),
        ({"logits": NAN, "labels": LABELS}, ["logits", "row 1"]),
        ({"logits": INFINITE, "labels": LABELS}, ["logits", "row 0"]),
        ({"logits": LOGITS * 1e50, "labels": LABELS}, ["float32", "row 0"]),
        ({"logits": LOGITS * 1e300, "labels": LABELS}, ["logits", "2e+300 in row 0", "divide"]),
        ({"logits": LOGITS, "labels": LABELS + 1}, ["labels", "1 to 3", "0 to 2"]),
        ({"logits": LOGITS, "labels": LABELS - 1}, ["labels", "-1 in row 0"]),
        ({"logits": LOGITS, "labels": np.array([0, np.nan])}, ["labels", "NaN", "row 1"]),
        (
            {"logits": LOGITS, "labels": np.array(["cat", "dog"])},
            ["labels", "2 names (cat, dog)"],
        ),
        ({"logits": LOGITS, "labels": np.array([0])}, ["labels", "1 labels for 2 rows"]),
        ({"logits": LOGITS, "labels": np.array([0.5, 1])}, ["labels", "whole"]),
        ({"logits": LOGITS[:, :1], "labels": LABELS * 0}, ["logits", "like predicted classes"]),
        ({"logits": LOGITS[0], "labels": LABELS}, ["labels", "2 labels for 3 rows"]),
        ({"probabilities": softmax(LOGITS) / 2, "labels": LABELS}, ["probabilities", "sum"]),
        ({"probabilities": LOGITS, "labels": LABELS}, ["probabilities", "outside"]),
        ({"logits": np.array([["a", "b"]]), "labels": LABELS[:1]}, ["logits"]),
    ],
)
def test_bad_arrays_are_one_line_with_file_and_field(tmp_path, arrays, words):
    path = save(tmp_path / "bad.npz", **arrays)
    with pytest.raises(InputError) as caught:
        file_logits(path=path)
    line = str(caught.value)
    assert "\n" not in line
    assert all(word in line for word in ["bad.npz", *words]), line


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", ["column `label`", "a, b"]),
        ("label,a,b\n0,x,1\n", ["column `a`", "holds `x` in row 0"]),
        ("label,a,b\n0,1\n", ["column `b`", "nothing in row 0"]),
        ("a,b,label\n1,2,0\n\n  \n1,2\n", ["labels", "NaN", "row 1"]),
        ("label,a,b\n0,1,2\n1,2,\n", ["column `b`", "nothing in row 1"]),
        ("label,a,b\n0,1,2\n,1,2\n", ["labels", "NaN", "row 1"]),
        ("label,a,b\ncat,1,2\n", ["labels", "cat in row 0", "name the columns"]),
        ("label,a,b\n0,1,2,3,4\n1,1,1\n", ["not readable as CSV", "Length of header"]),
        ("", ["CSV"]),
        ("label,a,b\n", ["no rows"]),
    ],
)
def test_bad_csv_is_one_line(tmp_path, text, words):
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(InputError) as caught:
        file_logits(path=tmp_path / "bad.csv")
    assert "\n" not in str(caught.value).strip()
    assert all(word in str(caught.value) for word in ["bad.csv", *words]), str(caught.value)


def test_missing_file_and_unknown_values(tmp_path):
    with pytest.raises(MissingResource, match=r"none\.npz"):
        file_logits(path=tmp_path / "none.npz")
    with pytest.raises(InputError, match="choose one of auto"):
        file_logits(path=tmp_path / "none.npz", values="odds")


def test_a_folder_is_called_a_folder(tmp_path):
    with pytest.raises(InputError, match=f"{tmp_path.name}: this is a folder; give the path"):
        file_logits(path=tmp_path)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "x.npz")
    with pytest.raises(InputError, match=r"x\.npz: a device or a pipe; save it as a file"):
        file_logits(path=tmp_path / "x.npz")


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"logits": np.arange(12.0).reshape(3, 4), "labels": [0, 1, 2, 0]}, "save logits.T"),
        ({"logits": [0, 2, 1, 2], "labels": [0, 1, 2, 0]}, "like predicted classes"),
        ({"probabilities": [0, 1, 1, 0], "labels": [0, 1, 1, 1]}, "like predicted classes"),
        ({"probabilities": np.eye(3), "labels": [0, 1, 1]}, "like predicted classes"),
        ({"logits": LOGITS, "labels": np.eye(3)[:2]}, "labels.argmax(axis=1)"),
    ],
)
def test_shapes_that_are_no_forecast_are_told_before_the_numbers(tmp_path, arrays, words):
    path = save(tmp_path / "x.npz", **{name: np.array(a) for name, a in arrays.items()})
    with pytest.raises(InputError) as caught:
        file_logits(path=path)
    assert words in str(caught.value)


@pytest.mark.parametrize("decimals", [2, 3])
def test_probabilities_of_few_decimals_are_taken_with_a_note(tmp_path, decimals):
    p = np.random.default_rng(0).dirichlet(np.ones(20), size=50)
    labels = np.arange(50) % 20
    rounded = p.round(decimals)
    exact = rounded / rounded.sum(axis=1, keepdims=True)
    for values in (rounded, rounded.astype(np.float32)):
        found = file_logits(path=save(tmp_path / "x.npz", probabilities=values, labels=labels))
        np.testing.assert_allclose(softmax(found.logits), exact, atol=1e-6)
        assert f"rounded to {decimals} decimals" in found.details["warnings"][0]


def test_fewer_right_answers_than_by_guessing_are_told(tmp_path):
    labels = np.arange(60) % 3
    turned = 2.0 * np.eye(3)[(labels + 1) % 3] - 1
    notes = file_logits(path=save(tmp_path / "x.npz", logits=turned, labels=labels)).details
    assert "of 0.0 % of the points, guessing would of 33.3 %" in notes["warnings"][-1]
