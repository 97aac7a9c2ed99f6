"""Labels as people have them (names, numbers from 1, -1 and 1, booleans) to numbers 0 to C - 1."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.validation import InputError, check_labels

FEW = 5
"""Points of a class of which a split's part for fitting, or for scoring, may hold none."""

CONTROLS, JOINERS = ("Cc", "Cf", "Cs", "Zl", "Zp"), "\u00ad\u200c\u200d"


@dataclass(frozen=True)
class ClassLabels:
    """Class numbers [n], the classes' names where they have some, and what was decided."""

    numbers: NDArray[np.int64]
    names: list[str] | None = None
    notes: list[str] = field(default_factory=list)


def class_labels(
    labels: Any, n: int, classes: int, names: Sequence[str] | None, field: str = "labels"
) -> ClassLabels:
    """Number the classes of `labels` [n] in the order of the `classes` columns.

    Labels that are among `names` [C] (the columns', in their order) are meant by name; else whole
    numbers from 0 to C - 1 are numbers of columns; else C different values, numbers or text, stand
    for the columns in increasing order.

    Raises:
        InputError: a missing or unknown label, one that could mean two columns, another length.
    """
    given = _plain(labels, field)
    if given.shape != (n,):
        check_labels(np.zeros(given.shape), n, classes, name=field)  # says what is wrong
    if given.dtype.kind not in "biufU":
        raise InputError(
            f"{field}: an array of {given.dtype}; give class names or numbers 0 to {classes - 1}"
        )
    if given.dtype.kind == "U":
        return _from_text(given, classes, names, field)
    return _from_numbers(given, classes, names, field)


def label_names(labels: Any, field: str = "labels") -> list[str]:
    """The different labels as text, in increasing order; what is missing is left out."""
    given = _plain(labels, field)
    if given.dtype.kind == "f":
        given = given[np.isfinite(given)]
    values = np.unique(given)
    return values.tolist() if given.dtype.kind == "U" else _written(values)


