"""Columns of lists, as programs for language models write them: they become arrays."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from metrics.validation import InputError
from pipeline.own.read import kind_of, plain_column

if TYPE_CHECKING:
    import pandas as pd

LABELS = ("label", "labels")


def arrays_of(path: str, held: Any) -> dict[str, NDArray[Any]] | None:
    """The file's arrays; a table has them if a column holds lists of answers."""
    if isinstance(held, dict):
        return held
    lists = [name for name in held if kind_of(name) and has_lists(held[name])]
    for name in filter(kind_of, held):
        if str(held[name].iloc[0]).startswith("[") and name not in lists:
            raise InputError(f"{path}: `{name}` holds lists as text; write JSON lines or parquet")
    if not lists:
        return None
    arrays: dict[str, Any] = {
        name: plain_column(held[name]) for name in held if not has_lists(held[name])
    }
    for name in held:  # a data set knows the order of its classes
        if name.lower() in LABELS and hasattr(held[name], "cat"):
            arrays.setdefault("class_names", held[name].cat.categories.to_numpy(str))
    for name in lists:
        lengths = held[name].map(lambda cell: len(cell) if _is_list(cell) else 0)
        if (odd := np.flatnonzero(lengths != lengths.iloc[0])).size:
            row, fill = int(odd[0]), "-inf" if kind_of(name) == "logits" else "0"
            raise InputError(
                f"{path}: column `{name}` has {lengths.iloc[row]} entries in row {row}, "
                f"{lengths.iloc[0]} in row 0; give one per class (pad with {fill} the impossible)"
            )
        if isinstance(held[name].iloc[0], dict):
            raise InputError(
                f"{path}: column `{name}` holds objects; write a list, or a column per class "
                "(pandas.json_normalize)"
            )
        arrays[name] = np.array(held[name].tolist())
        if arrays[name].dtype == object:  # `null` in JSON becomes NaN
            with suppress(TypeError, ValueError):
                arrays[name] = arrays[name].astype(float)
    return arrays


def has_lists(column: pd.Series[Any]) -> bool:
    """Whether any cell of a column is a list or an object of JSON."""
    return column.dtype == object and bool(column.map(_is_list).any())


def _is_list(cell: Any) -> bool:
    return isinstance(cell, (list, tuple, dict, np.ndarray))
