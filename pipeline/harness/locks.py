"""One process at a time works on a unit; the others are told who does, and come back later.

A lock is a file with the holder's host, process, start and aim. The operating system holds the lock
itself (flock, on NFS too where the server offers it), so that it ends with its holder, however that
dies. Where a file system has no locks, work goes on without: results are published in one rename
(`archives`), and what is lost is only that two may do the same. A lock that is a file's existence
would be none instead: whoever is killed leaves it for ever.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Any

from pipeline.harness.artifacts import json_text, read_json_if_whole, write_json
from pipeline.harness.command import one_line

SECONDS_TO_SAY_SO = 0.2
"""Between having a lock and having written who has it, on a busy machine."""


class Busy(RuntimeError):
    """Another process works on this; it says where and since when. One line."""


class OtherSettings(RuntimeError):
    """Another process makes the same unit with other settings right now. One line."""


@contextmanager
def claimed(path: Path, what: str, aim: str) -> Iterator[None]:
    """Hold the lock file `path` for `what`; `aim` is the hash of what shall come out.

    Raises:
        Busy: another process holds it for the same aim.
        OtherSettings: another process holds it for another aim, whose results have the same place.
    """
    is_new = not path.parent.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        lock = _locked(path)
    except BlockingIOError as error:
        raise _held_by_another(path, what, aim) from error
    except OSError:  # the file system has no locks
        yield
        return
    try:
        # In place, not by renaming: what is locked is this very file.
        path.write_text(json_text({**_here(), "aim": aim}), encoding="utf-8")
        yield
    finally:
        path.unlink(missing_ok=True)  # while held: whoever waits notices that the file is gone
        os.close(lock)
        if is_new:
            with suppress(OSError):  # a failed unit leaves nothing
                path.parent.rmdir()


@contextmanager
def noting_failure(path: Path, aim: str = "") -> Iterator[None]:
    """Keep in `path` why the block failed, for `pipeline.status`; remove it where it succeeded.

    `aim`: the hash of what was to come out.
    """
    try:
        yield
    except (Busy, OtherSettings):
        raise
    except Exception as error:
        with suppress(OSError):  # a full disk, perhaps: the error itself says so
            write_json(path, {"error": one_line(error), "aim": aim, **_here()})
        raise
    path.unlink(missing_ok=True)


def holder_of(path: Path) -> dict[str, Any] | None:
    """Who holds the lock file now (`host`, `process`, `since`, `aim`); None where nobody does."""
    if not path.exists():
        return None
    try:
        lock = _locked(path)
    except BlockingIOError:
        return read_json_if_whole(path) or {}
    except OSError:
        return None
    with suppress(OSError):
        path.unlink(missing_ok=True)  # of a holder that was killed
    os.close(lock)
    return None


def _locked(path: Path) -> int:
    """The open file `path`, which has the lock until it is closed.

    Raises:
        BlockingIOError: another process has it.
        OSError: the file system has no locks, or the file cannot be opened.
    """
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            flock(file, LOCK_EX | LOCK_NB)
        except OSError:
            os.close(file)
            raise
        with suppress(OSError):
            if os.path.samestat(os.fstat(file), path.stat()):
                return file
        os.close(file)  # its holder removed it meanwhile: a lock on a file of no or another name


def _here() -> dict[str, Any]:
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return {"host": socket.gethostname(), "process": os.getpid(), "since": since}


def _held_by_another(path: Path, what: str, aim: str) -> Exception:
    holder = read_json_if_whole(path) or {}
    if holder.get("aim") != aim:  # perhaps it has the lock, but is yet to say so in the file
        time.sleep(SECONDS_TO_SAY_SO)
        holder = read_json_if_whole(path) or {}
    who = f"process {holder.get('process', '?')} on {holder.get('host', '?')}"
    since = f"since {holder.get('since', '?')}"
    if holder.get("aim", aim) == aim:
        return Busy(f"{what}: {who} works on it {since}")
    return OtherSettings(
        f"{what}: {who} makes it with other settings {since}, in the same place; wait for its end, "
        "or give this run another paths.results"
    )
