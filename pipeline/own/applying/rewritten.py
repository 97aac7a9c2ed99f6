"""Write the rows of a person's file again, with what `apply` adds to them: CSV, parquet, …

A matrix [n, C] becomes one column per class, except in an npz. Files appear when complete.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.calibrators.heavy_imports import require

from ...harness.artifacts import save_npz
from .whole_rows import ABSENT, Table

Parts = Iterator[Table]


def write_csv(path: Path, parts: Parts, decimal: str = ".") -> None:
    """Write a CSV with all digits, so that reading it gives the same numbers.

    With the decimal sign `,` cells end with a semicolon, and numbers have that sign.
    """
    separator = ";" if decimal == "," else ","
    special = re.compile(rf'[{separator}"\r\n]|^\s|\s$')
    with path.open("x", encoding="utf-8", newline="") as file:
        for number, part in enumerate(parts):
            is_first = number == 0
            if is_first:
                names = [_quoted(name, special) for name in part]
                file.write(separator.join(names) + "\n")
            columns = [_cells(column, decimal, special) for column in part.values()]
            file.writelines(separator.join(row) + "\n" for row in zip(*columns, strict=True))


def _cells(column: Any, decimal: str, special: re.Pattern[str]) -> list[str]:
    """The cells of a column as a CSV has them."""
    is_float = isinstance(column, np.ndarray) and column.dtype.kind == "f"
    if is_float and decimal == ",":
        return [str(number).replace(".", ",") for number in column.tolist()]
    texts = texts_of(column)
    is_number = isinstance(column, np.ndarray) and column.dtype.kind in "biuf"
    if is_number:  # no sign in a number needs quotes
        return texts
    return [_quoted(text, special) for text in texts]


def _quoted(text: str, special: re.Pattern[str]) -> str:
    """A cell in quotes if it has a sign that ends cells or rows, or a space that readers drop."""
    if special.search(text) is None:
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def write_lines(path: Path, parts: Parts) -> None:
    """Write an object of JSON per line."""
    with path.open("x", encoding="utf-8", newline="\n") as file:
        for part in parts:
            columns = [values_of(column) for column in part.values()]
            for row in zip(*columns, strict=True):
                # An entry that the person's object lacks is not written as null.
                pairs = zip(part, row, strict=True)
                entries = {name: value for name, value in pairs if value is not ABSENT}
                file.write(json.dumps(entries, ensure_ascii=False, default=str) + "\n")


def write_parquet(path: Path, parts: Parts) -> None:
    """Write a parquet file; a column has the type that its first rows have."""
    parquet = require("pyarrow.parquet")
    table = _arrow_table(next(parts))
    with parquet.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table)
        for part in parts:
            writer.write_table(_arrow_table(part).cast(table.schema))


def write_arrays(path: Path, parts: Parts, others: Table) -> None:
    """Write an npz with an array per column, and `others` as they are."""
    arrays = {
        name: values if isinstance(values, np.ndarray) else array_of(values)
        for name, values in joined(parts).items()
    }
    save_npz(path, {**others, **arrays})


def joined(parts: Parts) -> Table:
    """All rows together: arrays as one array, other columns as one list of Python's values."""
    every = list(parts)
    whole = Table()
    for name, first in every[0].items():
        columns = [part[name] for part in every]
        if isinstance(first, np.ndarray):
            whole[name] = np.concatenate(columns)
        else:
            whole[name] = [value for column in columns for value in values_of(column)]
    return whole


def by_column(part: Table, class_names: Sequence[str]) -> Table:
    """The same with a column for each column of a matrix: `calibrated_cat`, `calibrated_dog`."""
    columns = Table()
    for name, values in part.items():
        if not isinstance(values, np.ndarray) or values.ndim < 2:
            columns[name] = values
            continue
        rows = values.reshape(len(values), -1)
        is_by_class = rows.shape[1] == len(class_names)
        ends = class_names if is_by_class else range(rows.shape[1])
        for end, column in zip(ends, rows.T, strict=True):
            columns[f"{name}_{end}"] = column
    return columns


def values_of(column: Any) -> list[Any]:
    """The values of a column as Python's own."""
    if isinstance(column, list):
        return column
    if not isinstance(column, np.ndarray):
        return list(column.to_pylist())
    if column.dtype.kind == "S":
        column = np.char.decode(column, "utf-8", "replace")
    elif column.dtype.kind in "mM":  # as a list, nanoseconds would be whole numbers
        column = column.astype(str)
    return list(column.tolist())


def texts_of(column: Any) -> list[str]:
    """The cells of a column as text; "" for what is not there."""
    return [_text_of(value) for value in values_of(column)]


def _text_of(value: Any) -> str:
    if value is None or value is ABSENT:
        return ""
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def array_of(values: Sequence[Any]) -> NDArray[Any]:
    """Values as an array: of whole numbers, numbers or booleans, else of text."""
    kinds = {type(value) for value in values}
    for kind, dtype in ((bool, np.bool_), (int, np.int64), (float, np.float64)):
        if kinds == {kind}:
            with suppress(OverflowError):  # numbers of more than 64 bits stay as text
                return np.array(values, dtype=dtype)
    return np.array(texts_of(list(values)), dtype=np.str_)


def _arrow_table(part: Table) -> Any:
    return require("pyarrow").table({name: _arrow_column(values) for name, values in part.items()})


def _arrow_column(values: Any) -> Any:
    """A column of Arrow; values of several kinds, or beyond 64 bits, become text."""
    arrow = require("pyarrow")
    is_of_numpy = isinstance(values, np.ndarray)
    if is_of_numpy and values.dtype.kind in "biufM":
        with suppress(arrow.ArrowException):  # a type that Arrow lacks, such as float of 80 bits
            return arrow.array(values)
    if not is_of_numpy and not isinstance(values, list):
        return values  # a column of Arrow keeps its type
    plain = [None if value is ABSENT else value for value in values_of(values)]
    with suppress(arrow.ArrowInvalid, arrow.ArrowTypeError, OverflowError):
        return arrow.array(plain)
    return arrow.array([None if value is None else _text_of(value) for value in plain])
