"""Reading an npz from any source: arrays are checked before they are unpacked, never unpickled.

An npz is a zip of .npy files. The header and the zip directory both say how large an array is. If
they lie, reading still takes no more memory than an array of the largest allowed size.
"""

from __future__ import annotations

import math
import sys
import zipfile
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .errors import InputError, printable, reason_of

LARGEST_ARRAY = 4 << 30
"""Bytes that one array may take unpacked (4 GiB): a million rows of 1000 float32 logits."""
BLOCK = 1 << 20
"""Bytes unpacked at a time."""
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
"""Readers by version of the .npy format. Version 3.0 only adds field names beyond Latin-1."""
SAVE = "save it again with numpy.savez"


class Stored(NamedTuple):
    """What an npz says about an array. Arrays that are not compressed can be mapped."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    can_be_mapped: bool
    order: Literal["C", "F"]  # "F": column by column, as in Fortran
    start: int  # bytes of the member before its first number


def read_arrays(
    path: str | Path | IO[bytes],
    only: Collection[str] | None = None,
    limit: int = LARGEST_ARRAY,
    fix: str = SAVE,
    mapped: Collection[str] = (),
) -> dict[str, NDArray[Any]]:
    """Return the arrays of the npz `path` by name.

    Args:
        path: the file, or the file opened for reading bytes.
        only: names to read; other arrays are not unpacked, and absent names are left out.
        limit: the most bytes that one array may take in memory.
        fix: what a user should do about a damaged file, for the message.
        mapped: names of arrays that stay in the file if they are not compressed. They take no
            memory and may exceed the limit. Changes of such an array are not written to the file.

    Raises:
        OSError: the file cannot be opened.
        InputError: it is no npz, it is damaged, or it holds Python objects or an array above the
            limit; one line names file, array and fix.
    """
    with _opened(path, fix) as (file, archive):
        arrays = {}
        for name, member in _members(archive, only).items():
            with archive.open(member) as stream:
                stored = _header(stream, member)
                if name in mapped and stored.can_be_mapped:
                    arrays[name] = _map(file, archive, member, stored)
                    continue
                if member.file_size > limit:  # zipfile unpacks no more than `file_size`
                    raise _Refused(
                        f"array `{name}` takes {member.file_size:,} bytes unpacked, the limit is "
                        f"{limit:,}; save fewer rows, or logits uncompressed (numpy.savez) as "
                        "float32"
                    )
                arrays[name] = _unpacked(stream, stored)
            if stored.dtype.kind == "U" and bool((_codes(arrays[name]) > sys.maxunicode).any()):
                raise _Refused(f"array `{name}` holds damaged text; save it again")
        return arrays


def array_headers(
    path: str | Path | IO[bytes], only: Collection[str] | None = None, fix: str = SAVE
) -> dict[str, Stored]:
    """Return what the npz says about its arrays, or those in `only`; errors as `read_arrays`."""
    with _opened(path, fix) as (_, archive):
        headers = {}
        for name, member in _members(archive, only).items():
            with archive.open(member) as stream:
                headers[name] = _header(stream, member)
        return headers


def array_names(path: str | Path) -> list[str]:
    """Return the names of the arrays of an npz as a message may show them; errors as above."""
    with _opened(path, SAVE) as (_, archive):
        return [printable(name) for name in _members(archive)]


class _Refused(ValueError):
    """A message that says what is wrong with the archive, without the file's name."""


@contextmanager
def _opened(path: str | Path | IO[bytes], fix: str) -> Iterator[tuple[IO[bytes], zipfile.ZipFile]]:
    """Open the file and its directory; any error of either becomes an `InputError` of one line."""
    with Path(path).open("rb") if isinstance(path, str | Path) else nullcontext(path) as file:
        file.seek(0)  # an open file may have been read before
        path, start = Path(getattr(file, "name", "file")), file.read(6)
        if start == b"\x93NUMPY":
            raise InputError("a single array, not an npz", file=path, fixes=fix)
        if not start.startswith(b"PK"):
            raise InputError("empty or not an npz", file=path, fixes=fix)
        try:
            with zipfile.ZipFile(file) as archive:
                yield file, archive
        except _Refused as error:
            raise InputError(str(error), file=path) from error
        except MemoryError as error:
            raise InputError(
                "too large for the memory", file=path, fixes="save fewer rows"
            ) from error
        except Exception as error:  # on damaged bytes zipfile and NumPy raise a dozen kinds
            if type(error) is LookupError:  # an encoding, which Python imports when it needs it
                message = f"this user cannot read Python's own files ({error})"
                fix = "install Python outside of another user's home"
                raise InputError(message, file=path, fixes=fix) from error
            reason = reason_of(error)
            raise InputError(
                f"not readable as npz, truncated or damaged ({reason})", file=path, fixes=fix
            ) from error


