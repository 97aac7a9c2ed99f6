"""Which options one pass takes, and when a file is read in one pass."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.pipeline.own.streaming.streams import (
    Points,
    check_brier,
    scored,
)
from tests.refusals import fails, refuses
from utility_calibration.pipeline.harness.parameters import UsageError
from utility_calibration.pipeline.own.reading import parts
from utility_calibration.pipeline.own.request import one_pass
from utility_calibration.pipeline.own.request.options import parsed


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
        one_pass.shards_to_stream(
            parsed("", [str(tmp_path / "a.npz"), "--stream", *options.split()])
        )


def test_a_large_file_is_read_as_a_whole_for_what_needs_all_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_pass, "is_too_large", lambda path: True)
    path = str(tmp_path / "a.npz")
    assert one_pass.shards_to_stream(parsed("", [path]))
    assert not one_pass.shards_to_stream(parsed("", [path, "--groups", "site", "--quick"]))
    with fails(UsageError, "--quick"):
        one_pass.shards_to_stream(parsed("", [path, "--quick"]))


@pytest.mark.parametrize("name", ["split", "cluster", "groups"])
def test_a_purpose_that_needs_all_points_is_refused_with_the_option_to_do_without(
    points: Points, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    p, y = points
    words = np.array(["calibration", "test"])[np.arange(900) // 450]
    np.savez(tmp_path / "a.npz", probabilities=p, labels=y, **{name: words})
    with refuses(name, fix=f"--ignore {name}"):
        scored(tmp_path / "a.npz", tmp_path / "out")
    monkeypatch.setattr(parts, "ROWS", 100)  # the first rows all say `calibration`
    with refuses(name, fix=f"--ignore {name}"):
        scored(tmp_path / "a.npz", tmp_path / "out")
    numbers = scored(tmp_path / "a.npz", tmp_path / "out", "--ignore", name)
    check_brier(numbers, p, y)


def test_a_name_to_ignore_that_no_shard_has_is_refused(shards: Path, tmp_path: Path) -> None:
    last = pd.read_parquet(shards / "2.parquet").assign(note="a")
    last.to_parquet(shards / "2.parquet", index=False)
    assert scored(shards, tmp_path / "out", "--ignore", "note")["uncalibrated"]["n"] == 900
    with refuses("--ignore", fix="note"):
        scored(shards, tmp_path / "out", "--ignore", "nota")


def test_one_column_is_named_by_an_option(points: Points, tmp_path: Path) -> None:
    p, y = points[0][:, 0], (points[1] == 0) * 1
    columns = {"mine": np.log(p / (1 - p)), "p_1": np.roll(p, 1), "label": y}
    pd.DataFrame(columns).to_csv(tmp_path / "a.csv", index=False)
    numbers = scored(tmp_path / "a.csv", tmp_path / "out", "--logits", "mine")
    check_brier(numbers, p, y)
