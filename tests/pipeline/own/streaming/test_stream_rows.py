"""All rows of a stream are read as its first rows are, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.pipeline.own.streaming.streams import (
    NAMES,
    Points,
    check_brier,
    scored,
    table,
)
from tests.refusals import fails, refuses
from utility_calibration.pipeline.harness.workers import UnitsFailed
from utility_calibration.pipeline.own.request import one_pass
from utility_calibration.pipeline.own.request.options import parsed
from utility_calibration.pipeline.own.words.forms import shards_of


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
        count = sum((labels[300 * k + 10 * k :][: 300 - 10 * k] == 2).sum() for k in range(3))
        assert told[0] == f"{count} cases with the label 2 are left out"  # in all shards
        assert [line.partition(":")[0] for line in told[1:]] == ["1.npz, rows 0 to 299"]


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


def test_files_of_two_kinds_or_orders_are_refused(points: Points, tmp_path: Path) -> None:
    (p, y), swapped = points, [2, 0, 1]
    z, log_odds = np.log(p), np.log(p[:, 0] / (1 - p[:, 0]))
    moved = {"probabilities": p[:, swapped], "class_names": np.array(NAMES)[swapped]}
    pairs: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "probabilities": ({"logits": z}, {"probabilities": p}),
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


def test_what_does_not_fit_is_refused_with_its_place(shards: Path, tmp_path: Path) -> None:
    odd = pd.read_parquet(shards / "2.parquet")
    odd.loc[7, "label"] = "dog"
    odd.to_parquet(shards / "2.parquet", index=False)
    with fails(UnitsFailed, "labels", "row 7", "--ignore-label dog", "2.parquet"):
        scored(shards, tmp_path / "out")
    arrays = tmp_path / "arrays"
    arrays.mkdir()
    for classes in (2, 3):  # the first columns of the second file are not the classes
        p = np.full((9, classes), 1 / classes)
        np.savez(arrays / f"{classes}.npz", probabilities=p, labels=np.arange(9) % 2)
    with fails(UnitsFailed, "probabilities", "3.npz"):
        scored(arrays, tmp_path / "other")
    assert not one_pass.shards_to_stream(parsed("", [str(shards / "0.parquet")]))
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
