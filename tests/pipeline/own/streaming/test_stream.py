"""`score --stream`: one pass over shards gives the numbers of the whole, also after a kill."""

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
    reports,
    saved,
    scored,
    table,
)
from tests.refusals import refuses
from tests.scripts.conftest import quick
from utility_calibration.calibrators import LogitShiftPatching, TemperatureScaling, VectorScaling
from utility_calibration.metrics import ClassWise, TopK, accuracy, brier_score
from utility_calibration.pipeline.harness.artifacts import read_json
from utility_calibration.pipeline.harness.run_log import last_errors
from utility_calibration.pipeline.own.points.by_parts import labelled
from utility_calibration.pipeline.own.streaming import stream, sums


@pytest.mark.usefixtures("small_batches")
def test_a_folder_a_pattern_a_table_and_arrays_give_the_numbers_of_the_whole(
    shards: Path, points: Points, tmp_path: Path
) -> None:
    p, labels = points
    frames = [pd.read_parquet(file) for file in sorted(shards.iterdir())]
    pd.concat(frames).to_csv(tmp_path / "all.csv", index=False)
    np.savez(tmp_path / "all.npz", probabilities=p, labels=labels)
    files = shards, shards / "*.parquet", tmp_path / "all.csv", tmp_path / "all.npz"
    results = [scored(file, tmp_path / f"out{k}")["uncalibrated"] for k, file in enumerate(files)]
    for numbers in results:
        assert numbers["n"] == 900
        assert numbers["accuracy"] == pytest.approx(accuracy(p, labels))
        assert numbers["brier"] == pytest.approx(brier_score(p, labels), abs=1e-6)
        for key, utility in {"u_cwe": ClassWise(), "u_topk": TopK()}.items():
            exact = utility.calibration_errors(p, labels).max()
            assert numbers[key]["lower"] - 1e-6 <= exact <= numbers[key]["upper"] + 1e-6
            assert numbers[key]["lower"] == pytest.approx(results[0][key]["lower"], abs=1e-12)


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


def test_the_share_of_points_with_several_most_probable_classes_is_told(
    points: Points, tmp_path: Path
) -> None:
    p, labels = points
    tied = np.where(np.arange(len(p))[:, None] % 4 == 0, 1 / p.shape[1], p)
    table((tied, labels), slice(400)).to_csv(tmp_path / "a.csv", index=False)
    assert scored(tmp_path / "*.csv", tmp_path / "out")["uncalibrated"]["tied_share"] == 0.25
    assert "25 % of the points" in (tmp_path / "out" / "streaming.md").read_text()
