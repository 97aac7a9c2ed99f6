"""A person's file some rows at a time, for files beyond memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError, naming

from ...harness.machine import free_memory
from ..words.file_options import FileOptions
from ..words.forms import PARTED, check_is_given, ending_of
from .cells import FileColumns
from .read import read
from .table_memory import LARGEST_TABLE, PER_CELL, parquet_size
from .tables import tables

ROWS = 10_000
"""Points that are in memory at a time."""
TEXT_PER_CELL = 8
"""Bytes of a cell of a CSV, about."""
Made = TypeVar("Made")


def is_too_large(path: Path) -> bool:
    """Whether a file is larger than what is read as a whole; one that is not there is not."""
    if not path.is_file():
        return False
    kind, size = ending_of(path), path.stat().st_size
    if kind == ".parquet":
        with suppress(Exception):  # the reader will say what is wrong
            return parquet_size(path)[1] > LARGEST_TABLE
    if kind in (".csv", ".tsv"):
        return size / TEXT_PER_CELL * PER_CELL > LARGEST_TABLE
    return kind in ("", ".npz") and size > free_memory() / 2


def each_batch(
    path: Path,
    file_options: FileOptions,
    is_used: Callable[[str], bool],
    make: Callable[[FileColumns, int], Made],
) -> Iterator[Made]:
    """Yield what `make` returns for the rows of a file, some at a time: the loop of every pass.

    make: called with the columns or arrays of some rows, and the number of the first of them.
    is_used: whether a column or array of this name is read, beside the answers.

    Raises:
        InputError: names the file, and the row in it.
    """
    start = 0
    for rows in batches(path, file_options, is_used):
        try:
            made = make(rows, start)
        except InputError as error:
            _count_from_the_first_row(error, start)
            error.in_file(path)
            raise
        start += rows_of(rows)
        yield made


def _count_from_the_first_row(error: InputError, start: int) -> None:
    """Let an error on some rows of a file, the first of which is `start`, count from row 0."""
    for mistake in (error, *error.others):
        if mistake.where.row is not None:
            mistake.where = mistake.where._replace(row=mistake.where.row + start)


def batches(
    path: Path, file_options: FileOptions, is_used: Callable[[str], bool]
) -> Iterator[FileColumns]:
    """Yield what `read` returns, `ROWS` rows at a time.

    No more is in memory for parquet, CSV, TSV and an uncompressed npz; other files are read whole.
    """
    check_is_given(path)
    if not path.is_dir() and ending_of(path) in PARTED:
        with naming(path):
            for table in tables(path, ROWS, file_options.decimal, has_names=file_options.has_names):
                yield {str(name): column for name, column in table.items()}
        return
    rows = read(path, file_options, is_used)
    for start in range(0, rows_of(rows), ROWS):
        stop = start + ROWS
        part = dict(rows)
        for name in rows:
            if name != "class_names":
                part[name] = some_rows(rows[name], start, stop)
        yield part


def rows_of(rows: FileColumns) -> int:
    """The number of rows; `class_names` has one entry per class."""
    return max(len(values) for name, values in rows.items() if name != "class_names")


def some_rows(values: Any, start: int, stop: int) -> Any:
    """Some rows of a column or array. Those of a map are read from its file.

    The system would end a process that looks at a map of a file that has become shorter.
    """
    mapped = values if isinstance(values, np.memmap) else getattr(values, "base", None)
    if not isinstance(mapped, np.memmap):
        return values[start:stop]
    n_rows, *others = values.shape
    n_wanted = min(stop, n_rows) - start
    width = math.prod(others)
    if values.flags.c_contiguous:
        numbers = _from_file(mapped, start * width, n_wanted * width)
        return numbers.reshape(n_wanted, *others)
    # The numbers of a column are next to each other.
    columns = [_from_file(mapped, place * n_rows + start, n_wanted) for place in range(width)]
    return np.concatenate(columns).reshape((n_wanted, *others), order="F")


def _from_file(mapped: np.memmap[Any, Any], first: int, count: int) -> NDArray[Any]:
    """So many numbers of a mapped array, from the `first` on in the order of the file."""
    offset = mapped.offset + first * mapped.itemsize
    numbers = np.fromfile(str(mapped.filename), mapped.dtype, count, offset=offset)
    if len(numbers) < count:
        raise InputError("shorter than it was", file=mapped.filename, fixes="copy it again")
    return numbers
