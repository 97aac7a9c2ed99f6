"""Arrays of an npz that comes from anywhere: checked before a byte is unpacked, never unpickled.

An npz is a zip of .npy files. Header and zip directory both say how large an array is; whatever
they claim, no more memory is taken than one array within the limit needs.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrics.validation import InputError, is_whole

LARGEST_ARRAY = 4 << 30
"""Bytes that one array may take unpacked (4 GiB): a million rows of 1000 float32 logits."""

BLOCK = 1 << 20
"""Bytes unpacked at a time."""

HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
"""Readers by version of the .npy format; 3.0 differs by field names beyond Latin-1 only."""


def read_arrays(
    path: str | Path | IO[bytes],
    only: Collection[str] | None = None,
    limit: int = LARGEST_ARRAY,
    fix: str = "save it again with numpy.savez",
    mapped: Collection[str] = (),
) -> dict[str, NDArray[Any]]:
    """Return the arrays of the npz `path` by name.

    Args:
        path: the file, or the file opened for reading bytes.
        only: names to read; others are not unpacked, names that are absent are left out.
        limit: the most bytes that one array may take in memory.
        fix: what to do about a damaged file, for the message.
        mapped: names whose bytes stay in the file where it holds them uncompressed, so that they
            take no memory of their own and may exceed the limit; what is written to such an array
            is not written to the file.

    Raises:
        FileNotFoundError, PermissionError, ...: the file cannot be opened.
        InputError: it is no npz, damaged, or holds Python objects or an array above the limit; one
            line that names file, array and fix.
    """
    with _opened(path, fix) as (file, archive):
        return {
            name: _mapped_member(file, archive, member)
            if name in mapped and member.compress_type == zipfile.ZIP_STORED
            else _read_member(archive, member, limit, name in mapped)
            for name, member in _members(archive).items()
            if only is None or name in only
        }


class Stored(NamedTuple):
    """What an npz says of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    can_be_mapped: bool
    """It is not compressed."""


def array_headers(
    path: str | Path, only: Collection[str], fix: str = "save it again with numpy.savez"
) -> dict[str, Stored]:
    """Return what the npz says of the arrays in `only`; errors and `fix` as `read_arrays`."""
    found = {}
    with _opened(path, fix) as (_, archive):
        for name, member in _members(archive).items():
            if name in only:
                with archive.open(member) as stream:
                    shape, _, dtype = _checked_header(stream, name, member.file_size)
                found[name] = Stored(shape, dtype, member.compress_type == zipfile.ZIP_STORED)
    return found


@contextmanager
def _opened(path: str | Path | IO[bytes], fix: str) -> Iterator[tuple[IO[bytes], zipfile.ZipFile]]:
    """The file and its directory; whatever is wrong with either becomes one line."""
    with Path(path).open("rb") if isinstance(path, str | Path) else nullcontext(path) as file:
        path = Path(file.name)
        _check_start(path, file.read(6), fix)
        try:
            with zipfile.ZipFile(file) as archive:
                yield file, archive
        except _Refused as error:
            raise InputError(f"{path}: {_printable(str(error))}") from error
        except MemoryError as error:
            raise InputError(f"{path}: too large for the memory; save fewer rows") from error
        except Exception as error:  # on damaged bytes zipfile and NumPy raise a dozen kinds
            reason = _printable(str(error) or type(error).__name__)[:120]
            raise InputError(
                f"{path}: not readable as npz, truncated or damaged ({reason}); {fix}"
            ) from error


def array_names(path: str | Path) -> list[str]:
    """Return the names of the arrays of an npz for a message, without reading any.

    Errors as `read_arrays`; what a terminal would not show becomes a space.
    """
    path = Path(path)
    read_arrays(path, only=())
    with zipfile.ZipFile(path) as archive:
        return [_printable(name) for name in _members(archive)]


class _Refused(ValueError):
    """What is wrong with the archive, without the file's name."""


