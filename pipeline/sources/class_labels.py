"""Turn labels of any kind (names, 1 to C, -1 and 1, booleans) into class numbers 0 to C - 1."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.validation import InputError, check_labels
from pipeline.sources.text import listed, short, text_of

WHOLE = r"-?\d{1,15}"
"""Pattern of a whole number."""


@dataclass(frozen=True)
class ClassLabels:
    """Class numbers [n], the classes' names if they have any, and notes on decisions."""

    numbers: NDArray[np.int64]
    names: list[str] | None = None
    notes: list[str] = field(default_factory=list)


def class_labels(
    labels: Any, n: int, classes: int, names: Sequence[str] | None, field: str = "labels"
) -> ClassLabels:
    """Number the classes of `labels` [n] in the order of the `classes` columns.

    If all labels are among `names` [C], those of the columns, they are matched by name. Other
    labels must be the numbers of the columns, 0 to C - 1. Without `names`, C different labels of
    any other kind, numbers or text, name the columns in increasing order.

    Raises:
        InputError: a label is missing or unknown, or the length is wrong.
    """
    plain = _plain(labels, field)
    is_text = plain.dtype.kind == "U"
    if plain.shape != (n,) or (not is_text and not np.isfinite(plain).all()):
        check_labels(np.zeros(plain.shape) if is_text else plain, n, classes, name=field)
    values, places = np.unique(plain, return_inverse=True)
    texts, counted = _written(values), [str(number) for number in range(classes)]
    spellings = [] if names is None else [list(names), _without_prefix(names)]
    for spelling in spellings:
        if set(texts) <= set(spelling):
            columns = np.array([spelling.index(text) for text in texts])
            return ClassLabels(columns[places], None if spelling == counted else spelling)
    if is_text and names is not None:
        place = next(k for k, text in enumerate(texts) if text not in {*names, *spellings[1]})
        raise InputError(
            f"{field}: {short(texts[place])} in row {int((places == place).argmax())} is no "
            f"column's name (they are {listed(names)}); correct it, or name the columns as the "
            "labels are"
        )
    is_numbered = set(texts) <= set(counted) or len(texts) != classes or names is not None
    if is_numbered and not is_text:
        numbers = check_labels(plain, n, classes, name=field)
        return ClassLabels(numbers.numpy(), None if names is None else list(names))
    if len(texts) != classes:
        raise InputError(
            f"{field}: not an array of class numbers 0 to {classes - 1} but {len(texts)} names "
            f"({listed(texts)}) for {classes} columns; add `class_names`, one per column"
        )
    note = f"labels are not 0 to {classes - 1}: the columns are taken in the order"
    if is_text:
        note = "labels are names: the columns are taken in alphabetical order,"
    return ClassLabels(places, texts, [f"{note} {listed(texts)}"])


def label_names(labels: Any, field: str = "labels") -> list[str]:
    """The different labels as text, in increasing order, without missing ones."""
    plain = _plain(labels, field)
    return _written(np.unique(plain[np.isfinite(plain)] if plain.dtype.kind == "f" else plain))


def notes_on_absent_classes(labels: ClassLabels, classes: int, field: str = "labels") -> list[str]:
    """A note on columns that are no point's label, because they may be no classes.

    Raises:
        InputError: all points are of one class.
    """
    counts = np.bincount(labels.numbers, minlength=classes)
    names = np.array(labels.names or range(classes)).astype(str)
    if counts.max() == len(labels.numbers) > 1:
        raise InputError(
            f"{field}: all {len(labels.numbers)} are {short(names[counts.argmax()])}; give points "
            "of at least two classes"
        )
    if counts.all():
        return []
    absent = listed(names[counts == 0])
    return [f"no point's label is {absent}; what is no class must not be among the columns"]


def class_of_column(column: str, labels: Sequence[str]) -> str | None:
    """The label in a column's name, alone or after a prefix: sick, p_sick, P(sick), p1."""
    if column in labels:
        return column
    bare = _folded(column)
    number = re.fullmatch(r"\D*(\d+)", bare)
    bearing = [
        label
        for label in labels
        if f"_{bare}".endswith(f"_{_folded(label)}") or (number and number[1] == label)
    ]
    return max(bearing, key=len, default=None)


def _folded(name: str) -> str:
    """A name in lower case, with `_` for everything but letters and digits."""
    return re.sub(r"[\W_]+", "_", name).strip("_").casefold()


def _plain(labels: Any, field: str) -> NDArray[Any]:
    """Numbers or text; text becomes numbers if all of it is whole numbers."""
    plain = np.asarray(labels)
    if plain.dtype.kind in "SU" and plain.ndim == 1:
        plain = text_of(plain, len(plain), field)
        if len(plain) and all(re.fullmatch(WHOLE, label) for label in plain.tolist()):
            plain = plain.astype(np.int64)
    if plain.dtype.kind not in "biufU":
        raise InputError(f"{field}: an array of {plain.dtype}; give class names or numbers")
    return plain


def _without_prefix(names: Sequence[str]) -> list[str]:
    """The names without their common prefix: p_cat, p_dog give cat, dog, and c0, c1 give 0, 1."""
    alike = takewhile(lambda letters: len(set(letters)) == 1, zip(*names))
    prefix = "".join(letters[0] for letters in alike)
    letters = re.split(r"\d", prefix)[0]
    bare = [name.removeprefix(letters) for name in names]
    if all(re.fullmatch(WHOLE, name) for name in bare):
        return bare
    begun_word = re.split(r"[\W_]", prefix)[-1]
    bare = [name.removeprefix(prefix.removesuffix(begun_word)) for name in names]
    return bare if all(bare) else list(names)


def _written(values: NDArray[Any]) -> list[str]:
    """Text as it is, numbers as text: 2.0 is written 2."""
    if values.dtype.kind == "U":
        return [str(value) for value in values]
    return [str(int(value)) if value == int(value) else str(value) for value in values.tolist()]
