"""`score --stream`: one pass over shards gives the numbers of the whole, also after a kill."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.refusals import fails, refuses
from tests.scripts.conftest import quick
from utility_calibration.calibrators import LogitShiftPatching, TemperatureScaling, VectorScaling
from utility_calibration.metrics import ClassWise, TopK, accuracy, brier_score
from utility_calibration.pipeline.harness.artifacts import read_json, read_npz, write_npz
from utility_calibration.pipeline.harness.cache import RECORD, record_of
from utility_calibration.pipeline.harness.parallel import last_errors
from utility_calibration.pipeline.harness.parameters import UsageError
from utility_calibration.pipeline.harness.workers import UnitsFailed
from utility_calibration.pipeline.own import batches, stream, sums
from utility_calibration.pipeline.own.batches import labelled
from utility_calibration.pipeline.own.forms import shards_of
from utility_calibration.pipeline.own.options import parsed

NAMES = ["ant", "bee", "cat"]
Points = tuple[Any, Any]


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of 100 rows."""
    monkeypatch.setattr(batches, "ROWS", 100)


@pytest.fixture
def points() -> Points:
    """Probabilities [900, 3] of an overconfident classifier, and labels."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), size=900)
    softer = 0.7 * p + 0.1
    labels = (softer.cumsum(axis=1) < rng.random((900, 1))).sum(axis=1)
    return p, labels


@pytest.fixture
def shards(tmp_path: Path, points: Points) -> Path:
    """The points in three files, of which the second has its columns in another order."""
    folder, (p, labels) = tmp_path / "shards", points
    folder.mkdir()
    for number, rows in enumerate(np.split(np.arange(900), 3)):
        table = pd.DataFrame(p[rows], columns=[f"p_{name}" for name in NAMES])
        table["label"] = np.array(NAMES)[labels[rows]]
        table = table[table.columns[::-1]] if number == 1 else table
        table.to_parquet(folder / f"{number}.parquet", index=False)
    return folder


def scored(file: Path, output: Path, *more: str) -> Any:
    stream.score_streamed(parsed("", [str(file), "--output", str(output), "--stream", *more]))
    return read_json(output / "streaming.json")


def test_notes_of_the_reading_are_printed_once(
    points: Points, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    p, labels = points
    for number, rows in enumerate(np.split(np.arange(900), 3)):
        split = np.where(np.arange(300) < 10 * number, "train", "test")
        np.savez(
            tmp_path / f"{number}.npz", probabilities=p[rows], labels=labels[rows], split=split
        )
    for _ in range(2):  # the second run reads nothing again
        more = ("--ignore", "split", "--ignore-label", "2")
        assert scored(tmp_path, tmp_path / "out", *more)["uncalibrated"]["n"] < 870
        lines = capsys.readouterr()
        told = [line for line in (lines.out + lines.err).splitlines() if "left out" in line]
        assert [line.partition(":")[0] for line in told] == [
            "0.npz, rows 0 to 299",
            "1.npz, rows 0 to 299",
        ]


def check_brier(numbers: Any, p: Any, labels: Any, method: str = "uncalibrated") -> None:
    """A method has the Brier score of these probabilities."""
    assert numbers[method]["brier"] == pytest.approx(brier_score(p, labels), abs=1e-6)


@pytest.mark.usefixtures("small_batches")
def test_a_folder_a_pattern_a_table_and_arrays_give_the_numbers_of_the_whole(
    shards: Path, points: Points, tmp_path: Path
) -> None:
    p, labels = points
    frames = [pd.read_parquet(file) for file in sorted(shards.iterdir())]
    pd.concat(frames).to_csv(tmp_path / "all.csv", index=False)
    np.savez(tmp_path / "all.npz", probabilities=p, labels=labels)
    files = shards, shards / "*.parquet", tmp_path / "all.csv", tmp_path / "all.npz"
    found = [scored(file, tmp_path / f"out{k}")["uncalibrated"] for k, file in enumerate(files)]
    for numbers in found:
        assert numbers["n"] == 900
        assert numbers["accuracy"] == pytest.approx(accuracy(p, labels))
        assert numbers["brier"] == pytest.approx(brier_score(p, labels), abs=1e-6)
        for key, utility in {"u_cwe": ClassWise(), "u_topk": TopK()}.items():
            exact = utility.calibration_errors(p, labels).max()
            assert numbers[key]["lower"] - 1e-6 <= exact <= numbers[key]["upper"] + 1e-6
            assert numbers[key]["lower"] == pytest.approx(found[0][key]["lower"], abs=1e-12)


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize(
    ("labels", "more"),
    [
        ([0, 1, 2], {"class_names": NAMES}),
        ([5, 6, 7], {"class_names": [5, 6, 7]}),
        (["Ant", "BEE", "cat"], {"class_names": NAMES}),
        ([1, 2, 3], {}),
        ([False, True, True], {}),
    ],
)
def test_labels_are_read_as_of_a_whole_file(
    points: Points, tmp_path: Path, labels: Any, more: Any
) -> None:
    p, y = points
    if labels[1] is True:
        p, y = p[:, 1:].sum(axis=1), np.minimum(y, 1)
    np.savez(tmp_path / "a.npz", probabilities=p, labels=np.array(labels)[y], **more)
    p = np.c_[1 - p, p] if p.ndim == 1 else p
    check_brier(scored(tmp_path / "a.npz", tmp_path / "out"), p, y)


def test_a_killed_run_goes_on_with_the_shards_that_are_left(
    shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = scored(shards, tmp_path / "whole")
    read = list[str]()

    def counted(path: Path, *others: Any) -> Any:
        read.append(path.name)
        if len(read) == 3:
            raise KeyboardInterrupt
        return labelled(path, *others)

    monkeypatch.setattr(sums, "labelled", counted)
    with pytest.raises(KeyboardInterrupt):
        scored(shards, tmp_path / "out", "--jobs", "1")
    assert scored(shards, tmp_path / "out", "--jobs", "1") == whole
    assert read == ["0.parquet", "1.parquet", "2.parquet", "2.parquet"]
    assert scored(shards, tmp_path / "out") == whole
    assert len(read) == 4
    log = last_errors(tmp_path / "out/data")
    assert len(log) == 3
    assert set(log.values()) == {""}


@pytest.mark.usefixtures("small_batches")
def test_any_number_of_jobs_gives_the_same_bytes(
    shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, jobs in (("one", "1"), ("two", "2")):
        scored(shards, tmp_path / name, "--jobs", jobs)
    pages = [(tmp_path / name / "streaming.json").read_bytes() for name in ("one", "two")]
    assert pages[0] == pages[1]
    monkeypatch.setattr(stream, "MOST_ON_DISK", 1)  # then all shards share a file
    shared = scored(shards, tmp_path / "shared")["uncalibrated"]
    alone = read_json(tmp_path / "one/streaming.json")["uncalibrated"]
    assert shared["u_topk"]["upper"] == pytest.approx(alone["u_topk"]["upper"], abs=1e-12)
    assert len([*(tmp_path / "shared").rglob("*.npz")]) == 1


def saved(calibrator: Any, path: Path, takes: str = "probabilities", names: Any = NAMES) -> Path:
    """A calibrator's file as `score --save` writes it."""
    calibrator.takes_ = takes
    if names is not None:
        calibrator.class_names_ = np.array(names)
    return Path(calibrator.save(path))


