"""Read a person's file: bytes become columns with names, or arrays with names.

Nothing is decided here about what they mean (`pipeline/own/assign.py`). An npz is checked before it
is unpacked, and nothing is ever unpickled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from utility_calibration.metrics.archive import array_headers, array_names, read_arrays
from utility_calibration.metrics.errors import InputError, MissingResource

from ..harness.artifacts import sha256_of, sha256_of_json
from .cells import LONGEST_TEXT, Held
from .choices import Choices
from .places import SAVEZ, no_answers
from .tables import LINE_BY_LINE, TABLES, ending_of, tables
from .told import naming

if TYPE_CHECKING:
    import pandas as pd

SAVED = "state.json"  # a file in every folder that `datasets` saves with save_to_disk
READ = "npz, CSV, TSV, JSON lines or parquet"
SAVE = "copy it again if it was cut, save it with numpy.savez, or name a table of text .csv"
INSTEAD = {
    (".pt", ".pth", ".pkl", ".pickle", ".joblib", ".ckpt"): "a pickle, which is never loaded; "
    f"save its arrays: {SAVEZ}",
    (".xlsx", ".xls", ".ods"): "a workbook; save the sheet as «CSV UTF-8»",
    (".json",): "not read; " + LINE_BY_LINE,
    (".zip", ".bz2", ".xz", ".zst", ".tar"): "not read; unpack it, or pack it with gzip (.csv.gz)",
    (".npy",): f"a single array; save labels, too: {SAVEZ}",
}
"""What files are that are not read, and what to do instead, by their endings."""
LARGE = 1 << 26  # bytes of an array up to which nothing is refused by its header


def is_table(path: Path) -> bool:
    """Whether a file (or a folder that `datasets` saved) is read as a table."""
    return path.is_dir() or ending_of(path) in TABLES


def digest_of(path: Path) -> str:
    """SHA-256 of a file, or of the data in a folder that `datasets` saved."""
    if path.is_file():
        return sha256_of(path)
    return sha256_of_json({file.name: sha256_of(file) for file in sorted(path.glob("*.arrow"))})


def check_is_file(path: Path, wanted: str) -> None:
    """Raise an error of one line unless `path` is a file that may be read; `wanted` says which."""
    if path.is_dir():
        raise InputError("this is a folder", file=path, fixes=f"give the path of {wanted}")
    if not path.is_file():
        raise MissingResource(f"{path}: no such file; give the path of {wanted}")
    for endings, instead in INSTEAD.items():
        if ending_of(path) in endings:
            told, _, fix = instead.partition("; ")
            raise InputError(told, file=path, fixes=fix)


def check_is_given(path: Path) -> None:
    """Raise an error of one line unless `path` is a file, or a data set saved by `datasets`."""
    if (path / "dataset_dict.json").is_file():
        raise InputError("several data sets", file=path, fixes="give the folder of one of them")
    if not (path / SAVED).is_file():
        check_is_file(path, f"a file: {READ}, or a folder saved by datasets")


def read(path: Path, choices: Choices, is_used: Callable[[str], bool]) -> Held:
    """The columns of the table in a file, or the arrays of an npz whose names `is_used`."""
    check_is_given(path)
    if is_table(path):
        return {str(name): column for name, column in read_table(path).items()}
    if ending_of(path) not in ("", ".npz"):
        with path.open("rb") as file:
            if file.read(2) != b"PK":
                raise InputError(f"{ending_of(path)} is not read", file=path, fixes=f"give {READ}")
    names = array_names(path)
    matrices = [*choices.kinds_of(names)]
    if {"indptr", "format", "shape"} <= set(names):
        raise InputError("a sparse matrix", file=path, fixes=f"save matrix.toarray(): {SAVEZ}")
    if not matrices:
        raise no_answers(names).in_file(path)
    used = [*matrices, *filter(is_used, names)]
    _check_headers(path, used, matrices)
    return read_arrays(path, only=used, fix=SAVE, mapped=matrices)


def _check_headers(path: Path, used: Sequence[str], matrices: Sequence[str]) -> None:
    """Refuse large arrays that cannot belong to the matrix, or long text, before they are read."""
    headers = array_headers(path, only=used, fix=SAVE)
    n = headers[matrices[0]].shape[:1]
    for name, held in headers.items():
        size = math.prod(held.shape) * held.dtype.itemsize
        if name in matrices or size <= LARGE:
            continue
        if held.shape[:1] != n or held.dtype.itemsize > 4 * LONGEST_TEXT:
            told = f"shape {list(held.shape)} of {held.dtype}, {size:,} bytes, beside {n} rows"
            raise InputError(told, field=name, file=path, fixes="give one short entry per row")


def read_table(path: Path) -> pd.DataFrame:
    """The whole table in a file (tables.py)."""
    with naming(path):
        (table,) = tables(path)
    return table
