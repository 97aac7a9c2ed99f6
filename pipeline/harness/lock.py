"""A lock that lets one process at a time write to a folder, and says which process that is."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from socket import gethostname

from .artifacts import CorruptFile, read_json, write_json
from .parameters import UsageError
from .progress import say


@contextmanager
def alone(lock_file: Path, place: str, fix: str = "") -> Iterator[None]:
    """Keep other processes out until the block ends; the lock ends with its process.

    If another one holds the lock, a line says which. Then this one waits, or with a `fix` raises
    UsageError.

    place: the name of the shared folder, for the message.
    """
    from filelock import FileLock, Timeout

    lock_file.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(lock_file)
    holder_file = lock_file.with_suffix(".json")
    with suppress(Timeout):
        lock.acquire(timeout=0)
    if not lock.is_locked:
        holder = {}
        with suppress(CorruptFile, OSError):  # the other process has not written it yet
            holder = read_json(holder_file)
        who = f"process {holder.get('process', '?')} on {holder.get('host', '?')}"
        message = f"{place}: {who} writes there since {holder.get('began', '?')}"
        if fix:
            raise UsageError(f"{message}; {fix}")
        say(f"waiting: {message}")
        lock.acquire()
    try:
        began = datetime.now().astimezone().isoformat(" ", "seconds")
        write_json(holder_file, {"process": os.getpid(), "host": gethostname(), "began": began})
        yield
    finally:
        lock.release()
