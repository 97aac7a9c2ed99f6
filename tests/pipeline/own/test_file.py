"""A person's file: which kinds are read, what is taken for what, and the one line for the rest."""

import gzip

import numpy as np
import pandas as pd
import pytest

from metrics import InputError
from pipeline.sources.file import file_logits
from pipeline.sources.result import MissingResource

LOGITS = np.array([[2.0, 0.0, -1.0], [0.0, 1.0, 0.5]])
LABELS = np.array([0, 2])
TEXT = "label,c0,c1\n0,1.5,2\n1,0,3\n"


def save(path, **arrays):
    np.savez(path, **arrays)
    return path


def refused(path, **options) -> str:
    with pytest.raises(InputError) as caught:
        file_logits(path=path, **options)
    line = str(caught.value)
    assert line.startswith(str(path)) and line.isprintable(), line
    return line


def softmax(z):
    p = np.exp(z.astype(np.float64) - z.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def test_logits_and_labels(tmp_path):
    result = file_logits(path=save(tmp_path / "a.npz", logits=LOGITS, labels=LABELS))
    assert (result.logits.dtype, result.labels.dtype) == (np.float32, np.int64)
    np.testing.assert_array_equal(result.logits, LOGITS)
    np.testing.assert_array_equal(result.labels, LABELS)
    assert result.details["origin"]["values"] == "logits"


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_probabilities_come_back_from_the_softmax(tmp_path, dtype):
    probabilities = softmax(LOGITS).astype(dtype)
    result = file_logits(path=save(tmp_path / "a.npz", probabilities=probabilities, labels=LABELS))
    np.testing.assert_allclose(softmax(result.logits), probabilities, atol=1e-3)


def test_a_file_with_logits_and_probabilities_needs_a_choice(tmp_path):
    p = softmax(LOGITS)
    path = save(tmp_path / "a.npz", logits=LOGITS, probabilities=p, labels=LABELS)
    assert "both `logits` and `probabilities`; choose: --values logits" in refused(path)
    for kind in ("logits", "probabilities"):
        assert file_logits(path=path, values=kind).details["origin"]["values"] == kind


def test_class_names_are_kept_and_give_labels_their_meaning(tmp_path):
    names = np.array(["emu", "cat", "élan"])
    path = save(tmp_path / "x.npz", logits=LOGITS, labels=names[LABELS], class_names=names)
    result = file_logits(path=path)
    assert result.details["class_names"] == names.tolist()
    assert result.labels.tolist() == LABELS.tolist()
    for bad in (["a", "b"], ["a", "a", "b"], ["a", "", "b"]):
        save(path, logits=LOGITS, labels=LABELS, class_names=np.array(bad))
        assert "class_names" in refused(path)


def test_groups_are_an_array_of_any_name(tmp_path):
    path = tmp_path / "x.npz"
    save(path, logits=LOGITS, labels=LABELS, groups=np.array([3, 4]))
    assert file_logits(path=path).groups.tolist() == ["3", "4"]
    save(path, logits=LOGITS, labels=LABELS, site=np.array(["a", "b"]))
    assert file_logits(path=path, groups="site").groups.tolist() == ["a", "b"]
    assert "nothing is called `sites` for groups" in refused(path, groups="sites")
    save(path, logits=LOGITS, labels=LABELS, groups=np.array(["a", "b", "c"]))
    assert "groups: shape [3]" in refused(path)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv_of_logits_as_other_programs_write_it(tmp_path, encoding, end):
    (tmp_path / "x.csv").write_bytes(TEXT.replace("\n", end).encode(encoding))
    result = file_logits(path=tmp_path / "x.csv")
    np.testing.assert_array_equal(result.logits, [[1.5, 2], [0, 3]])
    np.testing.assert_array_equal(result.labels, [0, 1])
    assert result.details["origin"]["values"] == "logits"


def test_csv_of_probabilities_is_recognised_and_can_be_overruled(tmp_path):
    (tmp_path / "a.csv").write_text("label,p0,p1\n1,0.25,0.75\n0,1,0\n")
    result = file_logits(path=tmp_path / "a.csv")
    np.testing.assert_allclose(softmax(result.logits), [[0.25, 0.75], [1, 0]], atol=1e-7)
    as_logits = file_logits(path=tmp_path / "a.csv", values="logits")
    np.testing.assert_array_equal(as_logits.logits, [[0.25, 0.75], [1, 0]])


@pytest.mark.parametrize(("decimals", "off"), [(2, "0.03"), (3, "0.003"), (4, "0.0003")])
def test_rounded_probabilities_are_renormalised_with_a_note(tmp_path, decimals, off):
    p = np.random.default_rng(0).dirichlet(np.ones(20), size=50).round(decimals)
    path = save(tmp_path / "x.npz", probabilities=p, labels=np.arange(50) % 20)
    result = file_logits(path=path)
    np.testing.assert_allclose(softmax(result.logits), p / p.sum(axis=1, keepdims=True), atol=1e-6)
    assert f"off by up to {off}, taken for rounding" in result.details["warnings"][0]


def test_what_looks_like_probabilities_is_not_taken_for_logits(tmp_path):
    rows = np.array([[0.25, 0.75], [1, 0]])
    path = save(tmp_path / "misnamed.npz", logits=rows, labels=np.array([0, 1]))
    line = refused(path)
    assert "look like probabilities" in line and "--values logits" in line
    assert file_logits(path=path, values="logits").labels.shape == (2,)


def test_fewer_right_answers_than_by_guessing_are_told(tmp_path):
    labels = np.arange(60) % 3
    turned = 2.0 * np.eye(3)[(labels + 1) % 3] - 1
    notes = file_logits(path=save(tmp_path / "x.npz", logits=turned, labels=labels)).details
    assert "of 0.0 % of the points, guessing would name 33.3 %" in notes["warnings"][-1]


NAN = LOGITS.copy()
NAN[1, 1] = np.nan


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"logits": LOGITS}, ["labels", "logits"]),
        ({"labels": LABELS}, ["logits", "probabilities"]),
        ({"logits": NAN, "labels": LABELS}, ["logits", "row 1"]),
        ({"logits": LOGITS * 1e50, "labels": LABELS}, ["too large for float32"]),
        ({"logits": LOGITS, "labels": LABELS + 1}, ["labels", "1 to 3", "0 to 2"]),
        ({"logits": LOGITS, "labels": np.array([0])}, ["labels", "1 labels for 2 rows"]),
        ({"logits": LOGITS, "labels": np.eye(3)[:2]}, ["labels", "argmax of one-hot rows"]),
        ({"logits": LABELS, "labels": LABELS}, ["like predicted classes"]),
        ({"probabilities": LABELS, "labels": LABELS}, ["like predicted classes"]),
        ({"logits": LOGITS, "labels": LABELS, "weight": np.ones(3)}, ["weight: ", "[3]"]),
        ({"probabilities": softmax(LOGITS) / 2, "labels": LABELS}, ["row 0 sums to 0.5", "top K?"]),
        ({"probabilities": LOGITS, "labels": LABELS}, ["probabilities", "outside"]),
    ],
)
def test_bad_arrays_are_one_line_with_file_and_field(tmp_path, arrays, words):
    line = refused(save(tmp_path / "bad.npz", **arrays))
    assert all(word in line for word in words), line


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b\n1,2\n", ["no `label`", "a, b"]),
        (
            "label,c0,c1\n0,x,1\n1,2,y\n",
            ["`c0` holds `x` in row 0, column `c1` holds `y` in row 1"],
        ),
        ("label,c0,c1\n0,1\n1,1,2\n", ["column `c1`", "nothing in row 0"]),
        ("label,c0,c1\n0,1,2\n,1,2\n1,1,2\n", ["labels: none in row 1"]),
        ("label,a,b\n", ["no rows"]),
        ("label,c0,c0\n0,1,2\n1,2,1\n", ["c0: more than one column of this name"]),
        ("sep=,\n" + TEXT, ["the first line is `sep=,`; remove this line"]),
        ('label,probs\n0,"[0.1, 0.9]"\n', ["holds lists as text; write JSON lines or parquet"]),
        (TEXT.encode("utf-16"), ["text in UTF-8"]),
        (gzip.compress(TEXT.encode(), mtime=0), ["text in UTF-8"]),
        (b"", ["not readable as csv"]),
    ],
)
def test_bad_csv_is_one_line(tmp_path, content, words):
    path = tmp_path / "bad.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    line = refused(path)
    assert all(word in line for word in words), line


