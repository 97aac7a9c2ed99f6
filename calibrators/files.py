"""Files that are whole or not there, for all that is written here: calibrators and results.

It stands in this package, whose import loads nothing, because stages that find all done and the
programs' `--help` do without torch.
"""

from __future__ import annotations

import glob
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4


@contextmanager
def atomic_path(path: Path | str) -> Iterator[Path]:
    """Yield a temporary name beside `path` that becomes `path` when the block ends well.

    On an exception the temporary file is removed and `path` stays as it was. What a killed process
    left is removed by the next write of the same file. The suffix is kept, so that writers which
    choose the format by it (matplotlib) work.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path)
    token = f"{_host()}-{os.getpid()}.{uuid4().hex[:8]}"  # containers may share host and process
    temporary = path.with_name(f".{path.stem}.{token}.tmp{path.suffix}")
    try:
        yield temporary
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)  # "no space left on device" says of itself not where
        raise


def remove_leftovers(path: Path) -> None:
    """Remove temporary files for `path` of processes of this machine that no longer run."""
    # The stars: what a second `atomic_path`, such as that of `save`, put around the name.
    stem, suffix = glob.escape(path.stem), glob.escape(path.suffix)
    for leftover in path.parent.glob(f"*.{stem}.{_host()}-*.tmp{suffix}*"):
        process = re.search(r"-(\d+)\.\w+\.tmp", leftover.name)
        if process and int(process[1]) != os.getpid() and not _runs(int(process[1])):
            leftover.unlink(missing_ok=True)


def _host() -> str:
    return re.sub(r"\W", "_", socket.gethostname())


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
