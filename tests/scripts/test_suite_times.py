"""suite_times: sums by stage, calibrator and benchmark; a partial folder from before is scaled."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from scripts import suite_times

NOW = {
    "runs/cifar10_resnet/dirichlet/split-0/run-fit.json": 10,
    "runs/cifar10_resnet/dirichlet/split-1/run-fit.json": 14,
    "runs/cifar10_resnet/dirichlet/split-0/run-metrics.json": 1,
    "runs/cifar10_resnet/dirichlet/split-1/run-metrics.json": 1,
    "runs/cifar10_resnet/dirichlet/split-0/run-metrics-paper_batches.json": 1000,
    "runs/cifar100_resnet/dirichlet/split-0/run-fit.json": 60,
    "runs/cifar100_resnet/temperature/split-0/run-fit.json": 4,
    "dynamics/cifar100_resnet-aligned/run.json": 10,
}
BEFORE = {
    "runs/cifar10_resnet/dirichlet/split-1/run-fit.json": 24,
    "runs/cifar100_resnet/temperature/split-0/run-fit.json": 12,
    "runs/cifar100_resnet/vector/split-0/run-fit.json": 7,
    "dynamics/cifar100_resnet-aligned/run.json": 30,
}


def folder(path: Path, seconds: dict[str, int]) -> Path:
    for name, value in seconds.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(json.dumps({"seconds": value}))
    return path


def written(tmp_path: Path, *more: str) -> tuple[list[dict[str, str]], str]:
    results = folder(tmp_path / "now", NOW)
    output = tmp_path / "speed"
    assert suite_times.main([str(results), "--output", str(output), *more]) == 0
    with (output / "suite_times.csv").open(newline="") as file:
        return list(csv.DictReader(file)), (output / "suite_times.md").read_text()


def test_seconds_are_summed_over_splits_and_shares_add_up(tmp_path: Path) -> None:
    rows, text = written(tmp_path)
    found = {(r["stage"], r["benchmark"], r["calibrator"]): float(r["seconds"]) for r in rows}
    assert found == {
        ("fit", "cifar100_resnet", "dirichlet"): 60,
        ("fit", "cifar10_resnet", "dirichlet"): 24,
        ("fit", "cifar100_resnet", "temperature"): 4,
        ("evaluate", "cifar10_resnet", "dirichlet"): 2,
        ("dynamics", "cifar100_resnet", "aligned"): 10,
    }
    assert sum(float(row["share"]) for row in rows) == pytest.approx(1)
    lines = text.splitlines()
    assert "| fit | 4 | 88.0 | 88.0% |" in lines
    assert "| fit | dirichlet | 3 | 84.0 | 84.0% |" in lines
    assert "| cifar100_resnet | 3 | 74.0 | 74.0% |" in lines
    assert "| Total | 7 | 100.0 | 100.0% |" in lines
    assert "Before" not in text
    stages = [line.split(" | ")[:2] for line in lines if line.count("|") == 6][2:]
    assert stages == [
        ["| fit", "dirichlet"],
        ["| fit", "temperature"],
        ["| evaluate", "dirichlet"],
        ["| dynamics", "aligned"],
        ["| Total", ""],
    ]


def test_files_of_a_name_stand_beside_the_others_and_tell_splits_and_memory(
    tmp_path: Path,
) -> None:
    _, text = written(tmp_path)
    assert "Splits run of each benchmark and calibrator: 1 to 2.\n" in text
    unit = tmp_path / "now/runs/cifar10_resnet/dirichlet/split-0/run-fit.json"
    unit.write_text(json.dumps({"seconds": 10, "peak_megabytes": 2345}))
    options = ["--output", str(tmp_path / "speed"), "--name", "large"]
    assert suite_times.main([str(tmp_path / "now"), *options]) == 0
    named = (tmp_path / "speed/suite_times_large.md").read_text()
    assert "Largest resident memory of a process: 2,345 MiB." in named
    assert (tmp_path / "speed/suite_times_large.csv").exists()
    assert (tmp_path / "speed/suite_times.md").read_text() == text


def test_before_is_scaled_to_as_many_splits_and_compared_where_both_have_it(
    tmp_path: Path,
) -> None:
    before = folder(tmp_path / "before", BEFORE)
    rows, text = written(tmp_path, "--before", str(before))
    compared = {
        (row["stage"], row["benchmark"], row["calibrator"]): (
            row["before_splits"],
            row["before_seconds"],
            row["ratio"],
        )
        for row in rows
    }
    assert compared["fit", "cifar10_resnet", "dirichlet"] == ("1", "48.0", "2.0")
    assert compared["fit", "cifar100_resnet", "dirichlet"] == ("0", "", "")
    assert compared["dynamics", "cifar100_resnet", "aligned"] == ("1", "30.0", "3.0")
    lines = text.splitlines()
    assert "| fit | temperature | 1 | 4.0 | 4.0% | 12.0 | 3× |" in lines
    assert "| fit | dirichlet | 3 | 84.0 | 84.0% | 48.0 * | 2× * |" in lines
    assert "| evaluate | dirichlet | 2 | 2.0 | 2.0% |  |  |" in lines
    assert "| Total | 7 | 100.0 | 100.0% | 90.0 * | 2.37× * |" in lines
    assert "mean per split counts: fit cifar10_resnet/dirichlet." in text
    assert "evaluate cifar10_resnet/dirichlet, fit cifar100_resnet/dirichlet." in text
    assert "Measured before only, counted nowhere: fit cifar100_resnet/vector." in text


def test_a_suite_selects_what_it_lists(tmp_path: Path) -> None:
    more = {
        "runs/digits/dirichlet/split-0/run-fit.json": 1,
        "runs/cifar10_resnet/isotonic_raw/split-0/run-fit.json": 1,
        "dynamics/digits-aligned/run.json": 1,
    }
    folder(tmp_path / "now", more)
    everything, _ = written(tmp_path)
    listed, _ = written(tmp_path, "--suite", "cifar")
    assert (len(everything), len(listed)) == (8, 5)


@pytest.mark.parametrize("content", ["{", "{}", None])
def test_what_cannot_be_read_is_said(
    content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        path = tmp_path / "runs/digits/vector/split-0/run-fit.json"
        path.parent.mkdir(parents=True)
        path.write_text(content)
    with pytest.raises(SystemExit):
        suite_times.main([str(tmp_path), "--output", str(tmp_path / "speed")])
    assert "run-fit.json" in capsys.readouterr().err
    assert not (tmp_path / "speed").exists()
