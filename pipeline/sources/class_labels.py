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

    Labels that are among `names` [C], those of the columns, are matched by name. Other whole
    numbers from 0 to C - 1 are positions of columns. Otherwise there must be C different values,
    numbers or text, which then name the columns in increasing order.

    Raises:
        InputError: a label is missing, unknown or could mean two columns, or the length is wrong.
    """
    plain = _plain(labels, field)
    is_text = plain.dtype.kind == "U"
    if plain.shape != (n,) or (plain.dtype.kind == "f" and not np.isfinite(plain).all()):
        numbers = np.zeros(plain.shape) if is_text else plain
        check_labels(numbers, n, classes, name=field)  # says what is wrong
    values, places = np.unique(plain, return_inverse=True)
    texts = _written(values)
    if names is not None:
        by_name = _by_name(plain, texts, places, names, field)
        if by_name is not None:
            return by_name
    own_names = None if names is None or list(names) == _counted(classes) else list(names)
    if not is_text and (set(texts) <= set(_counted(classes)) or len(texts) != classes):
        return ClassLabels(check_labels(plain, n, classes, name=field).numpy(), own_names)
    if len(texts) != classes:
        raise InputError(
            f"{field}: not an array of class numbers 0 to {classes - 1} but {len(texts)} names "
            f"({listed(texts)}) for {classes} columns; add `class_names`, one per column"
        )
    note = f"labels are not 0 to {classes - 1}: the columns are taken in the order"
    if is_text:
        note = "labels are names: the columns are taken in alphabetical order,"
    return ClassLabels(places, own_names or texts, [f"{note} {listed(texts)}"])


def _by_name(
    plain: NDArray[Any],
    texts: Sequence[str],
    places: NDArray[np.int64],
    names: Sequence[str],
    field: str,
) -> ClassLabels | None:
    """Match `texts`, the different labels, to the columns' names; None if they are numbers.

    `places` [n] are the labels' places among `texts`.
    """
    classes, is_text, bare = len(names), plain.dtype.kind == "U", _without_prefix(names)
    are_numbers = not is_text and set(texts) <= set(_counted(classes))
    for spelling in (list(names), bare):
        if set(texts) <= set(spelling):
            if are_numbers and spelling == _counted(classes, 1):  # p1, p2, p3
                raise InputError(
                    f"{field}: {listed(texts)} may number the columns from 0, or name the columns "
                    f"1 to {classes}; name the columns 0 to {classes - 1}, or by words"
                )
            numbers = np.array([spelling.index(text) for text in texts])[places]
            return ClassLabels(numbers, None if spelling == _counted(classes) else spelling)
    if bare == _counted(classes) and not is_text:
        check_labels(plain, len(plain), classes, name=field)  # says which are too small or large
    are_words = not all(re.fullmatch(WHOLE, name) for name in bare)
    if not is_text and (are_words or (are_numbers and bare == _counted(classes, 1))):
        return None
    place, unknown = next((k, t) for k, t in enumerate(texts) if t not in {*names, *bare})
    raise InputError(
        f"{field}: {short(unknown)} in row {int((places == place).argmax())} is no column's name "
        f"(they are {listed(names)}); correct it, or name the columns as the labels are"
    )


def _counted(classes: int, first: int = 0) -> list[str]:
    return [str(number) for number in range(first, first + classes)]


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
    names = np.array(labels.names or _counted(classes))
    if counts.max() == len(labels.numbers) > 1:
        raise InputError(
            f"{field}: all {len(labels.numbers)} are {short(names[counts.argmax()])}; to say that "
            "always would seem perfect: give points of at least two classes"
        )
    if counts.all():
        return []
    absent = listed(names[counts == 0])
    return [f"no point's label is {absent}; what is no class must not be among the columns"]


def class_of_column(column: str, labels: Sequence[str]) -> str | None:
    """The label in a column's name, alone or after a prefix: sick, p_sick, P(sick), p1."""
    column = _whole(column)
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


def _whole(name: str) -> str:
    """A name without the decimals of a whole number: 1.0 is 1."""
    return re.sub(r"(\d)\.0+$", r"\1", name)


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
    for pattern in (r"\D*", r"(.*[\W_])?"):
        start = re.match(pattern, prefix)
        bare = [_whole(name[start.end() if start else 0 :]) for name in names]
        if all(re.fullmatch(WHOLE, name) for name in bare):
            return bare
    return bare if all(bare) else list(names)


def _written(values: NDArray[Any]) -> list[str]:
    """Text as it is, numbers as text: 2.0 is written 2."""
    if values.dtype.kind == "U":
        return [str(value) for value in values]
    return [str(int(value)) if value == int(value) else str(value) for value in values.tolist()]
