"""Files as people write them: the numbers that NumPy gives, whatever the form."""

from __future__ import annotations

import csv
import unicodedata

import numpy as np
import pandas as pd
import pytest

from tests.pipeline.own.files import LOGITS, NAMES, OWN, N, P, Y, own_of, read, table
from utility_calibration.pipeline.sources.file import file_logits

ORDER = [2, 0, 1]
NFD = [unicodedata.normalize("NFD", f"p_{name}") for name in ("thé", "café", "eau")]
SPACED = table().to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC).replace(",", ", ")
NAMED = pd.DataFrame(P, columns=["p(a,b,c)", "p(d,e,f)", "p(g)"])
NAMED["label"] = np.array(["a,b,c", "d,e,f", "g"])[Y]
LISTS = pd.DataFrame({"logits": list(LOGITS), "label": pd.Categorical.from_codes(Y, NAMES)})
WRITTEN = LISTS.assign(logits=[[str(z) for z in row] for row in LOGITS])
ORDERED = pd.DataFrame({"logits": list(LOGITS[:, ORDER]), "label": NAMES[Y]})
ORDERED["class_names"] = [list(NAMES[ORDER])] * N
TOKENS = [
    [{"token": NAMES[k], "logprob": row[k], "bytes": [97]} for k in np.argsort(-row)]
    for row in LOGITS
]
PAIRS = [[[z, False] for z in row] for row in LOGITS.tolist()]
"""Each logit, and whether its token is the greedy one."""
IMPOSSIBLE = {"logits": LOGITS.copy(), "labels": Y, "split": np.repeat(["cal", "test"], [40, 20])}
IMPOSSIBLE["logits"][50, Y[50]] = -np.inf
TIED = {"logits": np.c_[0 * Y, 0 * Y, Y - 9.0], "labels": Y}
ZEROS = table(y=np.array(["001", "002", "003"])[Y], names=("p_1", "p_2", "p_3"))
TYPED = table(names=NAMES, y=NAMES[Y], site=pd.Categorical(NAMES[Y])).convert_dtypes()


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("npz", {"logits": LOGITS, "labels": Y}, {}),
        ("npz", {"probabilities": P, "labels": Y}, {}),
        ("npz", {"logits": LOGITS, "labels": Y.astype(np.uint8)}, {}),
        ("npz", {"logits": LOGITS, "labels": Y.astype(str)}, {}),
        ("npz", {"logits": LOGITS, "labels": Y + 1}, {}),
        ("npz", {"logits": LOGITS, "labels": NAMES[Y]}, {"classes": "ant,bee,cat"}),
        ("npz", {"logits": LOGITS, "labels": NAMES[Y].astype("S"), "class_names": NAMES}, {}),
        ("npz", {"logits": LOGITS.reshape(6, 10, 3), "labels": Y.reshape(6, 10)}, {}),
        ("npz", {"x": LOGITS, "obs": P, "t": Y}, {"labels": "t", "logits": "x"}),
        ("npz", {"predictions": LOGITS, "label_ids": Y}, {}),
        ("csv", table().rename(columns={"label": "True Label"}), {}),
        (
            "csv",
            table(label_=Y, target=0).drop(columns="label"),
            {"labels": "label_", "ignore": "target"},
        ),
        ("csv", table(pred=Y, conf=0.5), {}),
        ("npz", {"logits": LOGITS[:, ORDER], "labels": NAMES[Y], "class_names": NAMES[ORDER]}, {}),
        ("npz", {"logits": LOGITS, "labels": NAMES[Y], "class_names": ["Ant", "BEE", "cat"]}, {}),
        ("npz", {"logits": LOGITS, "labels": Y + 1, "class_names": NAMES}, {}),
        ("npz", {"logits": LOGITS, "labels": 10 * Y, "class_names": ["0", "10", "20"]}, {}),
        ("npz", {"logits": LOGITS, "labels": Y, "probabilities": P}, {"values": "logits"}),
        *((end, table(), {}) for end in ("csv", "csv.gz", "tsv", "tsv.gz", "jsonl", "parquet")),
        *((end, ZEROS, {}) for end in ("csv", "tsv.gz", "jsonl", "parquet")),
        ("csv", table(y=Y + 1), {"classes": "p_0,p_1,p_2"}),
        ("csv", table(names=NAMES), {"classes": "ant,bee,cat"}),
        ("csv", table(P[:, ORDER], names=["2", "0", "1"]), {}),
        ("csv", table(P[:, ORDER], NAMES[Y], NAMES[ORDER]), {}),
        ("csv", table(y=NAMES[Y], names=["p_ant", "p_bee", "p_cat"]), {}),
        ("csv", table(pred=Y, conf=0.5), {"ignore": "pre*,conf"}),
        ("csv", table(pred=Y, conf=0.5), {"classes": "p_?"}),
        ("csv", table(pred=Y, conf=0.5), {"classes": "p_2,p_0,p_1"}),
        ("csv", table(y=np.array(["thé", "café", "eau"])[Y], names=NFD), {}),
        ("csv", "\ufeff" + table().to_csv(index=False, lineterminator="\r\n"), {}),
        ("csv", SPACED, {}),
        ("csv", NAMED.to_csv(sep=";", index=False), {}),
        ("parquet", TYPED, {"groups": "site"}),
        ("parquet", LISTS, {"classes": "ant,bee,cat"}),
        ("parquet", ORDERED, {}),
        ("jsonl", ORDERED, {}),
        ("parquet", WRITTEN, {"classes": "ant,bee,cat"}),
        ("jsonl", pd.DataFrame({"top_logprobs": TOKENS, "answer": NAMES[Y]}), {}),
        ("jsonl", pd.DataFrame({"filtered_resps": PAIRS, "target": Y}), {}),
    ],
)
def test_the_own_class_has_its_probability(tmp_path, name, content, options):
    result = read(tmp_path / f"a.{name}", content, **options)
    np.testing.assert_allclose(own_of(result)[0], OWN, rtol=1e-4)
    assert (result.logits.dtype, result.labels.dtype) == (np.float32, np.int64)
    assert result.logits.shape == (N, 3)