def test_what_is_no_file_is_told(tmp_path):
    with pytest.raises(MissingResource, match=r"none\.npz"):
        file_logits(path=tmp_path / "none.npz")
    assert "this is a folder; give the path" in refused(tmp_path)
    with pytest.raises(InputError, match="choose one of auto"):
        file_logits(path=tmp_path / "none.npz", values="odds")


NAMES = np.array(["ant", "bee", "cat"])


def example(n: int = 12, seed: int = 0) -> dict[str, np.ndarray]:
    return {"logits": np.random.default_rng(seed).normal(size=(n, 3)), "labels": np.arange(n) % 3}


def table_of(arrays, **more) -> pd.DataFrame:
    named = dict(zip(NAMES, arrays["logits"].T))
    return pd.DataFrame({"label": NAMES[arrays["labels"]], **named, **more})


WORDS = ["calibration", "cal", "Validation", "val", "test", "TEST"] * 2


def test_a_split_says_which_points_test(tmp_path):
    np.savez(tmp_path / "x.npz", **example(), split=np.array(WORDS))
    expected = [[False, False, False, False, True, True] * 2]
    np.testing.assert_array_equal(file_logits(path=tmp_path / "x.npz").tested, expected)
    table_of(example(), split_1=WORDS, split_2=WORDS[::-1]).to_csv(tmp_path / "x.csv", index=False)
    found = file_logits(path=tmp_path / "x.csv")
    np.testing.assert_array_equal(found.tested, [expected[0], expected[0][::-1]])
    assert found.logits.shape == (12, 3)
    assert file_logits(path=tmp_path / "x.npz").tested.shape == (1, 12)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["cal"] * 12, "split: no row says `test`"),
        (["train", *WORDS[1:]], "split: `train` in row 0; say `calibration` or `test`"),
    ],
)
def test_a_split_without_one_side_or_of_other_words_is_refused(tmp_path, words, told):
    table_of(example(), split=words).to_csv(tmp_path / "x.csv", index=False)
    with pytest.raises(InputError, match=f"x.csv: {told}"):
        file_logits(path=tmp_path / "x.csv")