def _printable(text: str) -> str:
    """One line without control characters, which names inside a hostile file may hold."""
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))


def _check_start(path: Path, start: bytes, fix: str) -> None:
    if start.startswith(b"\x93NUMPY"):
        raise InputError(f"{path}: a single array, not an npz; {fix}")
    if not start.startswith(b"PK"):
        raise InputError(f"{path}: empty or not an npz; {fix}")


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The .npy files of the archive by the names of their arrays."""
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        if not member.filename.endswith(".npy"):
            continue
        name = member.filename.removesuffix(".npy")
        if name in members:
            raise _Refused(f"two arrays are called `{name}`; save it again, each name once")
        members[name] = member
    return members


def _mapped_member(
    file: IO[bytes], archive: zipfile.ZipFile, member: zipfile.ZipInfo
) -> NDArray[Any]:
    """The array as a private map of the file: read once, for the checksum, but not kept."""
    name = member.filename.removesuffix(".npy")
    with archive.open(member) as stream:
        start = file.tell()  # of the member's bytes: nothing has been read ahead yet
        shape, by_column, dtype = _checked_header(stream, name, member.file_size)
        start += stream.tell()
        while stream.read(BLOCK):
            pass
    if not math.prod(shape):
        return np.empty(shape, dtype)
    order: Literal["C", "F"] = "F" if by_column else "C"
    # Not the subclass `memmap`; writeable, as torch does not take what is not.
    return np.asarray(np.memmap(file, dtype, "c", start, shape, order))


def _read_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, limit: int, compressed: bool
) -> NDArray[Any]:
    name = member.filename.removesuffix(".npy")
    if member.file_size > limit:  # zipfile unpacks no more than this, whatever follows
        fix = "uncompressed (numpy.savez), so that it need not be" if compressed else "as float32"
        raise _Refused(
            f"array `{name}` takes {member.file_size:,} bytes unpacked, the limit is {limit:,}; "
            f"save it {fix}, or fewer rows"
        )
    with archive.open(member) as stream:
        shape, by_column, dtype = _checked_header(stream, name, member.file_size)
        size = math.prod(shape) * dtype.itemsize
        content, filled = bytearray(size), 0  # writeable, unlike the bytes of one read
        while part := stream.read(BLOCK):  # at the end the checksum is compared
            content[filled : filled + len(part)] = part
            filled += len(part)
    if filled != size:
        raise _Refused(f"array `{name}` is truncated; save it again")
    flat = np.frombuffer(content, dtype=dtype) if size else np.empty(0, dtype)
    return flat.reshape(shape, order="F" if by_column else "C")


def _checked_header(
    stream: IO[bytes], name: str, held: int
) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """`_header`, refused where the array's size is not that of the `held` bytes of the member."""
    shape, by_column, dtype = _header(stream, name)
    size, rest = math.prod(shape) * dtype.itemsize, held - stream.tell()
    if size != rest:
        raise _Refused(
            f"array `{name}` of shape {list(shape)} needs {size:,} bytes, the file holds "
            f"{rest:,}; it is damaged, save it again"
        )
    return shape, by_column, dtype


def _header(stream: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether columns lie together, and type of an array: whole sizes, plain types."""
    version = np.lib.format.read_magic(stream)
    if version not in HEADERS:
        raise _Refused(f"array `{name}`: version {version} of npy; save it with numpy.savez")
    shape, by_column, dtype = HEADERS[version](stream)
    if dtype.hasobject:
        raise _Refused(
            f"array `{name}` holds Python objects (dtype object); save it as numbers, "
            f"for instance numpy.array({name}.tolist())"
        )
    if dtype.kind == "V":
        raise _Refused(f"array `{name}` holds records ({dtype}); save each field as its own array")
    if not all(is_whole(length) and length >= 0 for length in shape):
        raise _Refused(f"array `{name}`: {shape} is no shape; it is damaged, save it again")
    return shape, by_column, dtype