def test_a_saved_calibrator_is_scored_in_place_of_the_forecast(
    shards: Path, points: Points, tmp_path: Path
) -> None:
    logits = np.log(points[0]).astype(np.float32)
    moved = [2, 0, 1]  # the calibrator has another order of the classes
    fitted = VectorScaling().fit(logits[:, moved], np.argsort(moved)[points[1]])
    path = saved(fitted, tmp_path / "vector.npz", names=np.array(NAMES)[moved])
    expected = fitted.predict_proba(logits[:, moved])[:, np.argsort(moved)]
    numbers = scored(shards, tmp_path / "out", "--calibrator", str(path))
    assert [*numbers] == ["vector.npz"]
    check_brier(numbers, expected, points[1], "vector.npz")
    np.savez(tmp_path / "all.npz", probabilities=points[0], labels=points[1])
    fitted = TemperatureScaling(inputs="probabilities").fit(points[0], points[1])
    path = saved(fitted, tmp_path / "uncalibrated.npz", names=None)
    numbers = scored(tmp_path / "all.npz", tmp_path / "out", "--calibrator", str(path))
    expected = fitted.predict_proba(points[0])
    check_brier(numbers, expected, points[1], "uncalibrated.npz")


def test_a_calibrator_that_does_not_fit_the_points_is_refused(
    shards: Path, points: Points, tmp_path: Path
) -> None:
    logits, labels = np.log(points[0]).astype(np.float32), points[1]
    fitted = TemperatureScaling().fit(logits, labels)
    grouped = LogitShiftPatching().fit(logits, labels)
    grouped.groups_from_ = "site"
    for path, fix in {
        saved(
            TemperatureScaling().fit(logits, labels), tmp_path / "a.npz", "logits"
        ): "give logits",
        saved(TemperatureScaling().fit(logits, labels), tmp_path / "b.npz", names=None): "names",
        saved(fitted, tmp_path / "c.npz", names=["ant", "bee", "dog"]): "same classes",
        saved(grouped, tmp_path / "d.npz"): "apply",
    }.items():
        with refuses(file=path, fix=fix):
            scored(shards, tmp_path / "out", "--calibrator", str(path))
    assert not (tmp_path / "out").exists()


