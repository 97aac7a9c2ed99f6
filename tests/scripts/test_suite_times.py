"""suite_times: sums over the units that ran; of a unit the last line counts, of a failure none."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from scripts import suite_times

LINES = [
    ("fit", "cifar10", "dirichlet", 0, 99.0, None),
    ("fit", "cifar10", "dirichlet", 0, 10.0, None),
    ("fit", "cifar10", "dirichlet", 1, 14.0, None),
    ("fit", "cifar10", "vector", 0, 5.0, "no memory"),
    ("evaluate", "cifar10", "dirichlet", 0, 1.0, None),
]
NAMES = ("stage", "benchmark", "calibrator", "split", "seconds", "error")


def test_seconds_are_summed(tmp_path: Path) -> None:
    lines = [json.dumps(dict(zip(NAMES, line, strict=True)) | {"memory_mib": 5}) for line in LINES]
    (tmp_path / "host.jsonl").write_text("\n".join(lines) + "\n")
    assert suite_times.main([str(tmp_path), "--output", str(tmp_path), "--name", "mine"]) == 0
    found = pd.read_csv(tmp_path / "suite_times_mine.csv").set_index(suite_times.KEY)
    assert found.seconds.to_dict() == {
        ("fit", "cifar10", "dirichlet"): 24,
        ("evaluate", "cifar10", "dirichlet"): 1,
    }
    assert "| fit | 2 | 24.0 | 96.0% |" in (tmp_path / "suite_times_mine.md").read_text()
