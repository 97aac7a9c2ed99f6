"""The files that stages write and read: atomic writes, checked reads, checksums.

Equal content gives equal bytes (no timestamps), so checksums show whether something changed.
"""

import hashlib
import json
import zipfile
from collections.abc import Collection, Mapping
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from utility_calibration.calibrators.files import plain_arrays
from utility_calibration.metrics.archive import read_arrays
from utility_calibration.metrics.atomic import atomic_path
from utility_calibration.metrics.errors import InputError

_plain = methodcaller("tolist")  # a NumPy scalar or array as JSON holds it


class CorruptFile(InputError):
    """A file of ours that cannot be read back: truncated, overwritten or of another kind."""


def write_text(path: Path | str, text: str) -> Path:
    """Write `text` as UTF-8 with Unix line ends."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")
    return Path(path)


def write_texts(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write the texts by the names of their files in a folder; return the paths."""
    return [write_text(folder / name, text) for name, text in texts.items()]


def json_text(content: Any) -> str:
    """`content` as readable JSON, keys in the order given; NumPy scalars become numbers."""
    return json.dumps(content, indent=2, default=_plain) + "\n"


def write_json(path: Path | str, content: Any) -> Path:
    """Write `content` as `json_text`."""
    return write_text(path, json_text(content))


def write_npz(path: Path | str, **arrays: ArrayLike) -> None:
    """Write `arrays` as an uncompressed npz."""
    with atomic_path(path) as temporary:
        save_npz(temporary, arrays)


def save_npz(path: Path | str, arrays: Mapping[str, ArrayLike]) -> None:
    """Write `arrays` to `path` directly, not atomically: for a file that nobody reads yet.

    The bytes are those of `numpy.savez`, which takes no array that is called `file`.
    """
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in plain_arrays(arrays).items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def read_json(path: Path | str) -> Any:
    """The content of a JSON file; `CorruptFile` if damaged, `FileNotFoundError` if absent."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise CorruptFile(f"{path}: not readable as JSON ({error}); delete it and rerun") from error


def read_npz(path: Path | str, mapped: Collection[str] = ()) -> dict[str, NDArray[Any]]:
    """All arrays of an npz; those in `mapped` stay in the file. `InputError` if it is damaged."""
    return read_arrays(path, fix="replace or delete it and rerun", mapped=mapped)


def sha256_of(path: Path | str) -> str:
    """Hexadecimal SHA-256 of a file's bytes."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_json(content: Any) -> str:
    """Hexadecimal SHA-256 of `content` as JSON; the order of keys does not matter."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), default=_plain)
    return hashlib.sha256(text.encode()).hexdigest()
