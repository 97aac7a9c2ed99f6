"""Which column belongs to which class: numbers by place, names by equal names.

Names that are only alike, such as prob_cat for cat, are for those who read a person's file to
match (`pipeline/own/words/patterns.py`).
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import Array, kind_of, plain
from .errors import InputError
from .validation import check_labels, check_nothing_is_masked

OPPOSITES = (("false", "true"), ("no", "yes"), ("negative", "positive"), ("neg", "pos"))
"""Names of two columns of which the second one is that of class 1."""


def frame_names(values: Any) -> NDArray[np.str_] | None:
    """The names of a data frame's columns as text; None for pandas' own 0 … C-1."""
    columns = getattr(values, "column_names", getattr(values, "columns", None))  # arrow's, others'
    if columns is None or list(columns) == list(range(len(columns))):
        return None
    return np.array([str(name) for name in columns], dtype=np.str_)


def classes_of(
    labels: Any, matrix: Any, columns: int, classes: Any = None, name: str = "labels"
) -> NDArray[Any]:
    """Return the class of each column, [C]: those of `classes`, or the frame's, or 0 … C-1.

    One rule for metrics and calibrators: without `classes`, labels that are numbers are places of
    columns, and labels that are names are matched with the names of a data frame's columns. True
    and False are names where columns are called so, else they are 1 and 0.

    `labels` [n] are those of the points, `matrix` is what a user gave, with `columns` C.
    InputError: nothing says which column belongs to which class, or two things disagree.
    """
    frame = frame_names(matrix)
    if classes is not None:
        return _checked_classes(classes, columns, frame)
    text = _as_text(labels, name)
    if text is None:
        if frame is not None:
            if are_truth_values(labels) and _opposites_of(frame.tolist()) == ["false", "true"]:
                return np.array([column.capitalize() for column in frame.tolist()], dtype=np.str_)
            _check_opposites(frame.tolist(), name)
            _check_numbered(labels, frame.tolist(), name)
        return np.arange(columns, dtype=np.int64)
    names = np.unique(text).tolist()
    if frame is not None and set(names) <= set(frame.tolist()) and len(set(frame)) == columns:
        return frame
    some_names = ", ".join(map(repr, names[:3])) + ", …" * (len(names) > 3)
    beside = "without names" if frame is None else ", ".join(frame.tolist()[:3]) + ", …"
    fixes = [
        "give an array and say which column is which, in their order: classes=[…] (of "
        "scikit-learn: classes=model.classes_)",
        "give a data frame whose columns have the classes' names",
    ]
    if frame is None and set(names) <= {str(number) for number in range(columns)}:
        fixes = ["these are column numbers as text: make them numbers, as `.astype(int)` does"]
    message = f"{len(names)} names ({some_names}) beside {columns} columns {beside}"
    raise InputError(message, field=name, fixes=fixes)


def _checked_classes(classes: Any, columns: int, frame: NDArray[np.str_] | None) -> NDArray[Any]:
    """Return the user's `classes` as numbers or text, if they fit the columns."""
    values = np.asarray(plain(classes, "classes")).ravel()
    names = [text_of(entry) for entry in values.tolist()]
    if len(names) != columns or len(set(names)) < columns:
        message = f"{len(set(names))} names for {columns} columns"
        raise InputError(message, field="classes", fixes="name each once")
    if frame is not None:
        for place, (column, name) in enumerate(zip(frame, names, strict=True)):
            if column != name:
                message = f"column {place} of the data frame is {column}, but `classes` has {name}"
                fixes = ["give both the same names in one order", "give frame.to_numpy()"]
                raise InputError(f"{message} there", field="classes", fixes=fixes)
    if values.dtype.kind in "iuU":
        return values
    is_whole = values.dtype.kind == "f" and bool((values == np.round(values)).all())
    return values.astype(np.int64) if is_whole else np.array(names, dtype=np.str_)


def are_truth_values(labels: Any) -> bool:
    """Whether all labels are True or False, also as Python's values in an array of objects."""
    try:
        values = np.asarray(plain(labels))
    except ValueError:  # rows of different lengths, which `check_labels` reports
        return False
    if values.dtype.kind != "O":
        return values.dtype.kind == "b"
    return all(isinstance(label, bool | np.bool_) for label in values.ravel())


def _opposites_of(columns: Sequence[str]) -> list[str]:
    """The pair of `OPPOSITES` that two columns are called, in the order of their numbers."""
    names = {column.lower() for column in columns}
    return next((list(pair) for pair in OPPOSITES if names == set(pair)), [])


