"""Columns of lists or objects of JSON as arrays, such as the logs of language models hold."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError, reason_of

from .cells import FileColumns, are_arrays, no_answer
from .choices import MOST, Choices
from .entries import LISTS, Entries, entries_of, word_of
from .listed import listed
from .message_text import IMPOSSIBLE, cut_off, some_of
from .patterns import as_number, whole_sets
from .usual_names import LABELS, LIKE_LABELS, spelt

if TYPE_CHECKING:
    import pandas as pd

NOTHING = np.empty(0)  # in place of a column that is not there


def has_lists(column: Any) -> bool:
    """Whether any cell of a column is a list or an object of JSON."""
    return column.dtype == object and any(isinstance(cell, LISTS) for cell in column)


def named_by_row(held: FileColumns, choices: Choices) -> FileColumns:
    """The same, where a column `labels` of lists names the entries of the answers row by row.

    Zero-shot pipelines write {"labels": ["dog", "cat"], "scores": [0.9, 0.1]}, the largest first.
    """
    if are_arrays(held) or choices.labels == "labels" or not has_lists(held.get("labels", NOTHING)):
        return held
    answers = [name for name in choices.kinds_of(held) if has_lists(held[name])]
    if not answers:
        return held
    rest = {name: column for name, column in held.items() if name != "labels"}
    for name in answers:
        cells = list(zip(held["labels"], held[name], strict=True))
        for row, pair in enumerate(cells):
            if not all(isinstance(part, LISTS[:-1]) for part in pair) or len({*map(len, pair)}) > 1:
                message, fix = (
                    "not as many names in `labels` as numbers",
                    "give one name per number",
                )
                raise InputError(message, row=row, column=name, fixes=fix)
        pairs = [
            [{"label": label, "score": score} for label, score in zip(*pair, strict=True)]
            for pair in cells
        ]
        rest[name] = held[name].copy()
        rest[name].loc[:] = pairs
    return rest


def arrays_of(
    held: FileColumns, choices: Choices, notes: list[str], known: Sequence[str] | None = None
) -> FileColumns:
    """The same, with each column of lists or objects of answers as an array, padded to one length.

    `class_names` are the names of the objects' entries, or those that a data set knows. The entries
    are those of the classes that --classes names, or that are `known`, if there are any.
    """
    classes = known
    if choices.classes is not None and "*" not in choices.classes:
        classes = [name.strip() for name in choices.classes.split(",")]
    usual = [of for of in held if spelt(of) in (*LABELS, *LIKE_LABELS) and not has_lists(held[of])]
    label = choices.labels or (usual[0] if len(usual) == 1 else None)
    names, matrices = dict[str, Any](), dict[str, Any]()
    for name, kind in ({} if are_arrays(held) else choices.kinds_of(held)).items():
        if has_lists(held[name]):
            matrices[name], entries = _matrix(name, label, held, kind, classes, notes)
            names |= {"class_names": np.array(entries)} if entries else {}
            _refuse_gaps(name, matrices[name])
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


def _refuse_gaps(name: str, matrix: NDArray[Any]) -> None:
    """Raise `InputError` for rows without an answer, or for entries that are missing."""
    gaps = np.isnan(matrix)
    if gaps.all(axis=1).any():
        raise no_answer(name, gaps.all(axis=1))
    if gaps.any():
        row = int(gaps.any(axis=1).argmax())
        raise InputError("NaN or nothing", row=row, column=name, fixes=IMPOSSIBLE)


def _matrix(
    name: str,
    label: str | None,
    held: FileColumns,
    kind: str,
    classes: Sequence[str] | None,
    notes: list[str],
) -> tuple[NDArray[Any], list[str]]:
    """A column of lists or objects as an array [n, C], and the names of the objects' entries.

    A list is of numbers, of pairs [number, whatever] as evaluation harnesses write them, or of
    objects such as {label, score}. A row that has fewer entries is padded with what is impossible,
    or with what the largest entries leave (listed.py).
    """
    column = held[name]
    with suppress(TypeError, ValueError):  # lists of one length, which this reads fast
        matrix = np.array(column.tolist(), float)
        if matrix.ndim == 2:
            return matrix, []
    rows = [entries_of(cell) for cell in column]
    _check_entries(name, rows)
    pairs = [(key, entries.are_listed) for entries in rows for key, _ in entries.pairs]
    keys: list[Any] = sorted({word_of(key) if are_listed else key for key, are_listed in pairs})
    if isinstance(keys[0], int) or not {*(classes or ())} & {*keys}:
        classes = None  # by place, or by a pattern such as LABEL_*
    if classes is None and not isinstance(keys[0], int):
        _check_names(name, label, held, keys, any(entries.are_tokens for entries in rows))
    is_p = kind == "probabilities" or (not kind and _in_unit(rows))
    try:
        matrix, more_notes = listed(rows, classes or keys, is_p)
    except (TypeError, ValueError) as error:
        reason = f"something else than numbers ({reason_of(error)})"
        fix = "give one per class, or objects {label, score}"
        raise InputError(reason, column=name, fixes=fix) from error
    notes += [f"`{name}`: {note}" for note in more_notes]
    return matrix, [] if isinstance(keys[0], int) else list(classes or keys)


def _check_entries(name: str, rows: Sequence[Entries]) -> None:
    """Raise `InputError` for a row without entries, or if some have names and others have none."""
    is_empty = [not entries.pairs and not entries.wrong for entries in rows]
    if any(is_empty):
        raise no_answer(name, np.array(is_empty))
    kinds = {type(key) for entries in rows for key, _ in entries.pairs}
    for row, entries in enumerate(rows):
        keys = [key for key, _ in entries.pairs]
        message = entries.wrong
        if not message and len(kinds) > 1:
            message = "lists and objects"
        elif not message and not entries.are_tokens and len({*keys}) < len(keys):
            message = "a name twice"
        if message:
            fix = "give each class one entry, in one form"
            raise InputError(message, row=row, column=name, fixes=entries.fix or fix)


def _check_names(
    name: str, label: str | None, held: FileColumns, keys: Sequence[str], are_tokens: bool
) -> None:
    """Refuse tokens that are no label, and names in no order beside labels that are numbers."""
    column = None if label is None else held[label]
    if column is None or "class_names" in held or hasattr(column, "cat"):
        return
    labels = sorted(set(column.dropna().astype(str).str.strip()))
    if any(not found.others for found in whole_sets(keys, labels)):
        return
    if None not in map(as_number, labels) and not set(labels) <= set(keys):
        message = f"numbers as labels ({some_of(labels)}) beside the names {some_of(keys)}"
        fix = "say which name is which number: --classes NAME,NAME, of which the first is 0"
        raise InputError(message, field=cut_off(str(label)), fixes=fix)
    if are_tokens:
        odd = [key for key in keys if key not in labels]
        words = (
            "a word that is no label" if len(odd) == 1 else f"{len(odd)} words that are no label"
        )
        message = f"{words} ({some_of(odd)})"
        chosen = ",".join(labels) if len(labels) <= MOST else "NAME,NAME"
        raise InputError(message, column=name, fixes=f"name the classes: --classes '{chosen}'")


def _in_unit(rows: Sequence[Entries]) -> bool:
    """Whether all numbers lie in [0, 1]; those that are none are refused later."""
    with suppress(TypeError, ValueError):
        return all(0 <= float(value) <= 1 for entries in rows for _, value in entries.pairs)
    return False


def _one_list(column: pd.Series[Any]) -> NDArray[Any]:
    """The one list that every cell of the column `class_names` holds."""
    cells = [str(list(cell)) if isinstance(cell, LISTS) else "" for cell in column]
    if isinstance(column.iloc[0], dict) or "" in cells or len(set(cells)) > 1:
        row = next((row for row, cell in enumerate(cells) if cell != cells[0]), 0)
        message = "no list, or another one than in row 0,"
        fix = "give the same list in every row, one name per column of the answers"
        raise InputError(message, row=row, column="class_names", fixes=fix)
    return np.array(list(column.iloc[0]))
