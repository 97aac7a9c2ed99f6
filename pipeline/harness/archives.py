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
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from calibrators.files import atomic_path, remove_leftovers
from pipeline.harness.artifacts import json_text, read_record, sealed, unsealed, write_text
from pipeline.harness.locks import holder_of

RECORD = "record.json"
"""The member of the npz that holds the record; readers of arrays pass it over."""


@dataclass(frozen=True)
class Archive:
    """The npz that a stage makes, and what stands beside it in files called `<…>name.json`.

    checksum: the entry of the record that gets the arrays' SHA-256. stage: what made it, as the
    folders of a suite's arrays are called (`shared`).
    """

    path: Path
    checksum: str
    name: str = ""
    stage: str = ""

    @property
    def json(self) -> Path:
        """A copy of the record."""
        return self._beside("")

    @property
    def run(self) -> Path:
        """How it was made here: seconds, memory, versions, device, host, warnings."""
        return self._beside("run-")

    @property
    def running(self) -> Path:
        """The lock, there while a process works on it."""
        return self._beside("running-")

    @property
    def failed(self) -> Path:
        """Why the last attempt to make it failed, until one succeeds."""
        return self._beside("failed-")

    def _beside(self, what: str) -> Path:
        return self.path.with_name(f"{what}{self.name}.json")

    def publish(self, save: Callable[[Path], object], record: Mapping[str, Any]) -> None:
        """Write what `save` writes (an npz) with `record` inside, then the copy if it has a name.

        The checksum is taken before anyone else can see or replace the file.
        """
        with atomic_path(self.path) as temporary:
            save(temporary)
            with zipfile.ZipFile(temporary, "a") as archive:
                text = json_text(sealed({**record, self.checksum: _sha256_of_arrays(archive)}))
                archive.writestr(zipfile.ZipInfo(RECORD), text)
        if self.name:
            write_text(self.json, text)

    @contextmanager
    def opened(self) -> Iterator[tuple[IO[bytes] | None, dict[str, Any] | None]]:
        """The open file and its record, which stay together when others replace the file.

        The record is None where the file is damaged or another kind of npz; both where it is
        absent.
        """
        try:
            file = self.path.open("rb")
        except OSError:
            yield None, None
            return
        with file:
            record = _checked_record(file, self.checksum)
            file.seek(0)
            yield file, record

    def record(self) -> dict[str, Any] | None:
        """The record inside; None where the file is absent or damaged."""
        with self.opened() as (_, record):
            return record

    def holds(self, aim: str) -> bool:
        """Whether it is whole and was made for `aim`, the record's entry `hash`."""
        return (self.record() or {}).get("hash") == aim

    def tidy(self) -> None:
        """Mend what a run that was killed at the very end left beside a whole archive."""
        self.restore_json()
        holder_of(self.running)  # removes the lock
        remove_leftovers(self.run)

    def restore_json(self) -> None:
        """Write the copy again where it is not what the file carries."""
        for _ in range(2):  # another process may publish anew just before this one's copy is there
            record = self.record()
            if record is None or read_record(self.json) == record:
                return
            write_text(self.json, json_text(record))


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
