"""What a folder of shards holds, and what is told of rows that are left out."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.pipeline.own.streaming.streams import Points, scored, table
from tests.refusals import fails, refuses
from utility_calibration.pipeline.harness.workers import UnitsFailed
from utility_calibration.pipeline.own.words.forms import left_out_below, shards_of


@pytest.mark.parametrize("inner", ["x", "part=1/day=2", "x.parquet"])
@pytest.mark.parametrize("beside", [True, False])
def test_files_in_deeper_folders_are_not_left_out_silently(
    tmp_path: Path, points: Points, capsys: Any, inner: str, beside: bool
) -> None:
    folder = tmp_path / "all of Ann's"
    (folder / inner).mkdir(parents=True)
    table(points, slice(0, 300)).to_csv(folder / inner / "b.csv", index=False)
    if beside:
        table(points, slice(300, 900)).to_csv(folder / "a.csv", index=False)
    if beside:
        assert scored(folder, tmp_path / "out")["uncalibrated"]["n"] == 600
        assert "1 files in deeper folders" in capsys.readouterr().out
    else:
        with refuses(file=folder, fix="**"):
            scored(folder, tmp_path / "out")
    pattern = folder / "**" / "*.csv"
    fix = str(left_out_below(folder)).partition("to read them: ")[2]
    assert shlex.split(fix) == [str(pattern)]
    assert len(shards_of(pattern)) == 1 + beside
    assert scored(pattern, tmp_path / "out")["uncalibrated"]["n"] == 300 + 600 * beside


def test_hidden_folders_hold_no_shards(tmp_path: Path, points: Points) -> None:
    for name in (".cache", "_temporary"):
        (tmp_path / "all" / name).mkdir(parents=True)
        table(points, slice(0, 300)).to_csv(tmp_path / "all" / name / "b.csv", index=False)
    table(points, slice(0, 300)).to_csv(tmp_path / "all" / "a.csv", index=False)
    assert len(shards_of(tmp_path / "all")) == 1


@pytest.mark.parametrize("content", [(), ("notes.txt",), (".hidden.csv", "_SUCCESS")])
def test_a_folder_without_files_that_are_read_is_named_so(
    tmp_path: Path, content: tuple[str, ...]
) -> None:
    folder = tmp_path / "all"
    folder.mkdir()
    for name in content:
        (folder / name).write_text("a,b\n")
    with refuses(file=folder, fix="CSV", number="no file"):
        shards_of(folder)


def test_a_shard_without_rows_is_none_and_all_without_are_no_points(
    tmp_path: Path, points: Points
) -> None:
    folder = tmp_path / "all"
    folder.mkdir()
    table(points, slice(0, 0)).to_parquet(folder / "a.parquet")
    with refuses(file=folder / "a.parquet", fix="one case", number="no rows"):
        scored(folder, tmp_path / "out")
    table(points, slice(0, 300)).to_parquet(folder / "b.parquet")
    table(points, slice(0, 0)).to_parquet(folder / "c.parquet")
    assert scored(folder, tmp_path / "out")["uncalibrated"]["n"] == 300


@pytest.mark.parametrize(
    ("odd", "option"),
    [
        ("zzz", "--ignore-label zzz"),
        ("-100", "--ignore-label=-100"),
        ("no class", "--ignore-label 'no class'"),
    ],
)
def test_a_label_of_later_rows_is_left_out_as_the_message_says_and_all_are_counted(
    tmp_path: Path, points: Points, small_batches: None, capsys: Any, odd: str, option: str
) -> None:
    folder = tmp_path / "all"
    folder.mkdir()
    for number in range(3):
        shard: pd.DataFrame = table(points, slice(300 * number, 300 * number + 300))
        if number:
            shard.loc[shard.index[250:], "label"] = odd
        shard.to_csv(folder / f"{number}.csv", index=False)
    with fails(UnitsFailed, option):
        scored(folder, tmp_path / "out")
    numbers = scored(folder, tmp_path / "out", f"--ignore-label={odd}")
    assert numbers["uncalibrated"]["n"] == 800
    assert f"100 cases with the label {odd} are left out" in capsys.readouterr().out