@pytest.mark.parametrize(
    ("content", "names", "note"),
    [
        ({"logits": LOGITS, "labels": Y + 1}, ["1", "2", "3"], "labels are counted from 1"),
        (table().rename(columns={"label": "target"}), None, "`target` is taken for the labels"),
        (
            pd.DataFrame({"risk": OWN, "outcome": (Y > 0) * 1}),
            None,
            "`outcome` is taken for the labels",
        ),
        ({"probabilities": -np.sort(-P, axis=1), "labels": Y}, None, "K largest values"),
        ({"logits": 10 - 9 * np.eye(3)[Y], "labels": Y}, None, "of the cases, guessing would"),
        ({"logits": LOGITS, "labels": Y, "group": Y}, None, "not used: group"),
        (table(np.roll(np.eye(3)[Y] * 2.5 - 1, 1, axis=1)), None, "of the cases, guessing would"),
        (table(P[:, ORDER], NAMES[Y], NAMES[ORDER], patient=Y), list(NAMES), "clusters patient"),
        (TIED, None, "100 % of the cases have several largest values"),
        (IMPOSSIBLE, None, "logit -inf in 1 test cases"),
    ],
)
def test_what_was_decided_is_noted(tmp_path, content, names, note):
    ignored = {"ignore": "patient"} if "patient" in content else {}
    details = read(tmp_path / "a.csv", content, **ignored).details
    assert details.get("class_names") == names
    assert note in " ".join(details["warnings"])


def test_labels_may_be_in_the_index_of_pandas(tmp_path):
    table().set_index("label").to_parquet(tmp_path / "a.parquet")
    result = file_logits(path=tmp_path / "a.parquet")
    np.testing.assert_array_equal(result.labels, Y)


def test_a_data_set_says_the_order_of_its_classes(tmp_path):
    datasets = pytest.importorskip("datasets")
    data_set = datasets.Dataset.from_dict({"logits": LOGITS.tolist(), "label": Y.tolist()})
    data_set = data_set.cast_column("label", datasets.ClassLabel(names=NAMES[ORDER].tolist()))
    data_set.save_to_disk(str(tmp_path / "a"))
    result = file_logits(path=tmp_path / "a")
    assert result.details["class_names"] == NAMES[ORDER].tolist() and not own_of(result)[1]
    np.testing.assert_array_equal(result.labels, Y)
