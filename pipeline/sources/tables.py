"""CSV and parquet files as data frames; what is no such file is named for what it is."""

from __future__ import annotations

import csv
import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from metrics.archive import LARGEST_ARRAY
from metrics.validation import InputError
from pipeline.sources.result import reason_of

if TYPE_CHECKING:
    import pandas as pd

TABLES = (".csv", ".parquet")
"""Endings of file names that are read as tables."""

STARTS = {
    b"\xff\xfe\0\0": "text in UTF-32; save it as UTF-8",
    b"\xff\xfe": "text in UTF-16; save it as UTF-8",
    b"\xfe\xff": "text in UTF-16; save it as UTF-8",
    b"PK": "a zip archive, such as an npz or a spreadsheet; name it .npz, or export it as CSV",
    b"PAR1": "a parquet file; name it .parquet",
    b"\x1f\x8b": "compressed with gzip; unpack it",
    b"\x93NUMPY": "an array of NumPy; save it with numpy.savez as .npz",
}
"""What a file that should be a CSV is, by its first bytes."""

SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


def read_table(path: Path) -> pd.DataFrame:
    """The table in a CSV (UTF-8, commas, a header line) or parquet file, at least one row.

    Raises:
        InputError: one line with the file, what it is instead, and the fix.
    """
    table = _read_parquet(path) if path.suffix.lower() == ".parquet" else _read_csv(path)
    if table.empty:
        raise InputError(f"{path}: no rows; give one per point")
    return table


def _read_parquet(path: Path) -> pd.DataFrame:
    import pandas as pd
    import pyarrow.parquet

    try:
        size = pyarrow.parquet.read_metadata(path)
        if size.num_rows * size.num_columns * 8 > LARGEST_ARRAY:
            raise InputError(
                f"{path}: {size.num_rows:,} rows of {size.num_columns} columns take more than "
                f"the limit of {LARGEST_ARRAY:,} bytes; give fewer rows"
            )
        table = pd.read_parquet(path)
    except InputError:
        raise
    except Exception as error:  # Arrow's own hierarchy, and what damaged sizes lead to
        reason = reason_of(error)
        raise InputError(f"{path}: not readable as parquet ({reason}); write it again") from error
    table.columns = pd.Index([str(name).strip() for name in table.columns])
    return table


def _read_csv(path: Path) -> pd.DataFrame:
    """Its columns under the names of the first line, without spaces around them."""
    import pandas as pd

    if path.stat().st_size > LARGEST_ARRAY:
        raise InputError(f"{path}: more than {LARGEST_ARRAY:,} bytes; save it as npz")
    names = check_is_text(path)
    try:
        with warnings.catch_warnings():
            # Rows longer than the header: pandas would drop what is too much.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            # "NA" and "null" may be names of classes; in a column of numbers they are told as text.
            table = pd.read_csv(
                path, index_col=False, keep_default_na=False, na_values=[""], low_memory=False
            )
    except (ValueError, MemoryError, OverflowError, pd.errors.ParserWarning) as error:
        _check_row_lengths(path)
        reason = reason_of(error)
        raise InputError(f"{path}: not readable as CSV ({reason}); export it again") from error
    if len(names) != len(table.columns) or bool(table.isna().any(axis=None)):
        _check_row_lengths(path)  # pandas fills rows that are too short
    if len(names) == len(table.columns):
        table.columns = pd.Index(names)
    return table


def check_is_text(path: Path) -> list[str]:
    """The values of the first line of a CSV that has commas and is in UTF-8.

    Raises:
        InputError: the file is something else; the line says what.
    """
    with path.open("rb") as file:
        start = file.read(4096)
    for signature, what in STARTS.items():
        if start.startswith(signature):
            raise InputError(f"{path}: this is {what}")
    if b"\0" in start:
        raise InputError(f"{path}: holds zero bytes, so it is no text in UTF-8; export it as CSV")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = next((values for values in csv.reader(file) if values), [])
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not in UTF-8 ({error.reason}); save it as UTF-8") from error
    except csv.Error as error:
        raise InputError(f"{path}: not readable as CSV ({error}); export it again") from error
    if not first:
        raise InputError(f"{path}: an empty CSV; it needs a line of names and one line per point")
    if len(first) == 1:
        for separator, what in SEPARATORS.items():
            if separator in first[0]:
                raise InputError(
                    f"{path}: columns are separated by {what}; save it with commas "
                    "(pandas: to_csv(sep=','), decimals with a point)"
                )
    return [value.strip() for value in first]


def _check_row_lengths(path: Path) -> None:
    """`InputError` naming the first line that has not as many values as the first line has names.

    Reads the file once more: only for a file that is known to be faulty. Where it is no CSV at all,
    the caller tells what pandas found.
    """
    names = 0
    with (
        suppress(csv.Error, UnicodeDecodeError),
        path.open(encoding="utf-8-sig", newline="") as file,
    ):
        lines = csv.reader(file)
        for values in lines:
            names = names or len(values)
            if "".join(values).strip() and len(values) != names:
                raise InputError(
                    f"{path}: line {lines.line_num} has {len(values)} values for the {names} "
                    "columns that the first line names; complete or remove it"
                )
