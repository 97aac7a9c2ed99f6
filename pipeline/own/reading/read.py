"""Read a person's file: bytes become columns with names, or arrays with names.

Nothing is decided here about what they mean (columns/layout_from_rows.py). An npz is checked before
it is unpacked, and nothing is ever unpickled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from utility_calibration.metrics.archive import array_headers, array_names, read_arrays
from utility_calibration.metrics.errors import InputError, naming

from ..words.file_options import FileOptions
from ..words.forms import check_is_given, check_is_npz, is_table
from ..words.message_text import SAVEZ, some_of
from .cells import LONGEST_TEXT, FileColumns
from .tables import tables

if TYPE_CHECKING:
    import pandas as pd

SAVE = "copy it again if it was cut, save it with numpy.savez, or name a table of text .csv"
LARGE = 1 << 26
"""Bytes of an array up to which nothing is refused by its header."""


def read(path: Path, file_options: FileOptions, is_used: Callable[[str], bool]) -> FileColumns:
    """The columns of the table in a file, or the arrays of an npz whose names `is_used`."""
    check_is_given(path)
    if is_table(path):
        table = read_table(path, file_options.decimal, has_names=file_options.has_names)
        return {str(name): column for name, column in table.items()}
    check_is_npz(path)
    names = array_names(path)
    matrices = [*file_options.kinds_of(names)]
    if {"indptr", "format", "shape"} <= set(names):
        raise InputError("a sparse matrix", file=path, fixes=f"save matrix.toarray(): {SAVEZ}")
    if not matrices:
        raise no_answers(names).in_file(path)
    # Other arrays, such as features, may be large, or hold objects that cannot be read.
    used = [*matrices, *filter(is_used, names)]
    _check_headers(path, used, matrices)
    return read_arrays(path, only=used, fix=SAVE, mapped=matrices)


def _check_headers(path: Path, used: Sequence[str], matrices: Sequence[str]) -> None:
    """Refuse large arrays that cannot belong to the matrix, or long text, before they are read."""
    # A header of a few bytes may promise an array that fills the memory.
    headers = array_headers(path, only=used, fix=SAVE)
    n = headers[matrices[0]].shape[:1]
    for name, header in headers.items():
        size = math.prod(header.shape) * header.dtype.itemsize
        if name in matrices or size <= LARGE:
            continue
        if header.shape[:1] != n or header.dtype.itemsize > 4 * LONGEST_TEXT:
            shape = list(header.shape)
            message = f"shape {shape} of {header.dtype}, {size:,} bytes, beside {n} rows"
            raise InputError(message, field=name, file=path, fixes="give one short entry per row")


def read_table(path: Path, decimal: str | None = None, **others: Any) -> pd.DataFrame:
    """The whole table in a file; `decimal` and `others` are arguments of `tables`."""
    with naming(path):
        (table,) = tables(path, None, decimal, **others)
    return table


def no_answers(names: Sequence[str], kind: str = "") -> InputError:
    """The error on a file without an array of answers, of one `kind` if the person says it."""
    wanted = kind or "logits or probabilities"
    message = f"no array of {wanted} (there are {some_of(names) or 'none'})"
    fixes = ["name one: --logits NAME or --probabilities NAME", f"add it: {SAVEZ}"]
    if kind:
        fixes = [f"name it: --{kind} NAME", f"add it: numpy.savez('my.npz', {kind}=…)"]
    return InputError(message, field=kind or "logits", fixes=fixes)
