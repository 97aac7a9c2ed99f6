"""Files that appear whole or not at all; it needs no other package, so that programs start fast."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4


@contextmanager
def atomic_path(path: Path | str) -> Iterator[Path]:
    """Yield a temporary name beside `path` that becomes `path` when the block ends well.

    On an exception the temporary file is removed and `path` is not changed. A killed process leaves
    a hidden file. Some writers (matplotlib) choose the format by the suffix, so it is that of
    `path`.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.{uuid4().hex[:16]}.tmp{path.suffix}")
    try:
        yield temporary
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(path)  # "no space left on device" does not say where
        raise
