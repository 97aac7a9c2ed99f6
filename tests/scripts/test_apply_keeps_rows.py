"""`apply` writes a file again: every cell as it was, and the calibrated probabilities."""

import csv
import gzip
import json

import numpy as np
import pandas as pd
import pytest

from tests.refusals import refuses
from utility_calibration.calibrators import TemperatureScaling
from utility_calibration.pipeline.own.applying.new_points import write_calibrated
from utility_calibration.pipeline.own.reading import parts
from utility_calibration.scripts import apply as program

NAMES = np.array(["cat", "dog", "owl"])
N = 30
RNG = np.random.default_rng(0)
P = RNG.dirichlet(np.ones(3), N)
LABELS = (P.cumsum(axis=1) > RNG.random((N, 1))).argmax(axis=1)
FITTED = TemperatureScaling(inputs="probabilities").fit(P, NAMES[LABELS], classes=NAMES)
CALIBRATED = FITTED.predict_proba(P)
PREDICTED = NAMES[CALIBRATED.argmax(axis=1)]
NEW = ["calibrated_cat", "calibrated_dog", "calibrated_owl", "predicted_class"]
TEXTS = {
    "patient": [f"{k:05d}" for k in range(N)],
    "long number": [str(10**19 + k) for k in range(N)],
    "visit": [f"0{1 + k % 9}.04.2026" for k in range(N)],
    "gaps": [f"{k}.10" if k % 3 else "" for k in range(N)],
    "note": ['said "no, never"\r\ntwice' if k % 2 else "NA" for k in range(N)],
}


@pytest.fixture
def saved(tmp_path):
    return FITTED.save(tmp_path / "saved.npz")


def run(calibrator, file, output, *options):
    write_calibrated(program.parse([str(calibrator), str(file), "--output", str(output), *options]))


def agrees(probabilities):
    """`apply` takes answers in float32."""
    np.testing.assert_allclose(probabilities, CALIBRATED, atol=1e-6)


def write_table(path, separator=","):
    opened = gzip.open if path.suffix == ".gz" else open
    columns = TEXTS | dict(zip(NAMES, P.T.tolist(), strict=True))
    with opened(path, "wt", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=separator)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


