"""`score --stream`: one pass over shards gives the numbers of the whole, also after a kill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.refusals import refuses
from utility_calibration.calibrators import TemperatureScaling
from utility_calibration.metrics import ClassWise, TopK, accuracy, brier_score
from utility_calibration.pipeline.harness.artifacts import read_json, read_npz
from utility_calibration.pipeline.harness.command import UsageError
from utility_calibration.pipeline.own import batches, stream
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


def test_a_killed_run_resumes_at_the_shard(
    shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = scored(shards, tmp_path / "whole", "--methods", "temperature", "--sample", "200")
    monkeypatch.setattr(stream, "SECONDS_BETWEEN_SAVES", 0.0)
    read, add = [], stream._add

    def counted(given: Any, *others: Any) -> None:
        read.append(len(given.labels))
        if len(read) == 3:
            raise KeyboardInterrupt
        add(given, *others)

    monkeypatch.setattr(stream, "_add", counted)
    arguments = "--methods", "temperature", "--sample", "200"
    with pytest.raises(KeyboardInterrupt):
        scored(shards, tmp_path / "out", *arguments)
    again = scored(shards, tmp_path / "out", *arguments)
    assert len(read) == 4  # of which the third was interrupted
    assert again == whole
    assert whole["temperature"]["nll"] < whole["uncalibrated"]["nll"]
    assert whole["temperature"]["n"] == 900 - 200


def test_the_sample_depends_on_the_seed_alone(
    shards: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for rows, seed in ((10_000, "0"), (77, "0"), (77, "1")):
        monkeypatch.setattr(batches, "ROWS", rows)
        output = tmp_path / f"{rows}-{seed}"
        scored(shards, output, "--methods", "vector", "--sample", "100", "--seed", seed)
        (file,) = output.glob("data/stream/*/sample.npz")
        found.append(read_npz(file))
    one, same, other = found
    assert len(one["labels"]) == 100
    for name in one:
        np.testing.assert_array_equal(one[name], same[name])
    assert (one["numbers"] != other["numbers"]).any()


@pytest.mark.parametrize(("name", "shown"), [("a", "a"), ("uncalibrated", "uncalibrated.npz")])
def test_a_saved_calibrator_of_any_name_is_scored_beside_the_forecast(
    name: str, shown: str, points: Points, tmp_path: Path
) -> None:
    fitted = TemperatureScaling().fit(np.log(points[0]).astype(np.float32), points[1])
    path = fitted.save(tmp_path / f"{name}.npz")
    p = fitted.predict_proba(np.log(points[0]).astype(np.float32))
    np.savez(tmp_path / "all.npz", probabilities=points[0], labels=points[1])
    found = scored(tmp_path / "all.npz", tmp_path / "out", "--calibrator", str(path))
    for key, forecast in ((shown, p), ("uncalibrated", points[0])):
        check_brier(found, forecast, points[1], key)
    renamed = path.rename(tmp_path / "b.npz")  # the sums of the first run have no row of its name
    again = scored(tmp_path / "all.npz", tmp_path / "out", "--calibrator", str(renamed))
    assert again["b"] == found[shown]


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
        with refuses(field or "logits", number="1.npz"):
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
    with refuses("labels", row=7, fix="--classes", number="2.parquet"):
        scored(shards, tmp_path / "out")
    arrays = tmp_path / "arrays"
    arrays.mkdir()
    for classes in (2, 3):  # the first columns of the second file are not the classes
        p = np.full((9, classes), 1 / classes)
        np.savez(arrays / f"{classes}.npz", probabilities=p, labels=np.arange(9) % 2)
    with refuses("probabilities", number="3.npz"):
        scored(arrays, tmp_path / "other")
    with pytest.raises(UsageError, match="--groups"):
        stream.is_streamed(parsed("", [str(shards), "--groups", "site"]))
    assert not stream.is_streamed(parsed("", [str(shards / "0.parquet")]))
    with refuses(number="*.csv"):
        batches.shards_of(shards / "*.csv")


def test_a_short_first_shard_does_not_hide_that_labels_count_from_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for number, n in enumerate((12, 3000)):
        labels = rng.integers(0, 3, n)  # of four classes, the last one is in no shard
        logits = rng.normal(size=(n, 4)) + 2 * np.eye(4)[labels]
        np.savez(tmp_path / f"{number}.npz", logits=logits, labels=labels + 1)
    with refuses(field="labels", fix="class_names", number="1.npz"):
        scored(tmp_path, tmp_path / "out")
