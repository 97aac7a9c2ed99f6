"""Columns of lists or objects of JSON as arrays, such as the logs of language models hold."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError, reason_of

from ..reading.cells import FileColumns, are_arrays, no_answer
from ..words.file_options import MOST, FileOptions
from ..words.message_text import IMPOSSIBLE, cut_off, some_of, typed
from ..words.patterns import as_number, whole_sets
from ..words.usual_names import LABELS, LIKE_LABELS, spelt
from .class_masses import class_masses
from .entries import LISTS, WITHOUT_NAMES, Entries, entries_of, word_of

if TYPE_CHECKING:
    import pandas as pd

CLASS_NAMES = "class_names"
"""The array, or the column of equal lists, with the names of the entries of the answers."""


def has_lists(column: Any) -> bool:
    """Whether any cell of a column is a list or an object of JSON."""
    return column.dtype == object and any(isinstance(cell, LISTS) for cell in column)


def named_by_row(rows: FileColumns, file_options: FileOptions) -> FileColumns:
    """The same, where a column `labels` of lists names the entries of the answers row by row.

    Zero-shot pipelines write {"labels": ["dog", "cat"], "scores": [0.9, 0.1]}, the largest first.
    """
    if are_arrays(rows) or file_options.labels == "labels" or "labels" not in rows:
        return rows
    names = rows["labels"]
    answers = [name for name in file_options.kinds_of(rows) if has_lists(rows[name])]
    if not answers or not has_lists(names):
        return rows
    others = {name: column for name, column in rows.items() if name != "labels"}
    for name in answers:
        others[name] = _with_names(rows[name], names, name)
    return others


def _with_names(column: pd.Series[Any], names: pd.Series[Any], name: str) -> pd.Series[Any]:
    """A column of lists of numbers as lists of objects {label, score}."""
    cells = list[list[dict[str, Any]]]()
    for row, (labels, scores) in enumerate(zip(names, column, strict=True)):
        are_lists = isinstance(labels, WITHOUT_NAMES) and isinstance(scores, WITHOUT_NAMES)
        if not are_lists or len(labels) != len(scores):
            message = "not as many names in `labels` as numbers"
            raise InputError(message, row=row, column=name, fixes="give one name per number")
        objects = []
        for label, score in zip(labels, scores, strict=True):
            objects.append({"label": label, "score": score})
        cells.append(objects)
    named = column.copy()  # with the index of the rows
    named.loc[:] = cells
    return named


def arrays_of(
    rows: FileColumns,
    file_options: FileOptions,
    notes: list[str],
    known: Sequence[str] | None = None,
) -> FileColumns:
    """The same, with each column of lists or objects of answers as an array, padded to one length.

    `class_names` are the names of the objects' entries, or those that a data set knows. The entries
    are those of the classes that --classes names, or that are `known`, if there are any.
    """
    if are_arrays(rows):
        return rows
    classes = known
    if file_options.classes is not None and "*" not in file_options.classes:
        classes = [name.strip() for name in file_options.classes.split(",")]
    label = _column_of_labels(rows, file_options)
    arrays = dict[str, Any]()
    class_names = None
    for name, kind in file_options.kinds_of(rows).items():
        column = rows[name]
        if has_lists(column):
            arrays[name], entry_names = _matrix(name, label, rows, kind, classes, notes)
            _refuse_gaps(name, arrays[name])
            class_names = np.array(entry_names) if entry_names else class_names
        elif str(column.iloc[0]).startswith("["):
            raise InputError("lists as text", column=name, fixes="write JSON lines or parquet")
    if not arrays:
        return rows
    for name, column in rows.items():  # a data set knows the order of its classes
        if spelt(name) in LABELS and hasattr(column, "cat"):
            class_names = column.cat.categories.to_numpy(str)
    if CLASS_NAMES in rows:
        class_names = _one_list(rows[CLASS_NAMES])
    if class_names is not None:
        arrays[CLASS_NAMES] = class_names
    return rows | arrays


def _column_of_labels(rows: FileColumns, file_options: FileOptions) -> str | None:
    """The column of the labels, if it is clear."""
    if file_options.labels:
        return file_options.labels
    usual = [name for name in rows if spelt(name) in (*LABELS, *LIKE_LABELS)]
    usual = [name for name in usual if not has_lists(rows[name])]
    return usual[0] if len(usual) == 1 else None


def _refuse_gaps(name: str, matrix: NDArray[Any]) -> None:
    """Raise `InputError` for rows without an answer, or for entries that are missing."""
    is_missing = np.isnan(matrix)
    is_empty_row = is_missing.all(axis=1)
    if is_empty_row.any():
        raise no_answer(name, is_empty_row)
    if is_missing.any():
        # Classes may be impossible, but a person must say so: it costs an infinite likelihood.
        row = int(is_missing.any(axis=1).argmax())
        raise InputError("NaN or nothing", row=row, column=name, fixes=IMPOSSIBLE)


def _matrix(
    name: str,
    label: str | None,
    columns: FileColumns,
    kind: str,
    classes: Sequence[str] | None,
    notes: list[str],
) -> tuple[NDArray[Any], list[str]]:
    """A column of lists or objects as an array [n, C], and the names of the objects' entries.

    A list is of numbers, of pairs [number, whatever] as evaluation harnesses write them, or of
    objects such as {label, score}. A row that has fewer entries is padded with what is impossible,
    or with what the largest entries leave (class_masses.py).
    """
    column = columns[name]
    with suppress(TypeError, ValueError):  # lists of one length, which this reads fast
        matrix = np.array(column.tolist(), float)
        if matrix.ndim == 2:
            return matrix, []
    rows = [entries_of(cell) for cell in column]
    _check_entries(name, rows)
    keys = _keys_of(rows)
    are_places = isinstance(keys[0], int)
    if are_places or not set(classes or ()) & set(keys):
        classes = None  # by place, or by a pattern such as LABEL_*
    if classes is None and not are_places:
        are_tokens = any(entries.are_tokens for entries in rows)
        _check_names(name, label, columns, keys, are_tokens)
    is_p = kind == "probabilities" or (not kind and _is_in_unit_range(rows))
    try:
        matrix, more_notes = class_masses(rows, classes or keys, is_p)
    except (TypeError, ValueError) as error:
        reason = f"something else than numbers ({reason_of(error)})"
        fix = "give one per class, or objects {label, score}"
        raise InputError(reason, column=name, fixes=fix) from error
    notes += [f"`{name}`: {note}" for note in more_notes]
    return matrix, [] if are_places else list(classes or keys)


def _keys_of(rows: Sequence[Entries]) -> list[Any]:
    """The names or places of all entries, in order; words without the spaces around them."""
    keys = set[Any]()
    for entries in rows:
        for key, _ in entries.pairs:
            keys.add(word_of(key) if entries.are_listed else key)
    return sorted(keys)


def _check_entries(name: str, rows: Sequence[Entries]) -> None:
    """Raise `InputError` for a row without entries, or if some have names and others have none."""
    is_empty = np.array([not entries.pairs and not entries.wrong for entries in rows])
    if is_empty.any():
        raise no_answer(name, is_empty)
    # A list gives places, which are whole numbers, and an object gives names.
    kinds = {type(key) for entries in rows for key, _ in entries.pairs}
    for row, entries in enumerate(rows):
        keys = [key for key, _ in entries.pairs]
        is_repeated = not entries.are_tokens and len(set(keys)) < len(keys)
        if entries.wrong:
            message = entries.wrong
        elif len(kinds) > 1:
            message = "lists and objects"
        elif is_repeated:
            message = "a name twice"
        else:
            continue
        fix = entries.fix or "give each class one entry, in one form"
        raise InputError(message, row=row, column=name, fixes=fix)


def _check_names(
    name: str, label: str | None, columns: FileColumns, keys: Sequence[str], are_tokens: bool
) -> None:
    """Refuse tokens that are no label, and names in no order beside labels that are numbers."""
    if label is None or CLASS_NAMES in columns or hasattr(columns[label], "cat"):
        return
    labels = sorted(set(columns[label].dropna().astype(str).str.strip()))
    if any(not bearers.part_of_further_column for bearers in whole_sets(keys, labels)):
        return
    are_numbers = all(as_number(text) is not None for text in labels)
    # Objects have no order, so place 0 of the labels could be any of the names.
    if are_numbers and not set(labels) <= set(keys):
        message = f"numbers as labels ({some_of(labels)}) beside the names {some_of(keys)}"
        fix = "say which name is which number: --classes NAME,NAME, of which the first is 0"
        raise InputError(message, field=cut_off(label), fixes=fix)
    if are_tokens:
        odd = [key for key in keys if key not in labels]
        words = f"{len(odd)} words that are no label"
        if len(odd) == 1:
            words = "a word that is no label"
        chosen = ",".join(labels) if len(labels) <= MOST else "NAME,NAME"
        fix = f"name the classes: {typed('--classes', chosen)}"
        raise InputError(f"{words} ({some_of(odd)})", column=name, fixes=fix)


def _is_in_unit_range(rows: Sequence[Entries]) -> bool:
    """Whether all numbers lie in [0, 1]; those that are none are refused later."""
    with suppress(TypeError, ValueError):
        return all(0 <= float(value) <= 1 for entries in rows for _, value in entries.pairs)
    return False


def _one_list(column: pd.Series[Any]) -> NDArray[Any]:
    """The one list that every cell of the column `class_names` holds."""
    first = column.iloc[0]
    # Lists are compared as text, because an array in a cell has no truth value of its own.
    texts = [str(list(cell)) if isinstance(cell, LISTS) else "" for cell in column]
    odd_rows = [row for row, text in enumerate(texts) if text != texts[0]]
    if isinstance(first, dict) or not texts[0] or odd_rows:
        row = odd_rows[0] if odd_rows else 0
        message = "no list, or another one than in row 0,"
        fix = "give the same list in every row, one name per column of the answers"
        raise InputError(message, row=row, column=CLASS_NAMES, fixes=fix)
    return np.array(list(first))
