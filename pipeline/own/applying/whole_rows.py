"""The rows of a person's file with every cell as it is, for `apply`, which writes them again.

The readers of answers (reading/) make numbers of what looks like one, so an id 007
becomes 7. Here a cell of a text file stays text, and a value of any other file stays that value.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.metrics.archive import array_names, read_arrays
from utility_calibration.metrics.errors import InputError

from ..reading.parts import some_rows
from ..reading.text_tables import LONGEST_CELL, form_of_text
from ..words.forms import LINES, ending_of, is_table

Table = dict[str, Any]
"""Columns by name: lists of Python values, NumPy arrays [n, …], or columns of Arrow."""
ABSENT = object()
"""In place of an entry that one object of JSON lines lacks and another one has."""


class Rows(NamedTuple):
    """The rows of a file."""

    take: Callable[[int], Table]
    """Returns the next rows, of which there are exactly as many as it is asked for."""
    others: Table
    """Arrays of an npz that do not have one entry per row."""
    left_out: Sequence[str] = ()
    """Names of arrays that cannot be read, because they hold Python objects."""
    decimal: str = "."
    """The sign in the numbers of a file of text."""


def whole_rows(path: Path, answers: str, decimal: str | None = None) -> Rows:
    """The rows of a file that `unlabelled` (deployed.py) reads, too.

    answers: the name of the array of answers in an npz.
    decimal: the sign that the person names for a file of text.
    """
    if not is_table(path):
        return _of_arrays(path, answers)
    if path.is_dir():
        data = require("datasets").load_from_disk(str(path))
        return Rows(_taken_of_arrow(iter([data.with_format("arrow")[:]])), {})
    if ending_of(path) == ".parquet":
        return Rows(_taken_of_arrow(_parts_of_parquet(path)), {})
    if ending_of(path) in LINES:
        return Rows(_taken_of_lines(path), {})
    with _opened(path) as file:
        form = form_of_text(file, decimal)
    is_comma = form.separator != "," == form.decimal
    return Rows(_taken_of_text(path, form.separator), {}, decimal="," if is_comma else ".")


def _check_count(n_rows: int, wanted: int) -> None:
    """Raise `InputError` if the file no longer has the rows whose answers were read."""
    if n_rows != wanted:
        message = f"{n_rows:,} rows where {wanted:,} were read before"
        raise InputError(message, fixes="run it again when no program writes to the file")


def _opened(path: Path) -> TextIO:
    """The text of a file; a line end within a cell stays as it is."""
    unpacked: Any = gzip.open if path.suffix.lower() == ".gz" else open
    file: TextIO = unpacked(path, "rt", encoding="utf-8-sig", newline="")
    return file


def _taken_of_text(path: Path, separator: str) -> Callable[[int], Table]:
    """The rows of a CSV or TSV, as text."""
    rows = _rows_of_text(path, separator)
    names = _distinct(next(rows))

    def take(count: int) -> Table:
        cells = list(islice(rows, count))
        _check_count(len(cells), count)
        padded = [row[: len(names)] + [""] * (len(names) - len(row)) for row in cells]
        return dict(zip(names, map(list, zip(*padded, strict=True)), strict=True))

    return take


def _rows_of_text(path: Path, separator: str) -> Iterator[list[str]]:
    """The cells of each line, that of the names first."""
    csv.field_size_limit(LONGEST_CELL)
    with _opened(path) as file:
        for cells in csv.reader(file, delimiter=separator, skipinitialspace=True):
            # pandas leaves out empty lines, too.
            if len(cells) > 1 or "".join(cells).strip():
                yield cells


def _distinct(names: Sequence[str]) -> list[str]:
    """The names of columns as the file writes them; one without a name has that of its place."""
    distinct = list[str]()
    for place, name in enumerate(names):
        is_free = name.strip() or "" not in distinct
        distinct.append(name if is_free else f"Unnamed: {place}")
    return distinct


def _taken_of_lines(path: Path) -> Callable[[int], Table]:
    """The rows of JSON lines, as Python's values."""
    unpacked: Any = gzip.open if path.suffix.lower() == ".gz" else open
    with unpacked(path, "rt", encoding="utf-8-sig") as file:
        rows = [json.loads(line) for line in file if line.strip()]
    names = dict.fromkeys(name for row in rows for name in row)
    remaining = iter(rows)

    def take(count: int) -> Table:
        part = list(islice(remaining, count))
        _check_count(len(part), count)
        return {name: [row.get(name, ABSENT) for row in part] for name in names}

    return take


def _parts_of_parquet(path: Path) -> Iterator[Any]:
    arrow, parquet = require("pyarrow"), require("pyarrow.parquet")
    with parquet.ParquetFile(path) as file:
        for batch in file.iter_batches():
            yield arrow.Table.from_batches([batch])


def _taken_of_arrow(parts: Iterator[Any]) -> Callable[[int], Table]:
    """The rows of tables of Arrow, in the types that they have."""
    arrow = require("pyarrow")
    waiting = next(parts)

    def take(count: int) -> Table:
        nonlocal waiting
        while waiting.num_rows < count:
            part = next(parts, None)
            if part is None:
                break
            waiting = arrow.concat_tables([waiting, part])
        _check_count(min(count, waiting.num_rows), count)
        rows, waiting = waiting.slice(0, count), waiting.slice(count)
        return dict(zip(rows.column_names, rows.columns, strict=True))

    return take


def _of_arrays(path: Path, answers: str) -> Rows:
    """The arrays of an npz. Those that lie uncompressed in the file stay there."""
    names = array_names(path)
    arrays = Table()
    for name in names:
        with suppress(InputError):  # Python objects are never unpickled
            arrays |= read_arrays(path, only=[name], mapped=[name])
    n_rows = len(arrays[answers])
    by_row = Table()
    for name, array in arrays.items():
        if name != "class_names" and np.shape(array)[:1] == (n_rows,):
            by_row[name] = array
    others = {name: array for name, array in arrays.items() if name not in by_row}
    start = 0

    def take(count: int) -> Table:
        nonlocal start
        first, start = start, start + count
        return {name: some_rows(array, first, first + count) for name, array in by_row.items()}

    return Rows(take, others, [name for name in names if name not in arrays])
