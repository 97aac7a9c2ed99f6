"""Sums of shards that are damaged are made again, or refused."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.pipeline.own.streaming.streams import (
    scored,
    sums_file,
)
from tests.refusals import fails, refuses
from utility_calibration.pipeline.harness.artifacts import read_npz, write_npz
from utility_calibration.pipeline.harness.cache import RECORD, record_of
from utility_calibration.pipeline.harness.workers import UnitsFailed


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
