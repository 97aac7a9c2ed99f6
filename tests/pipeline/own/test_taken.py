"""Files as people write them: the numbers that NumPy gives, whatever the form."""

from __future__ import annotations

import csv
import unicodedata

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from tests.pipeline.own.files import LOGITS, NAMES, OWN, N, P, Y, own_of, read, rng, table, written
from tests.refusals import refuses
from utility_calibration.pipeline.own.reading.read import read_table
from utility_calibration.pipeline.sources.file import file_logits

ORDER = [2, 0, 1]
NFD = [unicodedata.normalize("NFD", f"p_{name}") for name in ("thé", "café", "eau")]
SPLIT = np.array(["calibration", "cal", "Validation", "val", "test", "TEST"] * 10)
TESTED = np.array([False, False, False, False, True, True] * 10)
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
PAIRS = [
    [[z, False] for z in row] for row in LOGITS.tolist()
]  # logit, whether it is the greedy one
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
        ({"logits": 10 - 9 * np.eye(3)[Y], "labels": Y}, None, "of the points, guessing would"),
        ({"logits": LOGITS, "labels": Y, "group": Y}, None, "not used: group"),
        (table(np.roll(np.eye(3)[Y] * 2.5 - 1, 1, axis=1)), None, "of the points, guessing would"),
        (table(P[:, ORDER], NAMES[Y], NAMES[ORDER], patient=Y), list(NAMES), "clusters patient"),
        (TIED, None, "100 % of the rows have several largest values"),
        (IMPOSSIBLE, None, "1 test points have a class whose logit is -inf"),
    ],
)
def test_what_was_decided_is_noted(tmp_path, content, names, note):
    ignored = {"ignore": "patient"} if "patient" in content else {}
    details = read(tmp_path / "a.csv", content, **ignored).details
    assert details.get("class_names") == names
    assert note in " ".join(details["warnings"])


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


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_numbers_without_a_sign_are_numbers(tmp_path, kind):
    logits = rng.integers(0, 200, (N, 3)).astype(kind)
    content = {"logits": logits, "labels": Y.astype(kind), "weight": (Y + 1).astype(kind)}
    result = read(tmp_path / "a", content)
    np.testing.assert_array_equal(result.logits, logits)


TWENTY = rng.dirichlet(np.ones(20), N)


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
    found = softmax(result.logits.astype(float), axis=1)
    np.testing.assert_allclose(found, p / p.sum(axis=1, keepdims=True), atol=1e-6)
    assert f"off by up to {off}" in result.details["warnings"][0]


@pytest.mark.parametrize("rows", [P, np.round(100 * P)])
def test_a_person_may_say_that_these_are_logits(tmp_path, rows):
    for content in ({"logits": rows, "labels": Y}, table(rows)):
        result = read(tmp_path / "a.csv", content, values="logits")
        np.testing.assert_allclose(result.logits, rows, rtol=1e-6)


@pytest.mark.parametrize(("sign", "decimal"), [(";", ","), ("\t", ","), ("|", ".")])
def test_decimal_commas_are_seen_after_whole_numbers(tmp_path, sign, decimal):
    names, *rows = table().to_csv(sep=sign, decimal=decimal, index=False).splitlines()
    text = "\n".join([names, sign.join(["1", "0", "0", "0"]), *rows])
    np.testing.assert_allclose(own_of(read(tmp_path / "a.csv", text))[0][1:], OWN, rtol=1e-4)


@pytest.mark.parametrize(
    ("cells", "decimal", "value"),
    [
        ("1.234;0,5", None, 1234),
        ("1,234;0.5", None, 1234),
        ("1.234,5;2", None, 1234.5),
        ("1,234,567;2", None, 1234567),
        ("0.125;2", None, 0.125),
        ("-1.234;2", ".", -1.234),
        ("-1.234;2", ",", -1234),
        ("1,234;2", ",", 1.234),
    ],
)
def test_a_number_shows_which_sign_begins_decimals_or_the_person_says_it(
    tmp_path, cells, decimal, value
):
    path = written(tmp_path / "a.csv", f"z;y\n{cells}\n")
    assert float(read_table(path, decimal)["z"][0]) == value


@pytest.mark.parametrize("cells", ["1.234;2", "1,234;2", "-12.345;1.000", "123,456|2"])
def test_a_number_of_two_readings_is_refused(tmp_path, cells):
    names = "z;y" if ";" in cells else "z|y"
    path = written(tmp_path / "a.csv", f"{names}\n{cells}\n")
    with refuses(fix="--decimal '.'", file=path):
        read_table(path)


@pytest.mark.parametrize(
    ("form", "decimal"), [("{:,.0f}", "."), ("{:,.2f}", "."), ("{:.4f}", ","), ("{:.3f}", ",")]
)
def test_quoted_numbers_with_commas_name_the_option_that_reads_them(tmp_path, form, decimal):
    scores = np.round(3000 * LOGITS)
    cells = [[form.format(value) for value in row] for row in scores]
    if decimal == ",":
        cells = [[cell.replace(".", ",") for cell in row] for row in cells]
    path = written(tmp_path / "a.csv", table(cells))
    with refuses(fix=f"--decimal '{decimal}'", column="p_0"):
        file_logits(path=path)
    result = file_logits(path=path, decimal=decimal)
    np.testing.assert_array_equal(result.logits.argsort(axis=1), scores.argsort(axis=1))
    assert np.ptp(result.logits) == np.ptp(scores)