def _members(
    archive: zipfile.ZipFile, only: Collection[str] | None = None
) -> dict[str, zipfile.ZipInfo]:
    """Return the .npy files of the archive by the names of their arrays; only those in `only`."""
    members = [(m.filename.removesuffix(".npy"), m) for m in archive.infolist()]
    named = {name: m for name, m in members if m.filename.endswith(".npy")}
    counts = Counter(name for name, _ in members)  # NumPy reads `logits`, too, if it is there
    for name in named:
        if counts[name] > 1:  # programs differ in which they read
            raise _Refused(f"two arrays are called `{name}`; keep one of them")
    return {name: m for name, m in named.items() if only is None or name in only}


def _codes(text: NDArray[np.str_]) -> NDArray[np.uint32]:
    """Return the numbers of the letters of an array of text; NumPy cannot show impossible ones."""
    codes = np.ascontiguousarray(text).reshape(-1).view(np.uint32)
    return codes if text.dtype.isnative else codes.byteswap()


def _map(
    file: IO[bytes], archive: zipfile.ZipFile, member: zipfile.ZipInfo, stored: Stored
) -> NDArray[Any]:
    """Return the array as a private map of the file, which is read once for its checksum."""
    with archive.open(member) as stream:
        start = file.tell() + stored.start  # `open` has not read ahead, so this is the first number
        while stream.read(BLOCK):
            pass
    if not math.prod(stored.shape):
        return np.empty(stored.shape, stored.dtype)
    # A plain array instead of the subclass `memmap`. It is writeable, because read-only ones are
    # copied (`arrays.as_array`).
    return np.asarray(np.memmap(file, stored.dtype, "c", start, stored.shape, stored.order))


def _unpacked(stream: IO[bytes], stored: Stored) -> NDArray[Any]:
    """Return the array behind a header. The end is read, so the checksum is compared."""
    array = np.empty(math.prod(stored.shape), stored.dtype)
    numbers, filled = array.view(np.uint8), 0
    for block in iter(partial(stream.read, BLOCK), b""):
        numbers[filled : filled + len(block)] = np.frombuffer(block, np.uint8)
        filled += len(block)
    return array.reshape(stored.shape, order=stored.order)


def _header(stream: IO[bytes], member: zipfile.ZipInfo) -> Stored:
    """Return what the header says about an array, whose size must fit the member's bytes."""
    name = member.filename.removesuffix(".npy")
    version = np.lib.format.read_magic(stream)
    if version not in HEADERS:
        raise _Refused(f"array `{name}`: version {version} of npy; save it with numpy.savez")
    shape, by_column, dtype = HEADERS[version](stream)
    start = stream.tell()
    if dtype.hasobject:
        raise _Refused(
            f"array `{name}` holds Python objects (dtype object), which are never loaded; where it "
            f"was made, save {name}.astype(float) if these are numbers, {name}.astype(str) if they "
            "are names"
        )
    if not dtype.itemsize:  # its size would fit any shape
        raise _Refused(f"array `{name}` holds only empty text; leave it out")
    needed = math.prod(shape) * dtype.itemsize
    stored = member.file_size - start
    if needed != stored:
        raise _Refused(
            f"array `{name}` of shape {list(shape)} needs {needed:,} bytes, the file holds "
            f"{stored:,}; it is damaged, save it again"
        )
    can_be_mapped = member.compress_type == zipfile.ZIP_STORED
    return Stored(shape, dtype, can_be_mapped, "F" if by_column else "C", start)
