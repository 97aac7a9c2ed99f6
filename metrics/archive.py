"""Arrays of an npz that comes from anywhere: checked before a byte is unpacked, never unpickled.

An npz is a zip of .npy files. Header and zip directory both say how large an array is; whatever
they claim, no more memory is taken than one array within the limit needs.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Collection
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Any

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
) -> dict[str, NDArray[Any]]:
    """Return the arrays of the npz `path` by name.

    Args:
        path: the file, or the file opened for reading bytes.
        only: names to read; others are not unpacked, names that are absent are left out.
        limit: the most bytes that one array may take.
        fix: what to do about a damaged file, for the message.

    Raises:
        FileNotFoundError, PermissionError, ...: the file cannot be opened.
        InputError: it is no npz, damaged, or holds Python objects or an array above the limit; one
            line that names file, array and fix.
    """
    with Path(path).open("rb") if isinstance(path, str | Path) else nullcontext(path) as file:
        path = Path(file.name)
        _check_start(path, file.read(6), fix)
        try:
            with zipfile.ZipFile(file) as archive:
                return {
                    name: _read_member(archive, member, limit)
                    for name, member in _members(archive).items()
                    if only is None or name in only
                }
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


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, limit: int) -> NDArray[Any]:
    name = member.filename.removesuffix(".npy")
    if member.file_size > limit:  # zipfile unpacks no more than this, whatever follows
        raise _Refused(
            f"array `{name}` takes {member.file_size:,} bytes unpacked, the limit is {limit:,}; "
            "save it as float32, or fewer rows"
        )
    with archive.open(member) as stream:
        shape, by_column, dtype = _header(stream, name)
        size = math.prod(shape) * dtype.itemsize
        if size != member.file_size - stream.tell():
            raise _Refused(
                f"array `{name}` of shape {list(shape)} needs {size:,} bytes, the file holds "
                f"{member.file_size - stream.tell():,}; it is damaged, save it again"
            )
        content, filled = bytearray(size), 0  # writeable, unlike the bytes of one read
        while part := stream.read(BLOCK):  # at the end the checksum is compared
            content[filled : filled + len(part)] = part
            filled += len(part)
    if filled != size:
        raise _Refused(f"array `{name}` is truncated; save it again")
    flat = np.frombuffer(content, dtype=dtype) if size else np.empty(0, dtype)
    return flat.reshape(shape, order="F" if by_column else "C")


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
