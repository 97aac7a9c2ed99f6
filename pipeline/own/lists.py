"""Columns of lists or objects of JSON as arrays, such as the logs of language models hold."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError, reason_of

from .cells import Held, are_arrays
from .choices import Choices
from .told import IMPOSSIBLE
from .usual import ENTRIES, LABELS, spelt

if TYPE_CHECKING:
    import pandas as pd

LISTS = (list, tuple, np.ndarray, dict)  # what a cell of a column of lists may be


def has_lists(column: Any) -> bool:
    """Whether any cell of a column is a list or an object of JSON."""
    return column.dtype == object and any(isinstance(cell, LISTS) for cell in column)


def arrays_of(held: Held, choices: Choices, notes: list[str]) -> Held:
    """The same, with each column of lists or objects of answers as an array, padded to one length.

    `class_names` are the names of the objects' entries, or those that a data set knows.
    """
    names, matrices = dict[str, Any](), dict[str, Any]()
    for name, kind in ({} if are_arrays(held) else choices.kinds_of(held)).items():
        if has_lists(held[name]):
            matrices[name], entries = _matrix(name, held[name], kind, notes)
            names |= {"class_names": np.array(entries)} if entries else {}
            if (gaps := np.isnan(matrices[name]).any(axis=1)).any():
                row = int(gaps.argmax())
                raise InputError("NaN or nothing", row=row, column=name, fixes=IMPOSSIBLE)
        elif str(held[name].iloc[0]).startswith("["):
            raise InputError("lists as text", column=name, fixes="write JSON lines or parquet")
    if not matrices:
        return held
    for name in held:  # a data set knows the order of its classes
        if spelt(name) in LABELS and hasattr(held[name], "cat"):
            names = {"class_names": held[name].cat.categories.to_numpy(str)}
    if "class_names" in held:
        names = {"class_names": _one_list(held["class_names"])}
    return {**held, **matrices, **names}


def _matrix(
    name: str, column: pd.Series[Any], kind: str, notes: list[str]
) -> tuple[NDArray[Any], list[str]]:
    """A column of lists or objects as an array [n, C], and the names of the objects' entries.

    A list is of numbers, of pairs [number, whatever] as evaluation harnesses write them, or of
    objects such as {label, score}. A row that has fewer entries is padded with what is impossible.
    """
    with suppress(TypeError, ValueError):  # lists of one length, which this reads fast
        matrix = np.array(column.tolist(), float)
        if matrix.ndim == 2:
            return matrix, []
    entries = [_entries(cell) for cell in column]
    cells = [dict(pairs) for pairs in entries]
    kinds = {type(key) for cell in cells for key in cell}
    for row, (pairs, cell) in enumerate(zip(entries, cells, strict=True)):
        told = ""
        if len(kinds) > 1:
            told = "lists and objects"
        elif not cell:
            told = "no entries"
        elif len(cell) < len(pairs):
            told = "a name twice"
        if told:
            fix = "give each class one entry, in one form" if cell else IMPOSSIBLE
            raise InputError(told, row=row, column=name, fixes=fix)
    keys: list[Any] = sorted({key for cell in cells for key in cell})
    absent = np.array([[key not in cell for key in keys] for cell in cells])
    try:
        matrix = np.array([[cell.get(key, np.nan) for key in keys] for cell in cells], float)
    except (TypeError, ValueError) as error:
        told = f"something else than numbers ({reason_of(error)})"
        fix = "give one per class, or objects {label, score}"
        raise InputError(told, column=name, fixes=fix) from error
    if absent.any():
        held, rows = matrix[~absent], int(absent.any(axis=1).sum())
        is_p = kind == "probabilities" or (not kind and held.min() >= 0 and held.max() <= 1)
        matrix[absent] = 0.0 if is_p else -np.inf
        told = f"{rows} rows have fewer than {len(keys)} entries"
        notes.append(f"`{name}`: {told}; options that they lack are impossible")
    return matrix, [] if isinstance(keys[0], int) else keys


def _entries(cell: Any) -> list[tuple[Any, Any]]:
    """The numbers of a list by place, of an object by name; nothing of anything else."""
    if isinstance(cell, dict):
        return [(str(key), value) for key, value in cell.items()]
    if not isinstance(cell, LISTS):
        return []
    parts = list(cell)
    for name, number in ENTRIES:
        if all(isinstance(part, dict) and {name, number} <= part.keys() for part in parts):
            return [(str(part[name]), part[number]) for part in parts]
    pairs = all(isinstance(part, LISTS[:-1]) and len(part) == 2 for part in parts)
    return list(enumerate(part[0] if pairs else part for part in parts))


def _one_list(column: pd.Series[Any]) -> NDArray[Any]:
    """The one list that every cell of the column `class_names` holds."""
    cells = [str(list(cell)) if isinstance(cell, LISTS) else "" for cell in column]
    if isinstance(column.iloc[0], dict) or "" in cells or len(set(cells)) > 1:
        row = next((row for row, cell in enumerate(cells) if cell != cells[0]), 0)
        told = "no list, or another one than in row 0,"
        fix = "give the same list in every row, one name per column of the answers"
        raise InputError(told, row=row, column="class_names", fixes=fix)
    return np.array(list(column.iloc[0]))