def test_a_pass_and_a_whole_run_remove_each_others_report(points: Points, tmp_path: Path) -> None:
    np.savez(tmp_path / "all.npz", probabilities=points[0], labels=points[1])
    out = tmp_path / "out"
    one = ("--methods", "uncalibrated", "--splits", "1")
    quick(tmp_path / "all.npz", out, *one)
    (out / "notes.txt").touch()
    scored(tmp_path / "all.npz", out, "--title", "Mine")
    assert reports(out) == {"streaming.json", "streaming.md", "notes.txt"}
    text = (out / "streaming.md").read_text()
    assert text.startswith("# Mine")
    assert "| U_CWE |" in text
    assert "| U_topK |" in text
    quick(tmp_path / "all.npz", out, *one)
    assert {"report.html", "verdict.json", "notes.txt"} <= reports(out)
    assert not {"streaming.json", "streaming.md"} & reports(out)


def reports(folder: Path) -> set[str]:
    """The names of the files that lie in a folder, without hidden ones."""
    return {one.name for one in folder.iterdir() if one.is_file() and one.name[0] != "."}


@pytest.mark.parametrize(
    "options",
    [
        "--quick",
        "--wide",
        "--seed 1",
        "--tuning paper",
        "--methods temp",
        "--save a.npz --method temp",
        "--splits 3",
        "--groups site",
        "--losses a.csv",
    ],
)
def test_an_option_without_effect_in_one_pass_is_refused(tmp_path: Path, options: str) -> None:
    name = options.split()[0]
    with fails(UsageError, f"{name}: "):
        one_pass.is_streamed(parsed("", [str(tmp_path / "a.npz"), "--stream", *options.split()]))


def test_a_large_file_is_read_as_a_whole_for_what_needs_all_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "is_too_large", lambda path: True)
    path = str(tmp_path / "a.npz")
    assert one_pass.is_streamed(parsed("", [path]))
    assert not one_pass.is_streamed(parsed("", [path, "--groups", "site", "--quick"]))
    with fails(UsageError, "--quick"):
        one_pass.is_streamed(parsed("", [path, "--quick"]))


