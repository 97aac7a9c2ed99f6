"""Files that could mean two things, or nothing: one line with the file, the field and the fix."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest

from tests.pipeline.own.files import LOGITS, NAMES, N, P, Y, table, written
from utility_calibration.metrics import InputError
from utility_calibration.metrics.errors import MissingResource
from utility_calibration.pipeline.own import read as reading
from utility_calibration.pipeline.sources.file import file_logits

TEXT = "label,c0,c1\n0,1.5,2\n1,0,3\n"
WRONG = LOGITS.copy()
WRONG[1, 1] = np.nan
IMPOSSIBLE = LOGITS.copy()
IMPOSSIBLE[50, Y[50]] = -np.inf
SOME = np.where(np.arange(N) == 4, np.nan, np.arange(N) // 3)
BOTH = {"logits": LOGITS, "probabilities": P, "labels": Y}
LISTS = pd.DataFrame({"logits": list(LOGITS), "label": Y})
EMPTY = table().convert_dtypes()
EMPTY.loc[1, "p_1"] = pd.NA
RUNS = table(4 * np.c_[Y, Y] + LOGITS[:, [0, 0]] + P[:, :2], Y > 0, ["run0", "run1"])
RUNS["label"] = RUNS["label"].astype(int)
TURNED = 9 * np.eye(3)[Y]


def arrays(logits=LOGITS, labels=Y, **more):
    return {"logits": logits, "labels": labels, **more}


def refused(path, content, **options) -> str:
    path = written(path, content)
    with pytest.raises(InputError) as caught:
        file_logits(path=path, **options)
    line = str(caught.value)
    assert line.startswith(str(path)) and line.isprintable(), line
    return line


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"logits": LOGITS}, "no `label` or `labels` (there are logits)"),
        ({"labels": Y}, "no array `logits` or `probabilities`"),
        ({"arr_0": LOGITS, "arr_1": Y}, "it holds arr_0, arr_1"),
        (BOTH, "both `logits` and `probabilities`; choose: --values logits"),
        (arrays(logit=LOGITS), "both `logits` and `logit` hold logits; leave one out: --ignore"),
        (arrays(LOGITS > 0), "logits: of bool; give numbers"),
        (arrays(np.zeros(N, [("ant", "f8"), ("bee", "f8")])), "logits: of [('ant'"),
        (arrays(sample_weights=-np.ones(N)), "weight: -1 in row 0"),
        (RUNS, "run0 and run1 rise together"),
        (arrays(WRONG), "first in row 1"),
        (arrays(-LOGITS * 1e50), "too large for float32"),
        (arrays(IMPOSSIBLE), "logit is -inf, first in row 50; correct the label"),
        (arrays(P), "look like probabilities"),
        (arrays(Y, Y > 0), "like predicted classes"),
        ({"probabilities": Y, "labels": Y > 0}, "like predicted classes"),
        ({"probabilities": P / 2, "labels": Y}, "sums to 0.5; sigmoid scores?"),
        ({"probabilities": LOGITS, "labels": Y}, "values outside [0, 1]"),
        ({"probabilities": 100 * P, "labels": Y}, "sum to about 100"),
        (arrays(labels=np.eye(3)[Y]), "argmax of one-hot rows"),
        (arrays(labels=Y[:1]), "1 labels for 60 rows"),
        (arrays(labels=Y[:, None]), "shape [60, 1], not [n]; save labels[:, 0]"),
        (arrays(labels=NAMES[Y]), "names (ant, bee, cat) for 3 columns that have none"),
        (arrays(np.eye(4)[Y], Y + 1), "fit the columns better if counted from 1"),
        (
            arrays(TURNED[Y > 0], Y[Y > 0], class_names=[1, 2, 3]),
            "if they are counted from 0",
        ),
        (arrays(labels=np.array(["2", "9", "10"])[Y]), "add class_names=model.classes_"),
        (
            arrays(labels=NAMES[Y % 2]),
            "names (ant, bee) for 3 columns that have none",
        ),
        (arrays(labels=NAMES[Y], class_names=["ant", "bee", "cow"]), "cat in row 2 is no class's"),
        (arrays(class_names=["1", "2", "3"]), "0 in row 0 is no class's name"),
        (
            arrays(labels=np.where(Y, NAMES[Y], "a\nb")),
            "control characters in the name a?b",
        ),
        (arrays(labels=1.5 * (Y % 2)), "a continuous target"),
        (arrays(class_names=["a", "b"]), "class_names: shape [2]"),
        (arrays(class_names=["a", "a", "b"]), "class_names: one is repeated"),
        (arrays(class_names=["a", "", "b"]), "class_names: none in row 1"),
        (arrays(groups=np.array(["a", "b", "c"])), "groups: shape [3]"),
        (arrays(weight=np.ones(3)), "weight: shape [3]"),
        (table(weight=[-1.0, *[1] * (N - 1)]), "weight: -1 in row 0; give weights"),
        (table(weight=[np.nan, *[1] * (N - 1)]), "weight: nan in row 0"),
        (table(weight=0.0), "weight: all are zero"),
        (table(split="cal"), "split: no row says `test`"),
        (table(split="train"), "split: `train` in row 0; say `calibration` or `test`"),
        (table(groups=SOME), "groups: none in row 4"),
        (table(clusters=SOME), "clusters: none in row 4"),
        (table(LOGITS, group=Y), "--groups NAME"),
        (table(labels=Y), "`label` and `labels` could be the labels; choose: --labels label"),
        (table(gold=Y).rename(columns={"label": "target"}), "`target` and `gold` could be"),
        (
            table(y=NAMES[Y], names=["ant", "bee", "cow"]),
            "cat in row 2 is no column's name",
        ),
        (table(names=NAMES), "ant, bee, cat: these columns do not bear the labels 0, 1, 2"),
        (table(names=NAMES), "in the order of the labels: --classes NAME,NAME"),
        (
            table(LOGITS, p_3=P.max(axis=1)),
            "may be a class without a point; if so: --classes 'p_0,p_1,p_2,p_3'",
        ),
        (table(LOGITS, p_3=1.5), "p_3: no label has this name"),
        (
            table(LOGITS, **{"p_-1": 0.5}),
            "p_-1 may be a class; --ignore NAME,NAME",
        ),
        (pd.concat([table(), table(LOGITS)]), "some rows look like"),
        ("a,b\n1,2\n", "no `label` or `labels` (there are a, b)"),
        ("label,c0,c1\n0,x,1\n1,2,y\n", "`c0` holds `x` in row 0, column `c1` holds `y` in row 1"),
        ("label,c0,c1\n0,1\n1,1,2\n", "column `c1` holds nothing in row 0"),
        ("label,c0,c1\n0,1\n1,1,2\n", "-inf or the probability 0"),
        (arrays(labels=np.c_[Y > 0, Y > 1, Y > 2].astype(int)), "multi-label"),
        (arrays(labels=np.where(Y == 2, -100, Y)), "--ignore-label -100"),
        (arrays(labels=np.where(Y == 0, 255, Y)), "--ignore-label 255"),
        (arrays(9 * np.eye(4)[Y + (Y > 1)], Y + (Y > 1) - (Y < 1)), "--ignore-label -1"),
        (arrays(labels=np.array(["-1", "0", "1"])[Y]), "-1 in row 0 is no column's number"),
        (arrays(TURNED, np.array([0, 1, 3])[Y]), "--classes=0,1,3"),
        (arrays(TURNED - 1, np.array([3, 1, 2])[Y]), "--ignore-label 3"),
        ("label,c0,c1\n0,1,2\n,1,2\n1,1,2\n", "labels: none in 1 rows, first in row 1"),
        ("label,a,b\n", "no rows"),
        ("label,c0,c0\n0,1,2\n1,2,1\n", "c0: more than one column of this name"),
        ("sep=,\n" + TEXT, "the first line is `sep=,`; remove this line"),
        ('label,probs\n0,"[0.1, 0.9]"\n', "holds lists as text; write JSON lines or parquet"),
        (TEXT.encode("utf-16"), "text in UTF-8"),
        (gzip.compress(TEXT.encode(), mtime=0), "text in UTF-8"),
        (b"", "not readable as csv"),
    ],
)
def test_what_is_unclear_is_one_line_with_file_field_and_fix(tmp_path, content, told):
    assert told in refused(tmp_path / "a.csv", content)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (EMPTY, "nothing in row 1"),
        (LISTS.assign(label=[[0]] * N), "column `label` holds lists"),
        (LISTS.assign(class_names=list(LOGITS)), "`class_names`: row 1 holds no list, or another"),
        (LISTS.assign(class_names="ant"), "`class_names`: row 0 holds no list"),
        (LISTS.assign(logit=list(LOGITS)), "both `logits` and `logit` hold logits"),
        (LISTS.assign(groups=[[0]] * N), "column `groups` holds lists"),
        (table(groups=[[0]] * N), "column `groups` holds lists"),
        (LISTS.assign(logits=[None, *LOGITS[1:]]), "no entries in row 0"),
        (LISTS.assign(logits=[[None, 0.0, 1.0], *LOGITS[1:]]), "NaN"),
    ],
)
def test_cells_of_parquet_that_are_empty_or_lists_are_told(tmp_path, content, told):
    assert told in refused(tmp_path / "a.parquet", content)


@pytest.mark.parametrize(
    ("name", "content", "fix"),
    [
        ("x.pt", b"PK\x03\x04", "a pickle, which is never loaded; save its arrays: numpy.savez"),
        ("x.xlsx", b"PK\x03\x04", "save the sheet as «CSV UTF-8»"),
        ("x.json", b"[]", "lines=True"),
        ("x.txt", b"label,p_0,p_1", ".txt is not read; give npz, CSV"),
        ("x.csv.zip", b"PK\x03\x04", "unpack it, or pack it with gzip"),
        ("x.npy", b"\x93NUMPY", "save labels, too: numpy.savez"),
        ("x.parquet", b"PAR1PAR1", "not readable as parquet"),
        ("x.jsonl", b'[{"label": 0, "a": 1}]', "an array of JSON; write one object per line"),
        ("x.jsonl", b'{"label": 0, "a": 1, "a": 2}', "`a` stands twice in one line; rename"),
        (
            "x.jsonl",
            b'{"label": {"a": 1}, "a": 1}',
            "several labels per point",
        ),
        ("x.jsonl", b'{"label": 0, "probs": {"0": "x"}}', "`probs` holds something else than"),
    ],
)
def test_what_is_not_read_is_refused_with_the_fix_that_is_right_for_it(
    tmp_path, name, content, fix
):
    assert fix in refused(tmp_path / name, content)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"groups": "town"}, "nothing is called `town` for groups"),
        ({"classes": "p_0,p_1,label"}, "no column of answers is called label"),
        ({"ignore": "idd"}, "--ignore: no column is called idd"),
        ({"classes": "p_0"}, "one column `p_0` for 3 classes"),
    ],
)
def test_options_that_name_nothing_are_told(tmp_path, options, told):
    assert told in refused(tmp_path / "a.csv", table(), **options)


def test_what_is_no_file_is_told(tmp_path):
    with pytest.raises(MissingResource, match=r"none\.npz"):
        file_logits(path=tmp_path / "none.npz")
    with pytest.raises(InputError, match="this is a folder; give the path"):
        file_logits(path=tmp_path)
    with pytest.raises(InputError, match="choose one of auto"):
        file_logits(path=tmp_path / "none.npz", values="odds")


@pytest.mark.parametrize("scale", [100, 255])
def test_percentages_and_votes_are_not_taken_for_logits(tmp_path, scale):
    line = refused(tmp_path / "a.csv", table(np.round(scale * P)))
    assert f"all rows sum to about {scale}" in line and "divide each row by its sum" in line


@pytest.mark.parametrize("classes", [3, 4])
def test_scores_for_pairs_of_classes_are_refused(tmp_path, classes):
    y = np.arange(200) % classes
    scores = 2 * np.eye(classes)[y] + np.random.default_rng(0).normal(size=(200, classes))
    first, second = np.triu_indices(classes, 1)
    line = refused(tmp_path / "a", arrays(scores[:, first] - scores[:, second], y))
    assert 'SVC: decision_function_shape="ovr"' in line


SECOND = arrays(class_names=NAMES)


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        (table(weight=1.0), table(), "not the same columns or arrays as in"),
        (
            SECOND,
            arrays(groups=NAMES[Y], class_names=NAMES),
            "not the same columns or arrays as in",
        ),
        (SECOND, arrays(class_names=["ant", "bee", "cow"]), "not the same class names as in"),
        (SECOND, SECOND | {"logits": np.zeros((N, 4))}, "logits: not the same number of columns"),
        (table(LOGITS), table(), "some rows look like probabilities"),
        (
            pd.DataFrame({"score": LOGITS[:, 0], "label": Y > 0}),
            pd.DataFrame({"score": P[:, 0], "label": Y > 0}),
            "some rows look like probabilities",
        ),
    ],
)
def test_a_second_file_of_another_kind_is_refused(tmp_path, first, second, told):
    assert told in refused(tmp_path / "a.csv", first, test=written(tmp_path / "b.csv", second))


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("a.csv", "label,c0\n" + "x" * 2000 + ",1\ny,2\n", "2,000 letters"),
        ("a.csv.gz", gzip.compress(b"label,0,1\n" + b"0,1,2\n" * 50, mtime=0), "bytes or more"),
        ("a.jsonl", b'{"label":0,"a":1,"b":2}\n' * 50, "bytes or more"),
        ("a.parquet", table(), "bytes or more"),
        ("a", arrays(groups=np.full(5 * N, "x" * 200)), "beside (60,) rows"),
        ("a", arrays(groups=np.full(N, "x" * 2000)), "one short entry per row"),
    ],
)
def test_what_would_take_much_memory_is_refused_before_it_is_read(
    tmp_path, monkeypatch, name, content, told
):
    monkeypatch.setattr(reading, "LARGEST_TABLE", 2000)
    monkeypatch.setattr(reading, "LARGE", 1000)
    assert told in refused(tmp_path / name, content)
