"""The rows of a person's file made ready: without what is left out, one row and label per point."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.layout import as_rows, classes_axis

from ..reading.cells import FileColumns, are_arrays, distinct_labels, plain_column
from ..words.file_options import FileOptions, matching
from ..words.message_text import some_of
from ..words.usual_names import with_names
from .lists import arrays_of, named_by_row
from .roles import labels_of
from .splits import is_empty, no_rows, only_training, without_training


class Joined(NamedTuple):
    """The rows of a file, or of two."""

    rows: FileColumns
    tested: Any = None
    """[1, n], True for the rows of a second file; None: there is none."""


def without_ignored(
    contents: Sequence[FileColumns], ignore: str | None, may_lack: bool = False
) -> list[FileColumns]:
    """What --ignore leaves of tables and arrays.

    may_lack: for a shard of several, of which another one may have such a column.

    Raises:
        InputError: no table has a column that is to be ignored.
    """
    names = list(dict.fromkeys(name for rows in contents for name in rows))
    flag = None if may_lack or all(map(are_arrays, contents)) else "--ignore"
    ignored = matching(ignore or "", names, flag)
    return [
        {name: values for name, values in rows.items() if name not in ignored} for rows in contents
    ]


def prepared(
    rows: FileColumns,
    file_options: FileOptions,
    notes: list[str],
    classes: Sequence[str] | None = None,
) -> FileColumns:
    """Points as rows, lists of answers as arrays, without points whose label is to be ignored.

    `classes` are those of the first rows, if there are any.
    """
    rows = _flat(named_by_row(rows, file_options), file_options, notes)
    rows = arrays_of(rows, file_options, notes, classes)
    return _without_labels(rows, file_options, notes)


def joined(
    paths: Sequence[Path],
    contents: Sequence[FileColumns],
    file_options: FileOptions,
    notes: list[str],
) -> Joined:
    """The prepared rows of a file, or of two, of which the second has the test points.

    Raises:
        InputError: no row is left, or the two files are not alike.
    """
    if any(map(is_empty, contents)):
        raise no_rows()
    contents = [without_training(rows, notes) for rows in contents]
    if any(map(is_empty, contents)):
        raise only_training()
    contents = without_ignored(contents, file_options.ignore)
    contents = [prepared(rows, file_options, notes) for rows in contents]
    if file_options.ignore_label is not None:
        for rows in contents:
            label = labels_of(list(rows), file_options, [])
            if not len(rows[label]):
                message = f"no case is left without {file_options.ignore_label}"
                raise InputError(message, field="--ignore-label", fixes="name fewer labels")
    if len(contents) == 1:
        return Joined(contents[0])
    return _of_two(paths[0], contents, file_options)


def _flat(rows: FileColumns, file_options: FileOptions, notes: list[str]) -> FileColumns:
    """Points of sequences or images as rows, as the metrics take them (metrics/layout.py).

    With labels [B, T] logits [B, T, C] or [B, C, T] become [B T, C].
    """
    label = labels_of(list(rows), file_options, [])
    shape = np.shape(rows[label]) if are_arrays(rows) else ()
    if len(shape) < 2:
        return rows
    flat: FileColumns = {}
    for name in file_options.kinds_of(rows):
        answers_shape = np.shape(rows[name])
        axis = classes_axis(answers_shape, shape, name) if len(answers_shape) > 2 else None
        if axis is not None:
            flat[name] = as_rows(rows[name], axis)
    if not flat:
        return rows
    first = next(iter(flat))
    notes.append(
        f"`{first}` of shape {list(np.shape(rows[first]))}: each of the "
        f"{int(np.prod(shape)):,} labels is a case; if those of one sequence or image depend on "
        "each other, add `clusters` of the labels' shape"
    )
    for name, values in rows.items():
        if np.shape(values) == shape:
            flat[name] = np.reshape(values, -1)
    return rows | flat


def _without_labels(rows: FileColumns, file_options: FileOptions, notes: list[str]) -> FileColumns:
    """The points whose label is none of those that --ignore-label names."""
    if file_options.ignore_label is None:
        return rows
    label = labels_of(list(rows), file_options, [])
    labels = distinct_labels(plain_column(rows[label]), label, [])
    ignored = {text.strip() for text in file_options.ignore_label.split(",")}
    kept_places = [place for place, text in enumerate(labels.texts) if text not in ignored]
    is_kept = np.isin(labels.places, kept_places)
    if not is_kept.all():
        count = np.sum(~is_kept)
        notes.append(f"{count:,} cases with the label {file_options.ignore_label} are left out")
    n = len(is_kept)
    left = dict(rows)
    for name, values in rows.items():
        # An npz may have as many classes as points.
        is_of_classes = name == "class_names" and are_arrays(rows)
        if not is_of_classes and len(values) == n:
            left[name] = values[is_kept]
    return left


def _of_two(path: Path, contents: Sequence[FileColumns], file_options: FileOptions) -> Joined:
    """The rows of two files together; `path` is the first of them."""
    first, second = contents
    names, others = with_names(first), with_names(second)
    is_one_form = are_arrays(first) == are_arrays(second)
    if not is_one_form or set(names) != set(others):
        what = "columns or arrays" if is_one_form else "form"
        odd = sorted({*names} ^ {*others})
        message = f"not the same {what} as in {path} ({some_of(odd)})"
        raise InputError(message, field="--test", fixes="give both in one form")
    rows = {}
    for name in names:  # the order of the second file's columns does not matter
        rows[name] = _joined_values(name, first[name], second[name], path)
    label = labels_of(names, file_options, [])
    n_calibrating, n_testing = len(first[label]), len(second[label])
    tests = np.repeat([False, True], [n_calibrating, n_testing])
    return Joined(rows, tests[None])


def _joined_values(name: str, first: Any, second: Any, path: Path) -> Any:
    """A column or array of two files as one; the names of the classes are those of both."""
    import pandas as pd

    if name == "class_names" and first.tolist() != second.tolist():
        raise InputError(f"not those of {path}", field=name, fixes="give the same classes")
    if first.shape[1:] != second.shape[1:]:
        message = f"not the same number of columns as in {path}"
        raise InputError(message, field=name, fixes="give the same classes")
    if name == "class_names":
        return first
    if isinstance(first, np.ndarray):
        return np.concatenate([first, second])
    return pd.concat([first, second])
