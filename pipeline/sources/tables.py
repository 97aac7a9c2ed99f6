"""CSV and parquet files as data frames, and their columns as numbers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from metrics.archive import LARGEST_ARRAY
from metrics.validation import InputError
from pipeline.sources.result import reason_of
from pipeline.sources.text import is_plain, short

if TYPE_CHECKING:
    import pandas as pd

TABLES = (".csv", ".parquet")
"""Endings of file names that are read as tables."""


def read_table(path: Path) -> pd.DataFrame:
    """The table in a CSV (UTF-8, commas, a header line) or parquet file, at least one row.

    The names of the columns are printable text without spaces around it.

    Raises:
        InputError: one line with the file, the reason and the fix.
    """
    import pandas as pd

    is_parquet = path.suffix.lower() == ".parquet"
    try:
        table = _read_parquet(path) if is_parquet else _read_csv(path)
    except InputError:
        raise
    except Exception as error:  # pandas and Arrow raise many kinds for damaged files
        kind = "parquet" if is_parquet else "CSV: text in UTF-8 with commas"
        raise InputError(
            f"{path}: not readable as {kind} ({reason_of(error)}); export it again"
        ) from error
    if table.empty:
        raise InputError(f"{path}: no rows; give a line of names, and one row per point")
    table.columns = pd.Index([str(name).strip() for name in table.columns])
    for place, name in enumerate(table.columns, 1):
        if not is_plain(name) or name in table.columns[: place - 1]:
            what = "is another one's, too" if is_plain(name) else "holds control characters"
            raise InputError(f"{path}: the name of column {place} {what}; rename it")
    return table


def _read_parquet(path: Path) -> pd.DataFrame:
    import pandas as pd
    import pyarrow.parquet

    size = pyarrow.parquet.read_metadata(path)
    if size.num_rows * size.num_columns * 8 > LARGEST_ARRAY:
        raise InputError(
            f"{path}: {size.num_rows:,} rows of {size.num_columns} columns take more than "
            f"the limit of {LARGEST_ARRAY:,} bytes; give fewer rows"
        )
    return pd.read_parquet(path)


def _read_csv(path: Path) -> pd.DataFrame:
    import pandas as pd

    if path.stat().st_size > LARGEST_ARRAY:
        raise InputError(f"{path}: more than {LARGEST_ARRAY:,} bytes; save it as npz")
    with warnings.catch_warnings():
        # pandas would drop the rest of rows that are longer than the header.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        # "NA" and "null" may be names of classes; a column of numbers refuses them as text.
        return pd.read_csv(
            path, index_col=False, keep_default_na=False, na_values=[""], low_memory=False
        )


def text_column(column: pd.Series[Any]) -> NDArray[np.str_]:
    """A column's entries as text without spaces around it; "" for an empty cell."""
    text = column.astype(object).where(column.notna(), "").to_numpy(str)
    return np.char.strip(text)


def numbers_of(
    path: Path, table: pd.DataFrame, columns: Sequence[str], fix: str
) -> NDArray[np.float64]:
    """The columns called `columns` as numbers [rows, columns].

    Raises:
        InputError: a cell is no finite number; the message names the column and ends with `fix`.
    """
    cells = table[list(columns)]
    # pandas would return memory that is not writable, of which torch warns.
    matrix = cells.apply(_as_numbers).to_numpy(np.float64, copy=True, na_value=np.nan)
    wrong = np.argwhere(~np.isfinite(matrix))
    if len(wrong):
        row, place = wrong[0]
        is_empty = cells.iloc[:, place].isna().iloc[row]
        what = "nothing" if is_empty else f"`{short(str(cells.iloc[row, place]))}`"
        raise InputError(
            f"{path}: column `{short(columns[place])}` holds {what} in row {table.index[row]}, "
            f"which is no finite number; {fix}"
        )
    return matrix


def _as_numbers(column: pd.Series[Any]) -> pd.Series[Any]:
    """Numbers, and NaN for all else. pandas would convert dates, but not their text."""
    import pandas as pd

    is_numeric = pd.api.types.is_numeric_dtype(column.dtype)
    return pd.to_numeric(column if is_numeric else column.astype(str), errors="coerce")
