"""How the tests score a stream, and what they do to its files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from utility_calibration.metrics import brier_score
from utility_calibration.pipeline.harness.artifacts import read_json
from utility_calibration.pipeline.own.request.options import parsed
from utility_calibration.pipeline.own.running.run import run

NAMES = ["ant", "bee", "cat"]
Points = tuple[Any, Any]


def scored(file: Path, output: Path, *more: str) -> Any:
    run(parsed("", [str(file), "--output", str(output), "--stream", *more]))
    return read_json(output / "streaming.json")


def check_brier(numbers: Any, p: Any, labels: Any, method: str = "uncalibrated") -> None:
    """A method has the Brier score of these probabilities."""
    assert numbers[method]["brier"] == pytest.approx(brier_score(p, labels), abs=1e-6)


def table(points: Points, rows: slice) -> pd.DataFrame:
    """Some of the points as a table."""
    p, labels = points
    frame = pd.DataFrame(p[rows], columns=[f"p_{name}" for name in NAMES])
    return frame.assign(label=np.array(NAMES)[labels[rows]])


def saved(calibrator: Any, path: Path, takes: str = "probabilities", names: Any = NAMES) -> Path:
    """A calibrator's file as `score --save` writes it."""
    calibrator.takes_ = takes
    if names is not None:
        calibrator.class_names_ = np.array(names)
    return Path(calibrator.save(path))


def reports(folder: Path) -> set[str]:
    """The names of the files that lie in a folder, without hidden ones."""
    return {one.name for one in folder.iterdir() if one.is_file() and one.name[0] != "."}


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


def sums_file(output: Path) -> Path:
    """The file of the sums of the first shard."""
    return sorted((output / "data/shards").rglob("*.npz"))[0]