def _check_opposites(columns: Sequence[str], name: str) -> None:
    """Raise `InputError` if labels that are numbers meet two columns such as yes, no.

    By place label 1 would be a no.
    """
    words = [set(re.findall("[a-z]+", column.lower())) for column in columns]  # of p_yes: p, yes
    if len(columns) == 2 and any(
        words[0] & {first, second} == {second} and words[1] & {first, second} == {first}
        for first, second in OPPOSITES
    ):
        message = f"these are numbers, but the columns are {', '.join(columns)}"
        fixes = [f"put them in the order {columns[1]}, {columns[0]}", "give an array"]
        raise InputError(message, field=name, fixes=fixes)


def _check_numbered(labels: Any, columns: Sequence[str], name: str) -> None:
    """Raise `InputError` if columns that differ in a number are not in the order of the classes.

    Labels that are numbers are places of columns, so the names may only say the same: 0 … C-1, or
    1 … C where a label is 0.
    """
    values = np.asarray(plain(labels, name))
    n_columns = len(columns)
    orders = [list(range(n_columns))]
    if 0 in values:
        orders.append(list(range(1, n_columns + 1)))
    differ_otherwise = len({re.sub(r"\d+", "", column) for column in columns}) > 1
    if differ_otherwise:
        return
    # A name may have several numbers, such as model2_class3; each is looked at across the columns.
    for digits in zip(*(re.findall(r"\d+", column) for column in columns), strict=False):
        numbers = list(map(int, digits))
        if len(set(numbers)) == len(numbers) > 1 and numbers not in orders:
            raise InputError(
                "these are class numbers, but the columns are in the order "
                f"{', '.join(columns[:3])}, …",
                field=name,
                fixes=f"put them in the order 0 to {len(columns) - 1}",
            )


def codes_of(labels: Any, n: int, classes: NDArray[Any], name: str = "labels") -> Array:
    """Return the column number of each of `labels` [n], int64, for columns of these `classes` [C].

    InputError: a label is no class, or there are not as many labels as rows.
    """
    if classes.dtype.kind != "U" and np.array_equal(classes, np.arange(len(classes))):
        return check_labels(labels, n, len(classes), name)
    check_nothing_is_masked(labels, name)
    values = np.asarray(plain(labels, name))
    place_of = {text_of(entry): place for place, entry in enumerate(classes.tolist())}
    values = values.astype(np.str_) if values.dtype.kind == "O" else values
    distinct, places = np.unique(values, return_inverse=True)
    texts = [text_of(entry) for entry in distinct.tolist()]
    codes = np.array([place_of.get(text, -1) for text in texts], dtype=np.int64)
    if (codes < 0).any():
        unknown = int((codes < 0).argmax())
        row = int((places.ravel() == unknown).argmax())
        some_classes = ", ".join(map(str, classes[:3])) + ", …" * (len(classes) > 3)
        message = f"none of the classes ({some_classes}): {texts[unknown]!r}"
        raise InputError(message, field=name, row=row, fixes="correct it")
    return check_labels(codes[places].reshape(values.shape), n, len(classes), name)


def class_codes(labels: Any, matrix: Any, shape: Sequence[int], classes: Any = None) -> Array:
    """Return the column number of each label, int64 [n], for a `matrix` of `shape` [n, C]."""
    return codes_of(labels, shape[0], classes_of(labels, matrix, shape[1], classes))


def column_numbers(labels: Any, matrix: Any, shape: Sequence[int], name: str = "labels") -> Array:
    """Return labels that are numbers of columns, int64 [n], for a `matrix` of `shape` [n, C].

    Names are refused, for what is kept by column: the next batch may have another order of them.
    """
    numbers = check_labels(labels, shape[0], shape[1], name)
    classes = classes_of(labels, matrix, shape[1], name=name)
    if classes.dtype.kind == "U":
        _check_opposites(classes.tolist(), name)
    return numbers


def _as_text(labels: Any, name: str) -> NDArray[np.str_] | None:
    if kind_of(labels):
        return None
    check_nothing_is_masked(labels, name)
    try:
        values = np.asarray(labels)
    except ValueError:  # rows of different lengths, which `check_labels` reports
        return None
    if values.dtype.kind == "O":
        are_text = [isinstance(label, str) for label in values.ravel()]
        if any(are_text) and not all(are_text):
            row = are_text.index(False)
            message = f"{values.ravel()[row]!r} among names"
            fix = "name its class, or leave it out"
            raise InputError(message, field=name, row=row, fixes=fix)
        values = values.astype(np.str_) if all(are_text) else values
    return values if values.dtype.kind == "U" and values.ndim == 1 else None


def text_of(label: Any) -> str:
    """One text for a class and for its label; pandas makes 3.0 of 3 in a column with a gap."""
    if isinstance(label, bytes):
        return label.decode(errors="replace")
    return str(label).removesuffix(".0") if isinstance(label, float) else str(label)
