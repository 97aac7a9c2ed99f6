"""No shard counts twice, and none may change during the pass."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.pipeline.own.streaming.streams import (
    Points,
    change,
    check_brier,
    scored,
    table,
)
from tests.refusals import fails, refuses
from utility_calibration.pipeline.harness.workers import UnitsFailed
from utility_calibration.pipeline.own.points.by_parts import labelled
from utility_calibration.pipeline.own.streaming import sums


@pytest.mark.parametrize("how", ["form", "gz", "link", "hard link", "copy", "order"])
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
        frame.sample(frac=1, random_state=0).to_parquet(second)
    with refuses(number=str(first)):
        scored(folder, tmp_path / "out")
    second.unlink()
    assert scored(folder, tmp_path / "out")["uncalibrated"]["n"] == 600


@pytest.mark.parametrize(
    ("form", "how"),
    [
        *(("csv", how) for how in ("appended", "halved", "rewritten", "replaced", "removed")),
        *((form, how) for form in ("parquet", "npz") for how in ("halved", "removed")),
    ],
)
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


def test_a_shard_without_rows_may_be_removed(points: Points, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    table(points, slice(300)).to_csv(folder / "a.csv", index=False)
    table(points, slice(0)).to_csv(folder / "b.csv", index=False)
    with fails(UnitsFailed, "b.csv", "no rows", "remove the file"):
        scored(folder, tmp_path / "out")
    (folder / "b.csv").unlink()
    assert scored(folder, tmp_path / "out")["uncalibrated"]["n"] == 300