@pytest.mark.parametrize(
    ("name", "separator"), [("a.csv", ","), ("b.csv", ";"), ("c.tsv", "\t"), ("d.csv.gz", ",")]
)
@pytest.mark.parametrize("rows", [7, 10_000])
def test_no_cell_of_text_changes(saved, tmp_path, monkeypatch, name, separator, rows):
    monkeypatch.setattr(parts, "ROWS", rows)
    write_table(tmp_path / name, separator)
    run(saved, tmp_path / name, tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert list(table[0]) == [*TEXTS, *NAMES, *NEW]
    for column, values in TEXTS.items():
        assert [row[column] for row in table] == values
    assert [[float(row[name]) for name in NAMES] for row in table] == P.tolist()
    agrees([[float(row[name]) for name in NEW[:3]] for row in table])
    assert [row["predicted_class"] for row in table] == PREDICTED.tolist()


ODD = [
    "a\rb",
    "x\ny",
    'q"q',
    " lead",
    "trail ",
    "a;b",
    "a\tb",
    "a,b",
    "\r",
    "\r\n",
    "'",
    "#",
    "",
    "ü",
]


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl", "npz"])
def test_no_sign_in_a_text_makes_another_row_or_another_text(saved, tmp_path, form):
    texts = (ODD * 3)[:N]
    table = pd.DataFrame(P, columns=NAMES).assign(note=texts)
    file = tmp_path / f"a.{form}"
    if form == "csv":
        with file.open("w", encoding="utf-8", newline="") as opened:
            writer = csv.writer(opened, quoting=csv.QUOTE_ALL)
            writer.writerows([table.columns, *table.values.tolist()])
    elif form == "parquet":
        table.to_parquet(file)
    elif form == "jsonl":
        table.to_json(file, orient="records", lines=True, double_precision=15)
    else:
        np.savez(file, probabilities=P, note=texts)
    for name, options in (("beside", ()), ("within", ("--in-place",))):
        run(saved, file, tmp_path / f"{name}.csv", *options)
        with (tmp_path / f"{name}.csv").open(encoding="utf-8", newline="") as opened:
            assert [row["note"] for row in csv.DictReader(opened)] == texts
        read = pd.read_csv(tmp_path / f"{name}.csv", keep_default_na=False)
        assert read["note"].tolist() == texts


@pytest.mark.parametrize(("ending", "separator"), [("csv", ";"), ("tsv", "\t"), ("csv", "|")])
@pytest.mark.parametrize("options", [(), ("--in-place",)])
def test_all_numbers_of_a_file_with_decimal_commas_have_them(
    saved, tmp_path, ending, separator, options
):
    table = pd.DataFrame(P, columns=NAMES).assign(age=1.5, note="a;b 1.5")
    table.to_csv(tmp_path / f"a.{ending}", sep=separator, decimal=",", index=False)
    for _ in range(2):  # it may replace what it wrote
        run(saved, tmp_path / f"a.{ending}", tmp_path / "out.csv", *options)
    read = pd.read_csv(tmp_path / "out.csv", sep=";", decimal=",")
    agrees(read[NAMES if options else NEW[:3]])
    assert (read["age"] == 1.5).all() and (read["note"] == "a;b 1.5").all()
    assert read["predicted_class"].tolist() == PREDICTED.tolist()


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl", "npz"])
def test_lists_of_different_lengths_stay_as_they_are(saved, tmp_path, form):
    rows = [
        {
            "probabilities": P[k].tolist(),
            "tokens": ["a"] * (k % 3),
            "pair": [k, k],
            "deep": [[1], []],
        }
        for k in range(N)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    run(saved, tmp_path / "a.jsonl", tmp_path / f"out.{form}")
    if form == "jsonl":
        lines = (tmp_path / "out.jsonl").read_text().splitlines()
        written = [json.loads(line)["tokens"] for line in lines]
    elif form == "csv":
        written = [json.loads(text) for text in pd.read_csv(tmp_path / "out.csv")["tokens"]]
    elif form == "parquet":
        written = [list(words) for words in pd.read_parquet(tmp_path / "out.parquet")["tokens"]]
    else:
        with np.load(tmp_path / "out.npz") as arrays:
            written = [json.loads(text) for text in arrays["tokens"]]
    assert written == [row["tokens"] for row in rows]


@pytest.mark.parametrize("options", [(), ("--prior", "estimate")])
@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl", "npz"])
def test_a_file_without_rows_is_refused(saved, tmp_path, form, options):
    file, table = tmp_path / f"a.{form}", pd.DataFrame(P[:0], columns=NAMES)
    if form == "npz":
        np.savez(file, probabilities=P[:0])
    elif form == "parquet":
        table.to_parquet(file)
    elif form == "csv":
        table.to_csv(file, index=False)
    else:
        file.write_text("")
    with refuses(file=file, fix="one object per line" if form == "jsonl" else "case"):
        run(saved, file, tmp_path / "out.csv", *options)
    assert not (tmp_path / "out.csv").exists()


def test_in_place_the_old_answers_give_way_and_all_else_stays(saved, tmp_path):
    write_table(tmp_path / "a.csv")
    run(saved, tmp_path / "a.csv", tmp_path / "out.csv", "--in-place")
    table = pd.read_csv(tmp_path / "out.csv", dtype=dict.fromkeys(TEXTS, str), na_filter=False)
    assert list(table) == [*TEXTS, *NAMES, "predicted_class"]
    assert table["patient"].tolist() == TEXTS["patient"]
    agrees(table[NAMES])
    np.savez(tmp_path / "a.npz", probabilities=P, id=TEXTS["patient"])
    run(saved, tmp_path / "a.npz", tmp_path / "out.npz", "--in-place")
    with np.load(tmp_path / "out.npz") as arrays:
        assert set(arrays) == {"probabilities", "id", "predicted_class", "class_names"}
        agrees(arrays["probabilities"])


def test_in_place_one_column_of_two_classes_stays_that_of_its_class(tmp_path):
    p = P[:, 0]
    labels = np.where(LABELS == 0, "sick", "well")
    fitted = TemperatureScaling(inputs="probabilities")
    fitted.fit(np.c_[p, 1 - p], labels, classes=["sick", "well"])
    path = fitted.save(tmp_path / "two.npz")
    pd.DataFrame({"id": TEXTS["patient"], "p_sick": p}).to_csv(tmp_path / "a.csv", index=False)
    run(path, tmp_path / "a.csv", tmp_path / "out.csv", "--in-place")
    table = pd.read_csv(tmp_path / "out.csv", dtype={"id": str})
    assert table["id"].tolist() == TEXTS["patient"]
    expected = fitted.predict_proba(np.c_[p, 1 - p])
    np.testing.assert_allclose(table["p_sick"], expected[:, 0], atol=1e-6)


def test_values_of_parquet_keep_their_types(saved, tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "ROWS", 7)
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {
        "id": [2**60 + k if k % 3 else None for k in range(N)],
        "visit": np.arange(N).astype("datetime64[D]"),
        "words": [["a"] * (k % 3) for k in range(N)],
    }
    table = arrow.table(columns | dict(zip(NAMES, P.T, strict=True)))
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=11)
    run(saved, tmp_path / "a.parquet", tmp_path / "out.parquet")
    out = parquet.read_table(tmp_path / "out.parquet")
    assert out.select(table.column_names).equals(table)
    agrees(np.transpose(out.select(NEW[:3]).columns))
    run(saved, tmp_path / "a.parquet", tmp_path / "out.csv")
    text = (tmp_path / "out.csv").read_text().splitlines()
    assert text[1].startswith(",1970-01-01,[],")
    assert text[2].startswith(f'{2**60 + 1},1970-01-02,"[""a""]",')


def test_objects_of_json_lines_keep_their_entries(saved, tmp_path):
    rows = [
        {"id": 10**30 + k, "info": {"a": [1, None]}, **({"rare": "0"} if k % 2 else {})}
        | dict(zip(NAMES.tolist(), P[k].tolist(), strict=True))
        for k in range(N)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    for _ in range(2):  # it may replace what it wrote
        run(saved, tmp_path / "a.jsonl", tmp_path / "out.jsonl")
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    for row, new in zip(rows, written, strict=True):
        assert set(new) == {*row, *NEW}
        assert row.items() <= new.items()
    run(saved, tmp_path / "a.jsonl", tmp_path / "out.parquet")
    table = pd.read_parquet(tmp_path / "out.parquet")
    assert table["id"].tolist() == [str(row["id"]) for row in rows]
    assert table["rare"].isna().sum() == N / 2


def test_an_npz_keeps_its_arrays_and_the_order_of_its_classes(saved, tmp_path, capsys):
    arrays = {
        "probabilities": P[:, [2, 0, 1]],
        "class_names": NAMES[[2, 0, 1]],
        "file": np.array(TEXTS["patient"]),
        "embedding": RNG.normal(size=(N, 4)),
        "visit": np.arange(N).astype("datetime64[ns]"),
        "seeds": np.arange(7),
    }
    plain = dict(arrays)
    del plain["file"]  # a name that `numpy.savez` does not take
    np.savez(tmp_path / "a.npz", **plain, id=arrays.pop("file"), odd=np.array([{}], dtype=object))
    arrays["id"] = np.array(TEXTS["patient"])
    run(saved, tmp_path / "a.npz", tmp_path / "out.npz")
    assert "odd" in capsys.readouterr().out
    with np.load(tmp_path / "out.npz") as out:
        assert set(out) == {*arrays, "calibrated", "predicted_class"}
        for name, array in arrays.items():
            np.testing.assert_array_equal(out[name], array)
        agrees(out["calibrated"][:, [1, 2, 0]])
        np.testing.assert_array_equal(out["predicted_class"], PREDICTED)
    run(saved, tmp_path / "a.npz", tmp_path / "out.csv")
    table = pd.read_csv(tmp_path / "out.csv", dtype={"id": str})
    assert table["id"].tolist() == TEXTS["patient"]
    assert table["visit"][1].startswith("1970-01-01T00")
    agrees(table[NEW[:3]])


def test_a_table_becomes_arrays_whatever_its_columns_are_called(saved, tmp_path):
    table = pd.DataFrame(P, columns=NAMES).assign(file=TEXTS["patient"])
    table.to_csv(tmp_path / "a.csv", index=False)
    run(saved, tmp_path / "a.csv", tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as out:
        assert out["file"].tolist() == TEXTS["patient"]
        agrees(out["calibrated"])


def test_what_would_lose_something_is_refused(saved, tmp_path):
    write_table(tmp_path / "a.csv")
    run(saved, tmp_path / "a.csv", tmp_path / "out.csv")
    before = (tmp_path / "out.csv").read_bytes()
    run(saved, tmp_path / "a.csv", tmp_path / "out.csv")  # it may replace what it wrote
    assert (tmp_path / "out.csv").read_bytes() == before
    with refuses("--output", fix="name another"):  # other columns: perhaps somebody else's
        run(saved, tmp_path / "a.csv", tmp_path / "out.csv", "--in-place")
    with refuses("calibrated_cat", fix="rename"):
        run(saved, tmp_path / "out.csv", tmp_path / "twice.csv", "--classes", "cat,dog,owl")
    rows = [{"probabilities": dict(zip(NAMES.tolist(), row, strict=True))} for row in P.tolist()]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with refuses("--in-place", fix="leave it out"):
        run(saved, tmp_path / "a.jsonl", tmp_path / "out.jsonl", "--in-place")