@pytest.mark.parametrize(
    "scores", [1 / (1 + np.exp(-LOGITS - 2)), P, P**0.5, np.clip(LOGITS / 9 + 1, 0, 1)]
)
def test_logits_that_look_like_probabilities_are_noted(tmp_path, scores):
    result = read(tmp_path / "a.csv", table(scores), values="logits")
    assert result.details["origin"]["values"] == "logits"
    assert "sigmoid" in " ".join(result.details["warnings"])
    result = read(tmp_path / "a.csv", table(LOGITS), values="logits")
    assert "sigmoid" not in " ".join(result.details["warnings"])


@pytest.mark.parametrize("name", ["weight", "split", "cluster", "y", "labels"])
def test_what_is_ignored_has_no_purpose(tmp_path, name):
    odd = {name: -np.ones(N)}
    arrays = {"logits": LOGITS, "label": Y, "probabilities": P, **odd}
    for content, ignore in (
        (table().assign(**odd), f"{name},"),
        (arrays, f"{name}, probabilities"),
    ):
        result = read(tmp_path / "a.csv", content, ignore=ignore)
        np.testing.assert_allclose(own_of(result)[0], OWN, rtol=1e-4)


@pytest.mark.parametrize("name", ["npz", "csv"])
def test_splits_weights_and_groups_come_from_arrays_or_columns(tmp_path, name):
    more = {
        "split_1": SPLIT,
        "split_2": SPLIT[::-1],
        "sample_weight": 1 + np.arange(N),
        "site": SPLIT,
    }
    content = {"logits": LOGITS, "labels": Y, **more} if name == "npz" else table(**more)
    found = read(tmp_path / "a.csv", content, groups="site")
    np.testing.assert_array_equal(found.tested, [TESTED, TESTED[::-1]])
    np.testing.assert_array_equal(found.weights, 1 + np.arange(N))
    np.testing.assert_array_equal(found.groups, SPLIT)
    assert found.logits.shape == (N, 3)


@pytest.mark.parametrize(
    ("weights", "kept", "expected"),
    [
        (np.full(N, 0.5), N, None),
        (np.ones(N), N, None),
        (np.full(N, 2), N, np.full(N, 2)),
        ((np.arange(N) % 3 > 0) * 0.1, 40, None),
        (np.arange(N) % 3, 40, np.tile([1, 2], 20)),
    ],
)
def test_equal_weights_are_none_and_points_of_weight_0_are_left_out(
    tmp_path, weights, kept, expected
):
    content = table(weight=weights, split=SPLIT, site=SPLIT)
    found = read(tmp_path / "a.csv", content, groups="site")
    rows = weights > 0
    assert len(found.labels) == kept == rows.sum()
    np.testing.assert_array_equal(found.groups, np.array(SPLIT)[rows])
    np.testing.assert_array_equal(found.tested, [TESTED[rows]])
    np.testing.assert_array_equal(found.labels, Y[rows])
    if expected is None:
        assert found.weights is None
    else:
        np.testing.assert_array_equal(found.weights, expected)


def test_a_second_file_tests_its_columns_in_any_order_beside_what_is_ignored(tmp_path):
    test = written(tmp_path / "b.csv", table(id=1)[["p_2", "id", "label", "p_0", "p_1"]])
    found = read(tmp_path / "a.csv", table(), test=test, ignore="id")
    np.testing.assert_allclose(own_of(found)[0], [*OWN, *OWN], rtol=1e-4)
    np.testing.assert_array_equal(found.tested, [[False] * N + [True] * N])


def test_a_data_set_says_the_order_of_its_classes(tmp_path):
    datasets = pytest.importorskip("datasets")
    held = datasets.Dataset.from_dict({"logits": LOGITS.tolist(), "label": Y.tolist()})
    held = held.cast_column("label", datasets.ClassLabel(names=NAMES[ORDER].tolist()))
    held.save_to_disk(str(tmp_path / "a"))
    result = file_logits(path=tmp_path / "a")
    assert result.details["class_names"] == NAMES[ORDER].tolist() and not own_of(result)[1]
    np.testing.assert_array_equal(result.labels, Y)


@pytest.mark.parametrize(
    ("values", "options", "count"),
    [
        (np.arange(N) // 6, {"ignore": "patient_id"}, 1),
        (np.arange(N) // 6, {"clusters": "patient_id"}, 0),
        (np.arange(N), {"ignore": "patient_id"}, 0),
    ],
)
def test_repeated_names_of_patients_bring_one_line_of_advice(tmp_path, values, options, count):
    arrays = {"logits": LOGITS, "labels": Y, "patient_id": values}
    single = table(P[:, [0]], 1 * (Y == 0), ["risk"], patient_id=values)
    for content in (table(patient_id=values), single, arrays):
        _, notes = own_of(read(tmp_path / "a.csv", content, **options))
        assert sum("say --clusters patient_id" in note for note in notes) == count


@pytest.mark.parametrize("name", ["date", "remark", "diagnosis_text"])
def test_text_beside_a_single_column_of_answers_is_left_out(tmp_path, name):
    risk, outcome = P[:, 1], 1 * (Y == 1)
    content = pd.DataFrame({"patient": np.arange(N), "risk": risk, "outcome": outcome})
    result = read(tmp_path / "a.csv", content.assign(**{name: "2024-01-01, none"}))
    np.testing.assert_allclose(softmax(result.logits, axis=1)[:, 1], risk, atol=1e-6)
    assert name in " ".join(result.details["warnings"])
    with refuses("columns", fix="--classes risk", number=name):  # numbers may be answers
        read(tmp_path / "a.csv", content.assign(**{name: np.arange(N) / 7}))
