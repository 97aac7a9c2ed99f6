"""Archives from anywhere: whatever header and directory claim, one line and little memory."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from metrics import InputError
from metrics.archive import array_headers, array_names, read_arrays


def npy(shape: str, dtype: str = "<f8", content: bytes = b"") -> bytes:
    """An .npy file whose header says what it likes."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (63 - (len(header) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + content


def archive_of(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


def refused(path: Path, **options) -> str:
    with pytest.raises(InputError) as caught:
        read_arrays(path, **options)
    line = str(caught.value)
    assert line.startswith(f"{path}: ") and line.isprintable(), line
    assert len(line) < len(str(path)) + 300
    return line


def test_arrays_come_back_as_they_were_saved(tmp_path):
    random = np.random.default_rng(0)
    arrays = {
        "logits": random.normal(size=(1000, 30)).astype(np.float32),
        "columns": np.asfortranarray(random.normal(size=(3, 4))),
        "big_endian": np.arange(3, dtype=">i4"),
        "names": np.array(["cat", "élan"]),
        "text": np.asarray("a string"),
        "empty": np.zeros((0, 3)),
    }
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "x.npz", **arrays)
        found = read_arrays(tmp_path / "x.npz")
        assert list(found) == list(arrays) == array_names(tmp_path / "x.npz")
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)
            assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
            assert found[name].flags.writeable


def test_only_the_names_asked_for_are_unpacked(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.zeros(3), b=np.array([{}], dtype=object))
    assert list(read_arrays(tmp_path / "x.npz", only=("a", "absent"))) == ["a"]
    assert "array `b` holds Python objects" in refused(tmp_path / "x.npz", only=("b",))


@pytest.mark.parametrize("held", [0, 16, 32])
def test_more_or_fewer_bytes_than_the_shape_needs(tmp_path, held):
    path = archive_of(tmp_path / "x.npz", a=npy("(3,)", content=bytes(held)))
    assert "array `a` of shape [3] needs 24 bytes" in refused(path)


def test_an_array_above_the_limit_is_refused_before_it_is_unpacked(tmp_path):
    path = archive_of(tmp_path / "x.npz", a=npy("(100,)", content=bytes(800)))
    assert "`a` takes 928 bytes unpacked, the limit is 900" in refused(path, limit=900)
    assert len(read_arrays(path, limit=928)["a"]) == 100


def test_a_single_array_is_no_archive(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(3))
    assert "a single array, not an npz" in refused(tmp_path / "x.npy")


def test_a_mapped_array_takes_no_memory_and_is_not_written_back(tmp_path):
    path = tmp_path / "x.npz"
    random = np.random.default_rng(0)
    arrays = {
        "odd": np.arange(3, dtype=np.uint8),  # what follows does not begin at a multiple of 4
        "logits": random.normal(size=(100, 3)).astype(np.float32),
        "columns": np.asfortranarray(random.normal(size=(3, 4))),
        "empty": np.zeros((0, 3)),
    }
    np.savez(path, **arrays)
    before = path.read_bytes()
    found = read_arrays(path, mapped=list(arrays), limit=0)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert (found[name].dtype, type(found[name])) == (array.dtype, np.ndarray)
    found["logits"][:] = 0
    assert path.read_bytes() == before


def test_a_compressed_array_is_read_instead_of_mapped_within_the_limit(tmp_path):
    path, array = tmp_path / "x.npz", np.zeros((100, 3), np.float32)
    np.savez_compressed(path, logits=array)
    np.testing.assert_array_equal(read_arrays(path, mapped=("logits",))["logits"], array)
    line = refused(path, mapped=("logits",), limit=100)
    assert "takes 1,328 bytes unpacked" in line and "uncompressed (numpy.savez)" in line


@pytest.mark.parametrize("mapped", [(), ("logits",)])
def test_a_damaged_array_is_neither_read_nor_mapped(tmp_path, mapped):
    path = tmp_path / "x.npz"
    np.savez(path, logits=np.zeros((1000, 3), np.float32))
    whole = path.read_bytes()
    path.write_bytes(whole[:-2000])
    assert "truncated or damaged" in refused(path, mapped=mapped)
    changed = bytearray(whole)
    changed[5000] ^= 1
    path.write_bytes(changed)
    assert "truncated or damaged" in refused(path, mapped=mapped)


def test_headers_tell_shapes_types_and_what_can_be_mapped(tmp_path):
    for save, mapped in ((np.savez, True), (np.savez_compressed, False)):
        save(tmp_path / "x.npz", a=np.zeros((5, 2), np.float32), b=np.zeros(3))
        header = array_headers(tmp_path / "x.npz", only=("a", "c"))
        assert list(header) == ["a"]
        assert header["a"][:3] == ((5, 2), np.dtype(np.float32), mapped)
