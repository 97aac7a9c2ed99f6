"""The cache of what tasks make: one npz each, with its record inside, published by one rename.

A file of other settings, of other code or with damaged bytes has another key than its task
(task.py), or none, and is made again.
"""

import hashlib
import json
import zipfile
import zlib
from collections.abc import Callable, Collection
from functools import cache, partial
from pathlib import Path
from typing import Any

from utility_calibration.metrics.atomic import atomic_path

from .artifacts import json_text

BLOCK = 1 << 20  # bytes read at a time
RECORD = "record.json"  # the member of the npz that holds the record; readers of arrays ignore it
Record = dict[str, Any]
Save = Callable[[Path], object]  # writes an npz to a path


def record_of(path: Path) -> Record | None:
    """The record inside an npz, checked once a program; None if it is absent or damaged."""
    try:
        state = state_of(path)
    except OSError:
        return None
    return _record(path, state)


def state_of(path: Path) -> tuple[int, ...]:
    """Return numbers that differ once a file was replaced or changed.

    Its time alone is not enough, because a copy may keep the time of the original.
    """
    state = path.stat()
    return state.st_dev, state.st_ino, state.st_ctime_ns, state.st_mtime_ns, state.st_size


@cache
def _record(path: Path, state: tuple[int, ...]) -> Record | None:
    # `state` is part of the cached call, so a file that was replaced is read again.
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.testzip() is not None:
                return None
            record = json.loads(archive.read(RECORD))
    except (OSError, ValueError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error):
        return None
    return record if isinstance(record, dict) else None


def publish(path: Path, save: Save, record: Record) -> None:
    """Write the npz by `save`, and put `record` and the digest of the arrays into it."""
    with atomic_path(path) as temporary:
        save(temporary)
        content = {**record, "arrays": arrays_digest(temporary)}
        with zipfile.ZipFile(temporary, "a") as archive:
            archive.writestr(zipfile.ZipInfo(RECORD), json_text(content))


def arrays_digest(path: Path, names: Collection[str] = ()) -> str:
    """SHA-256 over names and bytes of the arrays in an npz: of all, or of those in `names`."""
    digest = hashlib.sha256()
    with zipfile.ZipFile(path) as archive:
        for member in sorted(set(archive.namelist()) - {RECORD}):
            if names and member.removesuffix(".npy") not in names:
                continue
            # With its size before it, no content can be taken for the start of the next member.
            digest.update(f"{member}:{archive.getinfo(member).file_size}:".encode())
            with archive.open(member) as content:
                for block in iter(partial(content.read, BLOCK), b""):
                    digest.update(block)
    return digest.hexdigest()
