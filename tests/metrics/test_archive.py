"""Archives from anywhere: whatever header and directory claim, one line and little memory."""

import io
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.refusals import fails, refuses
from utility_calibration.metrics import InputError
from utility_calibration.metrics.archive import array_headers, array_names, read_arrays

RANDOM = np.random.default_rng(0)
ARRAYS = {
    "odd": np.arange(3, dtype=np.uint8),  # what follows does not begin at a multiple of 4
    "logits": RANDOM.normal(size=(1000, 30)).astype(np.float32),
    "columns": np.asfortranarray(RANDOM.normal(size=(3, 4))),
    "big_endian": np.arange(3, dtype=">i4"),
    "names": np.array(["cat", "élan"]),
    "text": np.asarray("a string"),
    "empty": np.zeros((0, 3)),
}


def archive_of(path: Path, shape: str, content: bytes) -> Path:
    """A compressed npz of one array `a`, whose header says what it likes."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (63 - (len(header) + 10) % 64) + b"\n"
    npy = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + content
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", npy)
    return path


def refused(path: Path, *told: str, **options) -> None:
    with fails(InputError, str(path), *told):
        read_arrays(path, **options)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("mapped", [(), ARRAYS])
def test_arrays_come_back_as_they_were_saved_and_changes_are_not_written(tmp_path, save, mapped):
    path = tmp_path / "x.npz"
    save(path, **ARRAYS)
    before = path.read_bytes()
    is_mapped = bool(mapped) and save is np.savez
    found = read_arrays(path, mapped=mapped, **({"limit": 0} if is_mapped else {}))
    assert list(found) == list(ARRAYS) == array_names(path)
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name], array)
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert type(found[name]) is np.ndarray and found[name].flags.writeable
    found["logits"][:] = 0
    assert path.read_bytes() == before
    header = array_headers(path, only=("logits", "absent"))
    assert list(header) == ["logits"]
    assert header["logits"][:3] == ((1000, 30), np.dtype(np.float32), save is np.savez)


def test_only_the_names_asked_for_are_unpacked(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.zeros(3), b=np.array([{}], dtype=object))
    assert list(read_arrays(tmp_path / "x.npz", only=("a", "absent"))) == ["a"]
    refused(tmp_path / "x.npz", "`b`", "Python objects", only=("b",))


@pytest.mark.parametrize("other", ["a.npy", "a"])
def test_an_array_that_is_there_twice_is_refused(tmp_path, other):
    """NumPy and other programs differ in which of the two they read."""
    path = archive_of(tmp_path / "x.npz", "(3,)", bytes(24))
    with zipfile.ZipFile(path, "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr(other, b"")
    refused(path, "`a`")


@pytest.mark.parametrize("held", [0, 16, 32])
def test_more_or_fewer_bytes_than_the_shape_needs(tmp_path, held):
    path = archive_of(tmp_path / "x.npz", "(3,)", bytes(held))
    refused(path, "`a`", "[3]", "24")


@pytest.mark.parametrize("mapped", [(), ("a",)])
def test_an_array_above_the_limit_is_refused_before_it_is_unpacked(tmp_path, mapped):
    """A compressed array is read instead of mapped, so that the limit holds for it, too."""
    path = archive_of(tmp_path / "x.npz", "(100,)", bytes(800))
    refused(path, "`a`", "928", "900", "numpy.savez", limit=900, mapped=mapped)
    assert len(read_arrays(path, limit=928, mapped=mapped)["a"]) == 100


def test_a_single_array_is_no_archive(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(3))
    refused(tmp_path / "x.npy", "a single array")


@pytest.mark.parametrize("mapped", [(), ("logits",)])
def test_a_damaged_array_is_neither_read_nor_mapped(tmp_path, mapped):
    path = tmp_path / "x.npz"
    np.savez(path, logits=np.zeros((1000, 3), np.float32))
    whole = path.read_bytes()
    changed = bytearray(whole)
    changed[5000] ^= 1
    for damaged in (whole[:-2000], changed):
        path.write_bytes(damaged)
        refused(path, "damaged", mapped=mapped)


def test_two_members_of_one_name_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        for values in (np.zeros(2), np.ones(2)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # zipfile warns of the second name
                archive.writestr("a.npy", npy_of(values))
    refused(tmp_path / "x.npz", "`a`")
    with fails(InputError, "`a`"):
        array_names(tmp_path / "x.npz")


def npy_of(values) -> bytes:
    """The bytes of an npy file."""
    buffer = io.BytesIO()
    np.save(buffer, values)
    return buffer.getvalue()


def test_a_user_who_cannot_read_pythons_own_files_is_told_so(tmp_path, monkeypatch):
    def undecodable(*_):
        raise LookupError("unknown encoding: cp437")

    np.savez(tmp_path / "x.npz", **ARRAYS)
    monkeypatch.setattr(zipfile, "ZipFile", undecodable)
    with refuses(fix="install Python"):
        read_arrays(tmp_path / "x.npz")