@pytest.mark.usefixtures("small_batches")
def test_rows_without_a_label_to_read_are_passed_over(points: Points, tmp_path: Path) -> None:
    p, y = points
    labels = np.where(np.arange(900) // 100 == 3, -100, y)
    np.savez(tmp_path / "a.npz", probabilities=p, labels=labels)
    numbers = scored(tmp_path / "a.npz", tmp_path / "out", "--ignore-label", "-100")
    kept = labels >= 0
    check_brier(numbers, p[kept], y[kept])
    with refuses("--ignore-label", fix="fewer"):
        scored(tmp_path / "a.npz", tmp_path / "none", "--ignore-label=-100,0,1,2")


@pytest.mark.parametrize("name", ["split", "cluster", "groups"])
def test_a_purpose_that_needs_all_points_is_refused_with_the_option_to_do_without(
    points: Points, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    p, y = points
    words = np.array(["calibration", "test"])[np.arange(900) // 450]
    np.savez(tmp_path / "a.npz", probabilities=p, labels=y, **{name: words})
    with refuses(name, fix=f"--ignore {name}"):
        scored(tmp_path / "a.npz", tmp_path / "out")
    monkeypatch.setattr(batches, "ROWS", 100)  # the first rows all say `calibration`
    with refuses(name, fix=f"--ignore {name}"):
        scored(tmp_path / "a.npz", tmp_path / "out")
    numbers = scored(tmp_path / "a.npz", tmp_path / "out", "--ignore", name)
    check_brier(numbers, p, y)


def test_files_of_two_kinds_or_orders_are_refused(points: Points, tmp_path: Path) -> None:
    (p, y), swapped = points, [2, 0, 1]
    z, log_odds = np.log(p), np.log(p[:, 0] / (1 - p[:, 0]))
    moved = {"probabilities": p[:, swapped], "class_names": np.array(NAMES)[swapped]}
    pairs: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "values": ({"logits": z}, {"probabilities": p}),
        "logits": ({"logits": z}, {"logits": p}),
        "labels": ({"probabilities": p, "class_names": NAMES}, moved),
        "": ({"logits": log_odds, "labels": y == 0}, {"logits": p[:, 0], "labels": y == 0}),
    }
    for field, pair in pairs.items():
        folder = tmp_path / f"files{field}"
        folder.mkdir()
        for number, arrays in enumerate(pair):
            np.savez(folder / f"{number}.npz", **{"labels": y, **arrays})
        with fails(UnitsFailed, field or "logits", "1.npz"):
            scored(folder, tmp_path / "out")


def test_one_column_is_named_by_an_option(points: Points, tmp_path: Path) -> None:
    p, y = points[0][:, 0], (points[1] == 0) * 1
    held = {"mine": np.log(p / (1 - p)), "p_1": np.roll(p, 1), "label": y}
    pd.DataFrame(held).to_csv(tmp_path / "a.csv", index=False)
    numbers = scored(tmp_path / "a.csv", tmp_path / "out", "--logits", "mine")
    check_brier(numbers, p, y)


def test_what_does_not_fit_is_refused_with_its_place(shards: Path, tmp_path: Path) -> None:
    odd = pd.read_parquet(shards / "2.parquet")
    odd.loc[7, "label"] = "dog"
    odd.to_parquet(shards / "2.parquet", index=False)
    with fails(UnitsFailed, "labels", "row 7", "--classes", "2.parquet"):
        scored(shards, tmp_path / "out")
    arrays = tmp_path / "arrays"
    arrays.mkdir()
    for classes in (2, 3):  # the first columns of the second file are not the classes
        p = np.full((9, classes), 1 / classes)
        np.savez(arrays / f"{classes}.npz", probabilities=p, labels=np.arange(9) % 2)
    with fails(UnitsFailed, "probabilities", "3.npz"):
        scored(arrays, tmp_path / "other")
    assert not one_pass.is_streamed(parsed("", [str(shards / "0.parquet")]))
    with refuses(number="*.csv"):
        shards_of(shards / "*.csv")


def test_a_short_first_shard_does_not_hide_that_labels_count_from_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for number, n in enumerate((12, 3000)):
        labels = rng.integers(0, 3, n)  # of four classes, the last one is in no shard
        logits = rng.normal(size=(n, 4)) + 2 * np.eye(4)[labels]
        np.savez(tmp_path / f"{number}.npz", logits=logits, labels=labels + 1)
    with fails(UnitsFailed, "labels", "class_names", "1.npz"):
        scored(tmp_path, tmp_path / "out")


def table(points: Points, rows: slice) -> pd.DataFrame:
    """Some of the points as a table."""
    p, labels = points
    frame = pd.DataFrame(p[rows], columns=[f"p_{name}" for name in NAMES])
    return frame.assign(label=np.array(NAMES)[labels[rows]])


@pytest.mark.parametrize("how", ["form", "gz", "link", "hard link", "copy", "renamed form"])
def test_the_same_points_twice_are_refused_by_both_names(
    points: Points, tmp_path: Path, how: str
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    frame = table(points, slice(300))
    first, second = folder / "s1.csv", folder / "s2.csv"
    frame.to_csv(first, index=False)
    table(points, slice(300, 600)).to_csv(folder / "other.csv", index=False)
    if how == "form":
        second = folder / "s1.parquet"
        frame.to_parquet(second)
    elif how == "gz":
        second = folder / "s1.csv.gz"
        frame[::-1].to_csv(second, index=False)
    elif how == "link":
        second.symlink_to(first)
    elif how == "hard link":
        second.hardlink_to(first)
    elif how == "copy":
        second.write_bytes(first.read_bytes())
    else:
        second = folder / "s2.parquet"
        frame.to_parquet(second)
    with refuses(number=str(first)):
        scored(folder, tmp_path / "out")
    second.unlink()
    assert scored(folder, tmp_path / "out")["uncalibrated"]["n"] == 600


def test_a_name_to_ignore_that_no_shard_has_is_refused(shards: Path, tmp_path: Path) -> None:
    last = pd.read_parquet(shards / "2.parquet").assign(note="a")
    last.to_parquet(shards / "2.parquet", index=False)
    assert scored(shards, tmp_path / "out", "--ignore", "note")["uncalibrated"]["n"] == 900
    with refuses("--ignore", fix="note"):
        scored(shards, tmp_path / "out", "--ignore", "nota")


def test_shards_of_equal_size_are_no_copies(points: Points, tmp_path: Path) -> None:
    p, labels = points
    for number, rows in enumerate(np.split(np.arange(900), 3)):
        np.savez(tmp_path / f"{number}.npz", probabilities=p[rows], labels=labels[rows])
    assert scored(tmp_path, tmp_path / "out")["uncalibrated"]["n"] == 900


@pytest.mark.parametrize("weighted", [0, 1])
def test_weights_in_some_shards_only_are_refused(
    points: Points, tmp_path: Path, weighted: int
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(2):
        frame = table(points, slice(300 * number, 300 * number + 300))
        more = {"weight": np.arange(300) + 1.0} if number == weighted else {}
        frame.assign(**more).to_csv(folder / f"{number}.csv", index=False)
    with fails(UnitsFailed, "1.csv", "weight", "--ignore weight"):
        scored(folder, tmp_path / "out")
    numbers = scored(folder, tmp_path / "out", "--ignore", "weight")
    check_brier(numbers, points[0][:600], points[1][:600])


@pytest.mark.parametrize("how", ["appended", "halved", "rewritten", "replaced", "removed"])
@pytest.mark.parametrize("form", ["csv", "parquet", "npz"])
@pytest.mark.usefixtures("small_batches")
def test_a_shard_that_changes_during_the_pass_is_an_error(
    points: Points, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, how: str
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(2):
        rows = slice(450 * number, 450 * number + 450)
        path = folder / f"{number}.{form}"
        if form == "npz":
            np.savez(path, probabilities=points[0][rows], labels=points[1][rows])
        else:
            write = pd.DataFrame.to_csv if form == "csv" else pd.DataFrame.to_parquet
            write(table(points, rows), path, index=False)
    content, batches_read = path.read_bytes(), list[int]()

    def changed(shard: Path, *others: Any) -> Any:
        for batch in labelled(shard, *others):
            batches_read.append(0)
            if len(batches_read) == 6:  # the second one of the second shard
                change(path, content, how)
            yield batch

    monkeypatch.setattr(sums, "labelled", changed)
    with fails((UnitsFailed, ValueError), path.name, "changed during the pass", "again"):
        scored(folder, tmp_path / "out", "--jobs", "1")
    assert not (tmp_path / "out/streaming.json").exists()


def change(path: Path, content: bytes, how: str) -> None:
    """Change a file as other programs do."""
    before = path.stat()
    if how == "appended":
        path.write_bytes(content + content[-100:])
    elif how == "halved":
        with path.open("r+b") as file:
            file.truncate(len(content) // 2)
    elif how == "removed":
        path.unlink()
    elif how == "rewritten":
        path.write_bytes(content)
    else:
        new = path.with_suffix(".new")
        new.write_bytes(content)
        new.replace(path)
    if path.exists():
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_shard_that_changes_after_it_was_read_is_an_error(
    shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(path: Path, *others: Any) -> Any:
        if path.name == "1.parquet":
            change(shards / "0.parquet", (shards / "0.parquet").read_bytes(), "rewritten")
        return labelled(path, *others)

    monkeypatch.setattr(sums, "labelled", changed)
    with refuses(number="0.parquet", fix="again"):
        scored(shards, tmp_path / "out", "--jobs", "1")


def test_a_shard_of_the_same_size_and_time_is_read_again(points: Points, tmp_path: Path) -> None:
    path, (p, labels) = tmp_path / "a.npz", points
    np.savez(path, probabilities=p, labels=labels)
    before = path.stat()
    scored(path, tmp_path / "out")
    np.savez(tmp_path / "b.npz", probabilities=p[:, [1, 2, 0]], labels=labels)
    path.write_bytes((tmp_path / "b.npz").read_bytes())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size
    check_brier(scored(path, tmp_path / "out"), p[:, [1, 2, 0]], labels)


def sums_file(output: Path) -> Path:
    """The file of the sums of the first shard."""
    return sorted((output / "data/shards").rglob("*.npz"))[0]


@pytest.mark.parametrize("how", ["halved", "empty", "text", "no record", "a folder of its name"])
def test_sums_that_cannot_be_read_are_made_again(shards: Path, tmp_path: Path, how: str) -> None:
    whole = scored(shards, tmp_path / "out")
    path = sums_file(tmp_path / "out")
    content = path.read_bytes()
    if how == "no record":
        write_npz(path, **read_npz(path))
    elif how == "a folder of its name":
        path.unlink()
        path.mkdir()
        with fails((UnitsFailed, OSError), path.name):
            scored(shards, tmp_path / "out")
        path.rmdir()
    else:
        path.write_bytes({"halved": content[:5000], "empty": b"", "text": b"text"}[how])
    assert scored(shards, tmp_path / "out") == whole


@pytest.mark.parametrize("how", ["missing", "of another kind", "objects", "unknown", "other sums"])
def test_sums_whose_arrays_are_others_are_one_line(shards: Path, tmp_path: Path, how: str) -> None:
    scored(shards, tmp_path / "out")
    path = sums_file(tmp_path / "out")
    arrays, record = read_npz(path), record_of(path)
    if how == "missing":
        del arrays["u_topk"]
    elif how == "of another kind":
        arrays["u_topk"] = np.array("text")
    elif how == "objects":
        arrays["u_topk"] = np.array([{}], dtype=object)
    elif how == "unknown":
        arrays["more"] = np.zeros(9)
    else:
        arrays["u_topk"] = arrays["u_cwe"]
    np.savez(path, allow_pickle=True, **arrays)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(RECORD, json.dumps(record))
    with refuses(file=path, fix="delete it"):
        scored(shards, tmp_path / "out")
