"""Files that could mean two things, or nothing: one line with the file, the field and the fix."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from tests.pipeline.own.files import LOGITS, NAMES, N, P, Y, read, table, written
from tests.refusals import check_line, refuses
from utility_calibration.metrics.errors import InputError, MissingResource
from utility_calibration.pipeline.own.reading import read as reading
from utility_calibration.pipeline.own.reading import table_memory
from utility_calibration.pipeline.own.words.forms import shards_of
from utility_calibration.pipeline.sources.file import file_logits

TEXT = "label,c0,c1\n0,1.5,2\n1,0,3\n"
WRONG = np.where(np.arange(N)[:, None] == 1, np.nan, LOGITS)
IMPOSSIBLE = LOGITS.copy()
IMPOSSIBLE[50, Y[50]] = -np.inf
SOME = np.where(np.arange(N) == 4, np.nan, np.arange(N) // 3)
BOTH = {"logits": LOGITS, "probabilities": P, "labels": Y}
LISTS = pd.DataFrame({"logits": list(LOGITS), "label": Y})
OBJECTS = [[{"label": "a", "score": 0.5}, {"label": name, "score": 0.5}] for name in "ab"]
UNKNOWN = [[{"name": name, "value": 0.5} for name in "ab"]] * 2
EMPTY = table().convert_dtypes()
EMPTY.loc[1, "p_1"] = pd.NA
RUNS = table(4 * np.c_[Y, Y] + LOGITS[:, [0, 0]] + P[:, :2], 1 * (Y > 0), ["run0", "run1"])
TURNED = 9 * np.eye(3)[Y]
NOT_ONE = P**0.5, P.round(1)
"""Outputs of sigmoids, and of one decimal."""
PARTS = {
    "the two largest": np.where(np.median(P, axis=1, keepdims=True) > P, 0, P),
    "the largest": np.where(P.max(axis=1, keepdims=True) > P, 0, P),
    "cumulative": P.cumsum(axis=1),
    "survival": 1 - P.cumsum(axis=1) + P,
    "the largest in order": np.sort(P, axis=1)[:, ::-1] * 0.9,
}
"""What rows may be of which a share is no forecast."""
FIRST, SECOND = np.triu_indices(3, 1)


def arrays(logits=LOGITS, labels=Y, **more):
    return {"logits": logits, "labels": labels, **more}


def worst(rows):
    """The row whose sum is the furthest from one."""
    return int(np.abs(rows.sum(axis=1) - 1).argmax())


def check(path, content, field="", row=None, column="", fix="", number="", **options):
    """The file is refused by these facts, with a fix and its name."""
    path = written(path, content)
    with refuses(field, row, column, fix or " ", number or str(path)):
        file_logits(path=path, **options)


UNCLEAR = [
    ({"logits": LOGITS}, "labels", None, "--labels NAME"),
    ({"arr_0": LOGITS, "labels": Y}, "logits", None, "--logits NAME"),
    (BOTH, "logits", None, "--logits logits"),
    (arrays(logit=LOGITS), "logits", None, "--logits logit"),
    (arrays(LOGITS > 0), "logits", None, "numbers"),
    (arrays(np.zeros(N, [("ant", "f8"), ("bee", "f8")])), "logits", None, "numbers"),
    (arrays(WRONG), "logits", 1, ""),
    (arrays(-LOGITS * 1e50), "logits", None, "divide"),
    (arrays(IMPOSSIBLE), "labels", 50, "give probabilities"),
    (arrays(P), "logits", None, "--values logits"),
    (arrays(Y, Y > 0), "logits", None, "predict_proba"),
    ({"probabilities": Y, "labels": Y > 0}, "probabilities", None, "predict_proba"),
    ({"probabilities": LOGITS, "labels": Y}, "probabilities", None, ""),
    ({"probabilities": 100 * P, "labels": Y}, "probabilities", None, "divide"),
    (arrays(labels=Y[:1]), "labels", None, "one per row"),
    (arrays(labels=Y[:, None]), "labels", None, "labels[:, 0]"),
    (arrays(labels=np.eye(3)[Y]), "labels", None, "argmax"),
    (arrays(labels=np.c_[Y > 0, Y > 1, Y > 2] * 1), "labels", None, "in its own file"),
    (arrays(labels=1.5 * (Y % 2)), "labels", 1, "class numbers"),
    (arrays(labels=NAMES[Y]), "labels", None, "class_names"),
    (arrays(labels=np.array(["2", "9", "10"])[Y]), "labels", None, "model.classes_"),
    (arrays(labels=NAMES[Y], class_names=["ant", "bee", "cow"]), "labels", 2, "correct"),
    (arrays(class_names=["1", "2", "3"]), "labels", 0, "correct"),
    (arrays(labels=np.where(Y, NAMES[Y], "a\nb")), "labels", 0, "rename"),
    (arrays(np.eye(4)[Y], Y + 1), "labels", None, "which column is which"),
    (arrays(TURNED[Y > 0], Y[Y > 0], class_names=[1, 2, 3]), "labels", None, "class_names["),
    (arrays(labels=np.where(Y == 2, -100, Y)), "labels", 2, "--ignore-label=-100"),
    (arrays(labels=np.where(Y == 0, 255, Y)), "labels", 0, "--ignore-label 255"),
    (arrays(9 * np.eye(4)[Y], np.where(Y, Y, -1)), "labels", 0, "--ignore-label=-1"),
    (arrays(labels=np.where(np.arange(N) % 9 == 8, 255, Y - 1)), "labels", 0, "--ignore-label 255"),
    (arrays(labels=np.array(["000", "001", "255"])[Y]), "labels", 2, "--ignore-label 255"),
    (arrays(9 * np.eye(5)[Y + 1]), "labels", None, "which column is which"),
    (arrays(TURNED, np.array([0, 1, 3])[Y]), "labels", 2, "--classes 0,1,3"),
    (arrays(TURNED - 1, np.array([3, 1, 2])[Y]), "labels", 0, "--ignore-label 3"),
    (arrays(class_names=["a", "b"]), "class_names", None, "[3]"),
    (arrays(class_names=["a", "a", "b"]), "class_names", None, "its own"),
    (arrays(class_names=["a", "", "b"]), "class_names", 1, "complete"),
    (arrays(groups=np.array(["a", "b", "c"])), "groups", None, "[60]"),
    (table(groups=SOME), "groups", 4, "complete"),
    (table(clusters=SOME), "clusters", 4, "complete"),
    (arrays(sample_weights=-np.ones(N)), "weight", 0, ""),
    (table(weight=[np.nan, *[1] * (N - 1)]), "weight", 0, ""),
    (table(weight=0.0), "weight", None, ""),
    (table(split="cal"), "split", None, "mark"),
    (table(split="fit"), "split", 0, "`calibration` or `test`"),
    (table(labels=Y), "labels", None, "--labels label"),
    (table(gold=Y).rename(columns={"label": "target"}), "labels", None, "--labels gold"),
    (table(y=NAMES[Y], names=["ant", "bee", "cow"]), "labels", 2, "--ignore-label"),
    (table(names=NAMES), "columns", None, "in the order of the labels: --classes"),
    (table(LOGITS, group=Y), "columns", None, "--groups NAME"),
    (table(LOGITS, p_3=P.max(axis=1)), "columns", None, "--classes 'p_*'"),
    (table(LOGITS, p_3=1.5), "columns", None, "--classes 'p_*'"),
    (table(TURNED + LOGITS, NAMES[Y], NAMES, id=np.arange(N)), "columns", None, "--ignore id"),
    (table(LOGITS, **{"p_-1": 0.5}), "columns", None, "--ignore NAME"),
    (RUNS, "columns", None, "--ignore run0"),
    (table(np.round(255 * P)), "logits", None, "divide each row by its sum"),
    *((table(rows), "", worst(rows), "divide each row by its sum") for rows in NOT_ONE),
    *(
        ({"probabilities": rows, "labels": Y}, "", worst(rows), "divide each row by its sum")
        for rows in NOT_ONE
    ),
    (pd.concat([table(), table(LOGITS)]), "logits", None, "probabilities of all"),
    (arrays(TURNED[:, FIRST] - TURNED[:, SECOND]), "logits", None, "decision_function_shape"),
    ("a,b\n1,2\n", "labels", None, "first line"),
    ("label,c0,c1\n0,x,1\n1,2,y\n", "", 0, "--ignore"),
    ("label,c0,c1\n0,1\n1,1,2\n", "", 0, "-inf or the probability 0"),
    ("label,c0,c1\n0,1,2\n,1,2\n1,1,2\n", "labels", 1, "complete"),
    ("label,a,b\n", "", None, "line of names"),
    ("label,c0\n0,1,2\n1,2,1\n", "", 0, "name each column"),
    ("label,c0,c1\n0,1,2\n  \n\n1,2,1,5\n", "", 1, "name each column"),
    ('label,c0,c1\n0,1,2\n1,"2,1\n0,1,2\n', "", 1, "close"),
    ('label,"c0,c1\n0,1,2\n1,2,1\n', "", None, "close"),
    ('label,c0,c1\n0,1,2,\n"1"x,2,1\n1,2,1,5\n', "", 2, "name each column"),
    (f'label,c0,n\n0,1,"{"n" * 200_000}"\n1,2,n,5\n', "", 1, "name each column"),
    ("label,c0,c0\n0,1,2\n1,2,1\n", "columns", None, "rename"),
    ("sep=,\n" + TEXT, "", None, "remove this line"),
    ('label,probs\n0,"[0.1, 0.9]"\n', "", None, "JSON lines"),
    (TEXT.encode("utf-16"), "", None, "export"),
    (gzip.compress(TEXT.encode(), mtime=0), "", None, "export"),
    (b"", "", None, "export"),
]
"""Contents of a file, with the field and row of its refusal, and a word of one of the fixes."""


@pytest.mark.parametrize(("content", "field", "row", "fix"), UNCLEAR)
def test_what_is_unclear_is_one_line_with_file_field_and_fix(tmp_path, content, field, row, fix):
    check(tmp_path / "a.csv", content, field, row, fix=fix)


@pytest.mark.parametrize("kind", PARTS)
@pytest.mark.parametrize("is_array", [False, True])
def test_rows_that_are_no_forecast_are_never_to_be_divided_by_their_sum(tmp_path, kind, is_array):
    rows = PARTS[kind]
    content = {"probabilities": rows, "labels": Y} if is_array else table(rows)
    with pytest.raises(InputError) as caught:
        file_logits(path=written(tmp_path / "a.csv", content))
    assert caught.value.where.row == worst(rows)
    assert caught.value.fixes and not any("divide" in fix for fix in caught.value.fixes)


@pytest.mark.parametrize("form", ["{}", "p_{}", "{} of a"])
@pytest.mark.parametrize("more", ["q_{}", "logit {}", "hot_{}", None])
def test_each_option_that_is_advised_for_many_classes_settles_it(tmp_path, form, more):
    p = np.random.default_rng(0).dirichlet(np.ones(50), 500)
    y = p[:, : 49 if more is None else 50].argmax(axis=1)  # alone, the last class has no point
    frame = pd.DataFrame(np.log(p), columns=[form.format(k) for k in range(50)])
    other = np.eye(50)[y] if more == "hot_{}" else p  # a label in another form is no answer
    for k in range(50) if more is not None else ():
        frame[more.format(k)] = other[:, k]
    path = written(tmp_path / "a.csv", frame.assign(label=y))
    with pytest.raises(InputError) as caught:
        file_logits(path=path)
    check_line(str(caught.value), "--")
    for fix in caught.value.fixes:
        option, text = fix.split("--")[1].replace("'", "").split(" ", 1)
        got = softmax(file_logits(path=path, **{option: text}).logits, axis=1)
        np.testing.assert_allclose(got, p, atol=1e-6)


@pytest.mark.parametrize(
    ("content", "row", "column", "fix"),
    [
        (EMPTY, 1, "p_1", "probability 0"),
        (LISTS.assign(label=[[0]] * N), None, "label", "one entry per row"),
        (table(groups=[[0]] * N), None, "groups", "one entry per row"),
        (LISTS.assign(class_names=list(LOGITS)), 1, "class_names", "same list"),
        (LISTS.assign(class_names="ant"), 0, "class_names", "same list"),
        (LISTS.assign(logits=[None, *LOGITS[1:]]), 0, "logits", "leave this case out"),
        (LISTS.assign(logits=[[None, 0.0, 1.0], *LOGITS[1:]]), 0, "logits", "-inf"),
        (pd.DataFrame({"scores": OBJECTS, "label": ["a", "b"]}), 0, "scores", "one entry"),
        (pd.DataFrame({"logits": UNKNOWN, "label": ["a", "b"]}), None, "logits", "{label, score}"),
        (pd.DataFrame({"x": UNKNOWN, "label": ["a", "b"]}), None, "", "--logits x"),
    ],
)
def test_cells_that_are_empty_or_lists_are_told(tmp_path, content, row, column, fix):
    check(tmp_path / "a.parquet", content, row=row, column=column, fix=fix)


@pytest.mark.parametrize(
    ("name", "content", "fix"),
    [
        ("x.pt", b"PK\x03\x04", "numpy.savez"),
        ("x.xlsx", b"PK\x03\x04", "CSV UTF-8"),
        ("x.json", b"[]", "lines=True"),
        ("x.json", b'{"label": 0, "risk": 0.5}', "name it my.jsonl"),
        ("x.txt", b"label,p_0,p_1", "give npz, CSV"),
        ("x.csv.zip", b"PK\x03\x04", "gzip"),
        ("x.npy", b"\x93NUMPY", "save labels, too: numpy.savez"),
        ("x.parquet", b"PAR1PAR1", "export"),
        ("x.jsonl", b'[{"label": 0, "a": 1}]', "one object per line"),
        ("x.jsonl", b'{"label": 0, "a": 1, "a": 2}', "rename"),
        ("x.jsonl", b'{"label": {"a": 1}, "a": 1}', "one entry per row"),
        ("x.jsonl", b'{"label": 0, "probs": {"0": "x"}}', "one per class"),
        ("x.jsonl", b'{"label": 0, "probs": [1]}\n{"label": 1, "probs": {"a": 1}}', "one form"),
    ],
)
def test_what_is_not_read_is_refused_with_the_fix_that_is_right_for_it(
    tmp_path, name, content, fix
):
    check(tmp_path / name, content, fix=fix)


@pytest.mark.parametrize("line", ['{"label": 1', '{"label": 0 "a": 1}\n{}', "7", "[" * 9999])
def test_a_line_that_is_no_object_of_json_is_told_by_its_row(tmp_path, line):
    check(tmp_path / "x.jsonl", f'{{"label": 0}}\n\n{line}'.encode(), row=1, fix="one object")


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"groups": "town"}, "--groups"),
        ({"labels": "town"}, "--labels"),
        ({"classes": "p_0,p_1,label"}, "--classes"),
        ({"ignore": "idd"}, "--ignore"),
        ({"classes": "p_0"}, ""),
        ({"values": "odds"}, "values"),
    ],
)
def test_options_that_name_nothing_are_told(tmp_path, options, field):
    with refuses(field, fix=" "):
        file_logits(path=written(tmp_path / "a.csv", table()), **options)


def test_what_is_no_file_is_told(tmp_path):
    with pytest.raises(MissingResource, match=r"none\.npz"):
        file_logits(path=tmp_path / "none.npz")
    with refuses(fix="give the path"):
        file_logits(path=tmp_path)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (table(weight=1.0), table()),
        (arrays(), arrays(groups=NAMES[Y])),
        (arrays(class_names=NAMES), arrays(class_names=["ant", "bee", "cow"])),
        (arrays(), arrays(np.zeros((N, 4)))),
        (table(LOGITS), table()),
        (table(LOGITS[:, [0]], Y > 0, ["score"]), table(P[:, [0]], Y > 0, ["score"])),
    ],
)
def test_a_second_file_of_another_kind_is_refused(tmp_path, first, second):
    check(tmp_path / "a.csv", first, fix="give", test=written(tmp_path / "b.csv", second))


@pytest.mark.parametrize(
    ("name", "content", "number"),
    [
        ("a.csv", "label,c0\n" + "x" * 2000 + ",1\ny,2\n", "2,000 letters"),
        ("a.csv.gz", gzip.compress(b"label,0,1\n" + b"0,1,2\n" * 50, mtime=0), "2,000"),
        ("a.jsonl", b'{"label":0,"a":1,"b":2}\n' * 50, "2,000"),
        ("a.parquet", table(), "2,000"),
        ("a.parquet", table()[["label"]].astype(str), "3,840"),
        ("a", arrays(groups=np.full(5 * N, "x" * 200)), "(60,)"),
        ("a", arrays(groups=np.full(N, "x" * 2000)), "480,000"),
    ],
)
def test_what_would_take_much_memory_is_refused_before_it_is_read(
    tmp_path, monkeypatch, name, content, number
):
    monkeypatch.setattr(table_memory, "LARGEST_TABLE", 2000)
    monkeypatch.setattr(reading, "LARGE", 1000)
    check(tmp_path / name, content, number=number)


def test_links_to_no_file_in_a_folder_are_all_named(tmp_path):
    written(tmp_path / "a.csv", table())
    for name in ("b.csv", "c.csv"):
        (tmp_path / name).symlink_to(tmp_path / "none.csv")
    for shards in (tmp_path, tmp_path / "*.csv"):
        with refuses(fix="remove", number="c.csv"):
            shards_of(shards)


@pytest.mark.parametrize("more", [{}, {"class_names": NAMES}, {"split": np.array([], "U5")}])
def test_arrays_without_a_point_are_no_training_points(tmp_path, more):
    with refuses(fix="at least one case", number="no rows"):
        read(tmp_path / "a", arrays(LOGITS[:0], Y[:0], **more))
