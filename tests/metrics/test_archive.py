"""Archives from anywhere: whatever header and directory claim, one line and little memory."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import metrics
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


def test_records_are_no_array_of_numbers(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.zeros(3, dtype=[("x", float), ("y", int)]))
    assert "array `a` holds records" in refused(tmp_path / "x.npz")


@pytest.mark.parametrize(
    "shape", ["(1000000000000, 3)", "(12, 36893488147419103232)", "(True, 3)", "(-1, 3)", "(2.0,)"]
)
def test_impossible_shapes(tmp_path, shape):
    refused(archive_of(tmp_path / "x.npz", logits=npy(shape, content=bytes(24))))


@pytest.mark.parametrize("held", [0, 8, 16, 32])
def test_more_or_fewer_bytes_than_the_shape_needs(tmp_path, held):
    path = archive_of(tmp_path / "x.npz", a=npy("(3,)", content=bytes(held)))
    assert "array `a` of shape [3] needs 24 bytes" in refused(path)


def test_an_array_above_the_limit_is_refused_before_it_is_unpacked(tmp_path):
    path = archive_of(tmp_path / "x.npz", a=npy("(100,)", content=bytes(800)))
    assert "`a` takes 928 bytes unpacked, the limit is 900" in refused(path, limit=900)
    assert len(read_arrays(path, limit=928)["a"]) == 100


# Compression method, version needed, and flags, in the directory and in the member's own header.
PLACES = {"compression": (10, 8), "version": (6, 4), "flags": (8, 6)}


@pytest.mark.parametrize("field", PLACES)
@pytest.mark.parametrize("value", [1, 99])
def test_zip_features_that_nobody_knows(tmp_path, field, value):
    content = bytearray(
        archive_of(tmp_path / "x.npz", a=npy("(3,)", content=bytes(24))).read_bytes()
    )
    directory = content.rindex(b"PK\x01\x02")
    content[directory + PLACES[field][0]] = content[PLACES[field][1]] = value
    if field == "version" and value == 1:
        return  # an old version is fine
    (tmp_path / "x.npz").write_bytes(content)
    assert "not readable as npz" in refused(tmp_path / "x.npz")


def test_a_name_that_stands_twice(tmp_path):
    with (
        pytest.warns(UserWarning, match="Duplicate name"),
        zipfile.ZipFile(tmp_path / "x.npz", "w") as archive,
    ):
        archive.writestr("a.npy", npy("(1,)", content=bytes(8)))
        archive.writestr("a.npy", npy("(1,)", content=bytes(8)))
    assert "two arrays are called `a`" in refused(tmp_path / "x.npz")


def test_names_cannot_write_to_the_terminal(tmp_path):
    refused(archive_of(tmp_path / "x.npz", **{"\x1b[31mred\nline": npy("(9,)")}))


@pytest.mark.parametrize("seed", range(10))
def test_flipped_bytes_are_told_or_without_effect(tmp_path, seed):
    buffer = io.BytesIO()
    arrays = {"logits": np.arange(12.0).reshape(4, 3), "labels": np.arange(4)}
    np.savez_compressed(buffer, **arrays)
    content, random = bytearray(buffer.getvalue()), np.random.default_rng(seed)
    for place in random.integers(0, len(content), 3):
        content[place] = random.integers(0, 256)
    (tmp_path / "x.npz").write_bytes(content)
    try:
        found = read_arrays(tmp_path / "x.npz")
    except InputError as error:
        assert str(error).isprintable()
    else:
        for name in found.keys() & arrays.keys():
            np.testing.assert_array_equal(found[name], arrays[name])


LITTLE_MEMORY = """
import resource, sys
from metrics.archive import read_arrays
held = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + (64 << 20),) * 2)
print(sorted(read_arrays(sys.argv[1], only=("labels",))))
try:
    read_arrays(sys.argv[1])
except ValueError as error:
    print(error)
"""


def test_an_unused_large_member_costs_nothing_and_too_little_memory_is_one_line(tmp_path):
    np.savez_compressed(tmp_path / "x.npz", labels=np.arange(3), other=np.zeros(1 << 25))
    run = subprocess.run(
        [sys.executable, "-c", LITTLE_MEMORY, str(tmp_path / "x.npz")],
        cwd=Path(metrics.__file__).parents[1], capture_output=True, text=True, check=True,
    )  # fmt: skip
    first, second = run.stdout.splitlines()
    assert first == "['labels']"
    assert second == f"{tmp_path / 'x.npz'}: too large for the memory; save fewer rows"


def test_a_single_array_and_an_unknown_version_of_npy(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(3))
    assert "a single array, not an npz" in refused(tmp_path / "x.npy")
    later = npy("(1,)", content=bytes(8)).replace(b"NUMPY\x01", b"NUMPY\x03")
    assert "version (3, 0) of npy" in refused(archive_of(tmp_path / "x.npz", a=later))


def test_an_array_that_ends_early_although_the_directory_says_otherwise(tmp_path):
    """The checksum is that of what there is, so it alone would not tell."""
    member = npy("(3,)", content=bytes(16))  # of 24 bytes
    content = bytearray(archive_of(tmp_path / "x.npz", a=member).read_bytes())
    directory = content.rindex(b"PK\x01\x02")
    content[directory + 24 : directory + 28] = (len(member) + 8).to_bytes(4, "little")
    (tmp_path / "x.npz").write_bytes(content)
    assert "array `a` is truncated" in refused(tmp_path / "x.npz")


def test_an_array_that_does_not_fit_the_memory_is_one_line(tmp_path, monkeypatch):
    """Below the limit of sizes, but the machine has less."""

    def too_large(*_):
        raise MemoryError

    path = archive_of(tmp_path / "a.npz", labels=npy("(2,)", content=bytes(16)))
    assert read_arrays(path)["labels"].shape == (2,)
    monkeypatch.setattr("metrics.archive._read_member", too_large)
    assert "too large for the memory; save fewer rows" in refused(path)


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
    assert "takes 1,328 bytes unpacked" in line
    assert "save it uncompressed (numpy.savez)" in line


def test_a_damaged_array_is_not_mapped(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, logits=np.zeros((1000, 3), np.float32))
    whole = path.read_bytes()
    path.write_bytes(whole[:-2000])
    assert "truncated or damaged" in refused(path, mapped=("logits",))
    changed = bytearray(whole)
    changed[5000] ^= 1
    path.write_bytes(changed)
    assert "truncated or damaged" in refused(path, mapped=("logits",))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("logits.npy", npy("(10, 10)", content=bytes(8)))
    assert "needs 800 bytes, the file holds 8" in refused(path, mapped=("logits",))


def test_headers_tell_shapes_types_and_what_can_be_mapped(tmp_path):
    for save, mapped in ((np.savez, True), (np.savez_compressed, False)):
        save(tmp_path / "x.npz", a=np.zeros((5, 2), np.float32), b=np.zeros(3))
        header = array_headers(tmp_path / "x.npz", only=("a", "c"))
        assert header == {"a": ((5, 2), np.dtype(np.float32), mapped)}