def _plain(labels: Any, field: str) -> NDArray[Any]:
    """Text or numbers: bytes and objects become text, text that is all whole numbers numbers."""
    given = np.asarray(labels)
    if given.dtype.kind == "S":
        try:
            given = np.char.decode(given, "utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"{field}: bytes that are not UTF-8; save them as text") from error
    if given.dtype.kind == "O":
        missing = [row for row, label in enumerate(given.ravel()) if is_missing(label)]
        if missing:
            raise InputError(f"{field}: none in row {missing[0]}; complete or remove such rows")
        given = np.array([str(label) for label in given.ravel()]).reshape(given.shape)
    if given.dtype.kind == "U":
        given = np.char.strip(given)
        if given.size and all(re.fullmatch(r"-?\d{1,15}", label) for label in given.ravel()):
            given = given.astype(np.int64)
    return given


def is_missing(label: Any) -> bool:
    """Whether a label is NaN, None or pandas' way to say so."""
    if isinstance(label, float):
        return label != label
    return label is None or type(label).__name__ in ("NAType", "NaTType")


def _from_text(
    given: NDArray[np.str_], classes: int, names: Sequence[str] | None, field: str
) -> ClassLabels:
    if bool((given == "").any()):
        row = int((given == "").argmax())
        raise InputError(f"{field}: none in row {row}; complete or remove such rows")
    values, numbers = np.unique(given, return_inverse=True)
    if odd := with_hidden(values):
        raise InputError(
            f"{field}: {short(odd[0])} in row {int((given == odd[0]).argmax())} holds control "
            "characters; rename that class"
        )
    if names is not None:
        for spelling in (list(names), short_names(names)):
            if spelling is not None and set(values) <= set(spelling):
                places = np.array([spelling.index(value) for value in values])
                return ClassLabels(places[numbers].astype(np.int64), spelling)
        # Text amid numbers is the likelier slip.
        known = {*names, *(short_names(names) or ())}
        wrong = [value for value in values if value not in known] or values
        unknown = min((value for value in wrong if value not in names), key=str.isdecimal)
        row = int((given == unknown).argmax())
        raise InputError(
            f"{field}: {short(unknown)} in row {row} is no column's name (they are "
            f"{listed(names)}); correct it, or name the columns as the labels are"
        )
    if len(values) != classes:
        raise InputError(
            f"{field}: not an array of class numbers 0 to {classes - 1} but {len(values)} names "
            f"({listed(values)}) for {classes} columns; add `class_names`, one per column"
        )
    order = [str(value) for value in values]
    note = f"labels are names: the columns are taken in alphabetical order, {listed(order)}"
    return ClassLabels(numbers.astype(np.int64), order, [note])


def notes_on_rare_classes(labels: ClassLabels, classes: int, field: str = "labels") -> list[str]:
    """Notes of the classes of which there are few points or none: rare, or of something else.

    Raises:
        InputError: all points are of one class.
    """
    counts = np.bincount(labels.numbers, minlength=classes)
    names = np.array(labels.names or [str(number) for number in range(classes)])
    if counts.max() == len(labels.numbers) > 1:
        raise InputError(
            f"{field}: all {len(labels.numbers)} are {short(names[counts.argmax()])}; to say that "
            "always would seem perfect: give points of at least two classes"
        )
    absent, rare = names[counts == 0], names[(counts > 0) & (counts < FEW)]
    notes = []
    if len(absent):
        text = f"no point's label is {listed(absent)}"
        notes.append(f"{text}; what is no class must not be among the columns")
    if len(rare) and len(labels.numbers) >= FEW * classes:  # else it is the file that is small
        text = f"fewer than {FEW} points each have the label {listed(rare)}"
        notes.append(f"{text}: some splits are fitted or scored without them")
    return notes


def _from_numbers(
    given: NDArray[Any], classes: int, names: Sequence[str] | None, field: str
) -> ClassLabels:
    if given.dtype.kind == "f" and not np.isfinite(given).all():
        return ClassLabels(_as_numbers(given, classes, field))  # says which row
    values, numbers = np.unique(given, return_inverse=True)
    are_columns = bool(np.isin(values, np.arange(classes)).all())
    named = column_numbers(names) if names is not None else None
    from_zero = np.array_equal(np.arange(classes), () if named is None else named)
    if named is not None and not from_zero:
        by_name = bool(np.isin(values, named).all())
        in_order = np.array_equal(named, np.arange(1, classes + 1))  # p1, p2, p3
        if by_name and are_columns and in_order:
            raise InputError(
                f"{field}: {listed(values)} may number the columns from 0, or name the columns "
                f"1 to {classes}; name the columns 0 to {classes - 1}, or by words"
            )
        if by_name:
            places = np.argsort(named)[np.searchsorted(np.sort(named), values)]
            return ClassLabels(places[numbers].astype(np.int64), _written(named))
        if not (are_columns and in_order):
            unknown = values[~np.isin(values, named)][0]
            raise InputError(
                f"{field}: {unknown} names none of the columns ({listed(names or ())}); name "
                "each column by its class"
            )
    if are_columns or from_zero or len(values) != classes:
        return ClassLabels(_as_numbers(given, classes, field), _own(names, classes))
    order = _written(values)
    note = f"labels are not 0 to {classes - 1}: the columns are taken in the order {listed(order)}"
    return ClassLabels(numbers.astype(np.int64), _own(names, classes) or order, [note])


def _as_numbers(labels: NDArray[Any], classes: int, field: str) -> NDArray[np.int64]:
    return check_labels(labels, len(labels), classes, name=field).numpy()


def _own(names: Sequence[str] | None, classes: int) -> list[str] | None:
    """The columns' names where they say more than their numbers."""
    if names is None:
        return None
    numbers = column_numbers(names)
    if numbers is not None and np.array_equal(numbers, np.arange(classes)):
        return None
    return list(names)


def column_numbers(names: Sequence[str]) -> NDArray[np.float64] | None:
    """The numbers in names such as 0, 1, 2 or c0, c1, c2 or -1, 1, each once; None elsewhere."""
    parts = [re.fullmatch(r"(\D*)(\d{1,15})", name) for name in names]
    if all(parts) and len({part[1] for part in parts if part}) == 1:
        numbers = [float(part[2]) for part in parts if part]
    elif all(re.fullmatch(r"[-+]?\d+(\.\d*)?", name) for name in names):
        numbers = [float(name) for name in names]
    else:
        return None
    return np.array(numbers) if len(set(numbers)) == len(numbers) else None


def class_of_column(column: str, labels: Sequence[str]) -> str | None:
    """The label whose name a column bears, alone or after a prefix: sick, p_sick, P(sick), p1."""
    bare = re.sub(r"^(.*)\((.*)\)$", r"\1_\2", column).casefold()
    bare = re.sub(r"(\d)\.0+$", r"\1", bare)  # 1.0 is the number 1
    found = [
        label
        for label in labels
        if re.fullmatch(rf"(.*[\W_])?{re.escape(label.casefold())}", bare, re.DOTALL)
        or (label.isdecimal() and re.fullmatch(rf"\D*{label}", bare))
    ]
    return max(found, key=lambda label: (label == column, len(label)), default=None)


def short_names(names: Sequence[str]) -> list[str] | None:
    """The names without what all begin with, up to a separator: p_cat, p_dog give cat, dog."""
    start = re.match(r"(.*[\W_])?", _common_start(names))
    assert start is not None
    short = [name[start.end() :] for name in names]
    return short if start.end() and all(short) else None


def _common_start(names: Sequence[str]) -> str:
    low, high = min(names), max(names)
    same = next((k for k, (a, b) in enumerate(zip(low, high)) if a != b), min(len(low), len(high)))
    return low[:same]


def _written(values: NDArray[Any]) -> list[str]:
    """Numbers as text: 2.0 is written 2."""
    return [str(int(value)) if value == int(value) else str(value) for value in values.tolist()]


def with_hidden(names: NDArray[np.str_]) -> list[str]:
    """The names that hold control characters; see `is_plain`."""
    return [name for name in np.unique(names).tolist() if not is_plain(name)]


def is_plain(name: str) -> bool:
    """Whether a name holds no control character: a line end, a change of direction.

    Joiners, which names in Persian and Hindi need, and spaces of any width are none.
    """
    return all(c in JOINERS or unicodedata.category(c) not in CONTROLS for c in name)


def listed(values: Sequence[Any] | NDArray[Any]) -> str:
    """The first of some values from a file, as a message can show them."""
    shown = [short(str(value)) for value in list(values)[:5]]
    return ", ".join(shown) + (", …" if len(values) > 5 else "")


def short(text: str) -> str:
    """A text from a file as a message can show it."""
    printable = "".join(c if c.isprintable() else "?" for c in text)
    return printable if len(printable) <= 30 else f"{printable[:30]}…"
