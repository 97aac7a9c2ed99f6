"""CSV and parquet files as data frames, and their columns as numbers."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from metrics.archive import LARGEST_ARRAY
from metrics.validation import InputError
from pipeline.sources.class_labels import is_plain, short
from pipeline.sources.result import reason_of

if TYPE_CHECKING:
    import pandas as pd

TABLES = (".csv", ".parquet")
"""Endings of file names that are read as tables."""


def read_table(path: Path) -> pd.DataFrame:
    """The table in a CSV (UTF-8, commas, a header line) or parquet file, at least one row.

    The columns' names are text without spaces around them; `check_names` says what is wrong with
    them.

    Raises:
        InputError: one line with the file, the reason and the fix.
    """
    import pandas as pd

    read = _read_parquet if path.suffix.lower() == ".parquet" else _read_csv
    try:
        table = read(path)
    except InputError:
        raise
    except Exception as error:  # of pandas, Arrow and the csv module; damaged sizes lead to others
        kind = "parquet" if read is _read_parquet else "CSV: text in UTF-8 with commas"
        raise InputError(
            f"{path}: not readable as {kind} ({reason_of(error)}); export it again"
        ) from error
    if table.empty:
        raise InputError(f"{path}: no rows; give a line of names, and one row per point")
    table.columns = pd.Index([str(name).strip() for name in table.columns])
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
    """Its columns under the names of the first line, which pandas would change where two agree."""
    import pandas as pd

    if path.stat().st_size > LARGEST_ARRAY:
        raise InputError(f"{path}: more than {LARGEST_ARRAY:,} bytes; save it as npz")
    with path.open(encoding="utf-8-sig", newline="") as file:
        names = next((values for values in csv.reader(file) if values), [])
    if len(names) == 1 and any(separator in names[0] for separator in ";\t|"):
        raise InputError(
            f"{path}: the first line holds no comma; separate columns by commas, and write "
            "decimals with a point"
        )
    with warnings.catch_warnings():
        # Rows longer than the header: pandas would drop what is too much.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        # "NA" and "null" may be names of classes; in a column of numbers they are told as text.
        table = pd.read_csv(
            path, index_col=False, keep_default_na=False, na_values=[""], low_memory=False
        )
    if len(names) == len(table.columns):
        table.columns = pd.Index(names)
    return table


def check_names(path: Path, names: Sequence[str], first: int = 0) -> None:
    """`InputError` naming a column without a printable name of its own.

    Args:
        names: of the columns from the one numbered `first` on.
    """
    for place, name in enumerate(names):
        if not name or name.startswith("Unnamed:"):
            raise InputError(
                f"{path}: column {first + place + 1} has no name, like the row numbers that pandas "
                "writes; leave it out (to_csv(index=False)), or name it"
            )
        if not is_plain(name):
            raise InputError(
                f"{path}: the name of column {first + place + 1} holds control characters; "
                "rename it"
            )
        if name in names[:place]:
            raise InputError(
                f"{path}: two columns are called `{short(name)}`; rename or remove one"
            )


def numbers_of(
    path: Path, table: pd.DataFrame, columns: Sequence[str], fix: str
) -> NDArray[np.float64]:
    """The columns called `columns` as numbers [rows, columns].

    Raises:
        InputError: a cell is no finite number; the line names the column and ends with `fix`.
    """
    import pandas as pd

    matrix = np.empty((len(table), len(columns)))
    for place, name in enumerate(columns):
        given = table[name]
        if not pd.api.types.is_numeric_dtype(given.dtype):
            # Of dates and lists pandas would make numbers; of their text it makes none.
            given = given.astype(str)
        elif pd.api.types.is_bool_dtype(given.dtype):
            raise InputError(f"{path}: column `{short(name)}` holds True and False; {fix}")
        numbers = pd.to_numeric(given, errors="coerce").to_numpy(np.float64, na_value=np.nan)
        wrong = ~np.isfinite(numbers)
        if wrong.any():
            row = int(wrong.argmax())
            cell = table[name].iloc[row : row + 1]
            what = "nothing" if cell.isna().all() else f"`{short(str(cell.item()))}`"
            raise InputError(
                f"{path}: column `{short(name)}` holds {what} in row {row}, which is no finite "
                f"number; {fix}"
            )
        matrix[:, place] = numbers
    return matrix