def test_weights_come_from_an_array_or_a_column(tmp_path):
    weights = np.arange(12) / 4
    np.savez(tmp_path / "x.npz", **example(), sample_weight=weights)
    table_of(example(), weight=weights).to_csv(tmp_path / "x.csv", index=False)
    for name in ("x.npz", "x.csv"):
        found = file_logits(path=tmp_path / name)
        np.testing.assert_array_equal(found.weights, weights)
        assert found.logits.shape == (12, 3)
    table_of(example()).to_csv(tmp_path / "test.csv", index=False)
    with pytest.raises(
        InputError, match=r"test\.csv: not the same columns or arrays as in .* \(weight\)"
    ):
        file_logits(path=tmp_path / "x.csv", test=tmp_path / "test.csv")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"weight": [-1.0, *[1] * 11]}, "weight: -1 in row 0; weights are finite and not negative"),
        ({"weight": [np.nan, *[1] * 11]}, "weight: nan in row 0"),
        ({"weight": [0.0] * 12}, "weight: all are zero"),
    ],
)
def test_weights_that_are_none_are_refused(tmp_path, change, told):
    table_of(example(), **change).to_csv(tmp_path / "x.csv", index=False)
    with pytest.raises(InputError, match=f"x.csv: {told}"):
        file_logits(path=tmp_path / "x.csv")


def test_a_second_file_tests_its_columns_in_any_order(tmp_path):
    first, second = example(), example(6, seed=1)
    table_of(first).to_csv(tmp_path / "cal.csv", index=False)
    turned = ["cat", "label", "ant", "bee"]
    table_of(second)[turned].to_csv(tmp_path / "test.csv", index=False)
    found = file_logits(path=tmp_path / "cal.csv", test=tmp_path / "test.csv")
    np.testing.assert_allclose(found.logits[12:], second["logits"], rtol=1e-6)
    np.testing.assert_array_equal(found.labels[12:], second["labels"])
    np.testing.assert_array_equal(found.tested, [[False] * 12 + [True] * 6])


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"logits": np.zeros((6, 4)), "class_names": np.array(list("abcd"))},
            "logits: not the same number of columns as in",
        ),
        ({"class_names": np.array(["ant", "bee", "cow"])}, "not the same class names as in"),
        ({"groups": np.array(["a", "b"] * 3)}, "not the same columns or arrays as in"),
    ],
)
def test_a_second_file_of_another_kind_is_refused(tmp_path, change, told):
    np.savez(tmp_path / "cal.npz", **example(), class_names=NAMES)
    second = {**example(6), "class_names": NAMES, **change}
    np.savez(tmp_path / "test.npz", **second)
    with pytest.raises(InputError, match=told) as caught:
        file_logits(path=tmp_path / "cal.npz", test=tmp_path / "test.npz")
    assert "test.npz" in str(caught.value) and str(caught.value).isprintable()
