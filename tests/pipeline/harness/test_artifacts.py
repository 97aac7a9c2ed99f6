"""Files are whole or not there, whatever happens while they are written."""

import errno
import resource
import signal
import zipfile

import numpy as np
import pytest

from pipeline.harness.artifacts import (
    CorruptFile,
    read_json,
    read_npz,
    sha256_of,
    sha256_of_json,
    write_json,
    write_npz,
)


def test_npz_round_trip_and_equal_bytes(tmp_path):
    arrays = {"logits": np.arange(6.0).reshape(2, 3), "labels": np.array([0, 2])}
    first, second = tmp_path / "a" / "first.npz", tmp_path / "second.npz"
    write_npz(first, **arrays)
    write_npz(second, **arrays)
    with zipfile.ZipFile(first) as archive:  # a date would make other bytes two seconds later
        assert {one.date_time for one in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    assert first.read_bytes() == second.read_bytes()
    for name, array in read_npz(first).items():
        np.testing.assert_array_equal(array, arrays[name])


def test_json_takes_numpy_and_paths(tmp_path):
    path = write_json(tmp_path / "x.json", {"a": np.float64(0.5), "b": np.arange(2), "c": tmp_path})
    assert read_json(path) == {"a": 0.5, "b": [0, 1], "c": str(tmp_path)}
    with pytest.raises(TypeError, match="set"):
        write_json(tmp_path / "x.json", {1, 2})
    assert read_json(path)["a"] == 0.5


def test_canonical_hash_ignores_key_order():
    assert sha256_of_json({"a": 1, "b": [1.5]}) == sha256_of_json({"b": [1.5], "a": 1})
    assert sha256_of_json({"a": 1}) != sha256_of_json({"a": 2})


def test_full_disk_keeps_the_old_file(tmp_path):
    path = tmp_path / "x.npz"
    write_npz(path, a=np.zeros(3))
    before = path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))  # writing beyond it fails
    try:
        with pytest.raises(OSError) as caught:
            write_npz(path, a=np.zeros(100_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert caught.value.errno == errno.EFBIG
    assert str(path) in str(caught.value)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_truncated_npz_is_one_line(tmp_path):
    path = tmp_path / "x.npz"
    write_npz(path, a=np.arange(100.0))
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(CorruptFile, match=r"x\.npz: [^\n]*delete it and rerun$"):
        read_npz(path)


def test_checksum(tmp_path):
    (tmp_path / "x").write_bytes(b"abc")
    assert sha256_of(tmp_path / "x").startswith("ba7816bf")
