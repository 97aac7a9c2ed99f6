"""An npz that carries its own record: what made the arrays, and their checksum, in one file.

One rename publishes both, so that arrays of one run never lie beside the record of another, whoever
else writes the same file and whether or not the file system knows locks. The JSON file beside it
(`fit.json`, `metrics.json`) is a copy of that record for people, for git and for the report.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from pipeline.harness.artifacts import (
    atomic_path,
    json_text,
    read_record,
    sealed,
    unsealed,
    write_text,
)

RECORD = "record.json"
"""The member of the npz that holds the record; readers of arrays pass it over."""


def publish(
    path: Path,
    save: Callable[[Path], object],
    record: Mapping[str, Any],
    checksum: str,
    copy: Path | None = None,
) -> None:
    """Write what `save` writes (an npz) to `path`, with `record` inside, and `copy` beside it.

    `checksum` names the entry of the record that gets the arrays' SHA-256, taken before anyone
    else can see or replace the file.
    """
    with atomic_path(path) as temporary:
        save(temporary)
        with zipfile.ZipFile(temporary, "a") as archive:
            text = json_text(sealed({**record, checksum: _sha256_of_arrays(archive)}))
            archive.writestr(zipfile.ZipInfo(RECORD), text)
    if copy is not None:
        write_text(copy, text)


@contextmanager
def opened_archive(
    path: Path, checksum: str
) -> Iterator[tuple[IO[bytes] | None, dict[str, Any] | None]]:
    """The open file of `publish` and its record, which stay together when others replace the file.

    The record is None where the file is damaged or another kind of npz; both where it is absent.
    """
    try:
        file = path.open("rb")
    except OSError:
        yield None, None
        return
    with file:
        record = _checked_record(file, checksum)
        file.seek(0)
        yield file, record


def record_inside(path: Path, checksum: str) -> dict[str, Any] | None:
    """The record that an npz by `publish` carries; None where the file is absent or damaged."""
    with opened_archive(path, checksum) as (_, record):
        return record


def restore_copy(path: Path, checksum: str, copy: Path) -> None:
    """Write `copy` again where it is not what the npz at `path` carries."""
    record = record_inside(path, checksum)
    if record is not None and read_record(copy) != record:
        write_text(copy, json_text(record))


def _checked_record(file: IO[bytes], checksum: str) -> dict[str, Any] | None:
    try:
        with zipfile.ZipFile(file) as archive:
            record = unsealed(json.loads(archive.read(RECORD)))
            whole = record is not None and record.get(checksum) == _sha256_of_arrays(archive)
    except (OSError, ValueError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error):
        return None
    return record if whole else None


def _sha256_of_arrays(archive: zipfile.ZipFile) -> str:
    """Over names and bytes of all arrays: neither the record nor dates and compression count."""
    digest = hashlib.sha256()
    for name in sorted(set(archive.namelist()) - {RECORD}):
        content = archive.read(name)
        digest.update(f"{name}:{len(content)}:".encode())
        digest.update(content)
    return digest.hexdigest()
