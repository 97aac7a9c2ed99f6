"""An npz with its record inside, and the record's copy beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pipeline.harness import archives
from pipeline.harness.archives import Archive
from pipeline.harness.artifacts import read_record, save_npz, write_text


def of(number: int) -> Callable[[Path], None]:
    return lambda path: save_npz(path, {"a": np.full(3, number)})


def test_a_copy_that_is_gone_or_of_another_file_is_written_again(tmp_path):
    archive = Archive(tmp_path / "fit.npz", "sha256", "fit")
    archive.publish(of(1), {"hash": "one"})
    kept = archive.json.read_bytes()
    for damage in (b"", kept.replace(b"one", b"two")):
        archive.json.write_bytes(damage)
        archive.restore_json()
        assert archive.json.read_bytes() == kept


def test_a_copy_restored_while_another_process_publishes_is_the_new_ones(
    tmp_path, monkeypatch: pytest.MonkeyPatch
):
    archive = Archive(tmp_path / "fit.npz", "sha256", "fit")
    archive.publish(of(1), {"hash": "one"})
    archive.json.unlink()
    others = [of(2)]

    def slow(path: Path, text: str) -> Path:
        if others:  # between this process's look at the file and its copy
            archive.publish(others.pop(), {"hash": "two"})
        return write_text(path, text)

    monkeypatch.setattr(archives, "write_text", slow)
    archive.restore_json()
    assert not others
    assert read_record(archive.json) == archive.record()
    assert archive.record()["hash"] == "two"
