"""Labels and names of a person's file: text of any kind becomes class numbers 0 to C - 1."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from calibrators.class_order import as_number, bearers_of, check_order_of_text
from metrics.validation import InputError, check_labels

CONTROLS = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode's categories of control characters, such as line ends and changes of direction."""
JOINERS = "\u00ad\u200c\u200d"
"""Characters of these categories that names in Persian and Hindi need."""
ADD = "add `class_names`, one per column, or --classes NAME,NAME"
"""How a person says which column is which class."""


class Mistakes:
    """Collects what is wrong with one file, so that all of it is said at once."""

    def __init__(self, place: str) -> None:
        self.place = place
        self.found: list[str] = []

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep an `InputError` of the block for later."""
        try:
            yield
        except InputError as error:
            self.found.append(str(error).removeprefix(f"{self.place}: "))

    def check(self) -> None:
        """Raise one `InputError` of one line with all that was kept."""
        if self.found:
            raise InputError(f"{self.place}: {'; also: '.join(dict.fromkeys(self.found))}")


def text_of(values: Any, n: int, field: str) -> NDArray[np.str_]:
    """`values` [n] as text without spaces around it.

    Raises:
        InputError: the shape is wrong, or an entry is empty or has control characters; rows count
            from 0.
    """
    entries = np.asarray(values)
    if entries.shape != (n,):
        raise InputError(f"{field}: shape {list(entries.shape)}; give [{n}], a name for each")
    if entries.dtype.kind == "S":
        entries = np.char.decode(entries, "utf-8", "replace")
    text = np.char.strip(entries.astype(np.str_))
    if entries.dtype.kind == "f":
        text = np.where(np.isnan(entries), "", text)
    different, places = np.unique(text, return_inverse=True)
    names = [normal(name) for name in different.tolist()]
    for place, name in enumerate(names):
        row = int((places == place).argmax())
        if not name:
            raise InputError(f"{field}: none in row {row}; complete or remove such rows")
        if not is_plain(name):
            raise InputError(
                f"{field}: {cut_off(name)} in row {row} holds control characters; rename it"
            )
    return np.array(names, dtype=np.str_)[places]


def normal(name: str) -> str:
    """A name with one code for each letter; some programs write é as e and an accent."""
    return unicodedata.normalize("NFC", name)


def is_plain(name: str) -> bool:
    """Whether a name holds no control character."""
    return all(c in JOINERS or unicodedata.category(c) not in CONTROLS for c in name)


def some_of(values: Sequence[Any] | NDArray[Any], most: int = 5) -> str:
    """The first five of the values, cut off for a message."""
    shown = [cut_off(str(value)) for value in list(values)[:most]]
    return ", ".join(shown) + (", …" if len(values) > most else "")


def cut_off(text: str) -> str:
    """A text from a file, printable and cut off for a message."""
    printable = "".join(c if c.isprintable() else "?" for c in text)
    return printable if len(printable) <= 30 else f"{printable[:30]}…"


class Labels(NamedTuple):
    """The labels of the points, whatever they are."""

    texts: list[str]
    """The different labels as text: numbers in increasing order, else in the order of text."""
    places: NDArray[np.int64]
    """[n], the place of each point's label in `texts`."""
    is_text: bool
    """Whether they are text, not numbers."""


def distinct_labels(values: Any, field: str, mistakes: Mistakes) -> Labels:
    """The labels [n] of any kind: text, whole or other numbers, booleans.

    Missing labels go to `mistakes`, and are replaced by another one.

    Raises:
        InputError: they are no labels, or not [n].
    """
    plain = np.asarray(values)
    if plain.ndim == 2 and plain.shape[1] == 1:
        raise InputError(f"{field}: shape {list(plain.shape)}, not [n]; save labels[:, 0]")
    if plain.ndim != 1 or not len(plain):
        check_labels(np.zeros(plain.shape), len(plain) if plain.ndim else 0, 2, name=field)
    if plain.dtype.kind == "S":
        plain = np.char.decode(plain, "utf-8", "replace")
    if plain.dtype.kind not in "biufU":
        raise InputError(f"{field}: an array of {plain.dtype}; give class names or numbers")
    is_text = plain.dtype.kind == "U"
    missing = np.char.strip(plain) == "" if is_text else ~np.isfinite(plain)
    if missing.any():
        row = int(missing.argmax())
        fix = "complete or remove such rows"
        mistakes.found.append(f"labels: none in row {row} ({missing.sum()} of all); {fix}")
        if missing.all():
            mistakes.check()
        plain = np.where(missing, plain[~missing][0], plain)
    if is_text:
        plain = text_of(plain, len(plain), field)
    different, places = np.unique(plain, return_inverse=True)
    return Labels(_written(different), places, is_text)


def _written(values: NDArray[Any]) -> list[str]:
    """Text as it is, numbers as text: 2.0 is written 2."""
    if values.dtype.kind in "Ub":
        return [str(value) for value in values.tolist()]
    return [str(int(value)) if value == int(value) else str(value) for value in values.tolist()]


def class_names_of(
    path: str, arrays: Mapping[str, Any], columns: int, chosen: str | None
) -> list[str] | None:
    """The names of the columns of an array, by --classes or `class_names`."""
    if chosen is not None:
        if "*" in chosen:
            raise InputError(f"{path}: --classes: an array has no columns; name all its classes")
        return text_of(chosen.split(","), columns, f"{path}: --classes").tolist()
    if "class_names" not in arrays:
        return None
    names = text_of(arrays["class_names"], columns, f"{path}: class_names").tolist()
    if len(set(names)) < columns:
        raise InputError(f"{path}: class_names: one is repeated; give each class its own")
    return names


def classes_by_place(
    labels: Labels, columns: int, names: Sequence[str] | None, matrix: Any, field: str
) -> tuple[NDArray[np.int64], list[str] | None, tuple[str, ...]]:
    """Class numbers [n], the classes' names, and notes, for columns without names of their own.

    Labels that are among `names` [C] go by name. Labels from 0 to C - 1 are the numbers of the
    columns. Without `names`, C different labels name the columns in increasing order.

    Args:
        matrix: [n, C], which shows whether labels are counted from 1; None: not asked.

    Raises:
        InputError: a label is unknown, or the order of the columns is not.
    """
    texts, places = labels.texts, labels.places
    numbers = [as_number(text) for text in texts]
    if names is not None:
        for found in bearers_of(names, texts):
            if len(found.labels) + len(found.others) == columns:
                place = {label: names.index(name) for name, label in found.labels.items()}
                codes = np.array([place[text] for text in texts])[places]
                _check_not_places(codes, labels, matrix, field)
                return codes, list(names), ()
        if labels.is_text or all(as_number(name) is not None for name in names):
            odd = next((text for text in texts if text not in names), texts[0])
            row = int((places == texts.index(odd)).argmax())
            raise InputError(
                f"{field}: {cut_off(odd)} in row {row} is no class's name (they are "
                f"{some_of(names)}); correct it"
            )
    if texts in (["False", "True"], ["False"], ["True"]) and not labels.is_text:
        texts, numbers = ["0", "1"], [0, 1]
    if labels.is_text:
        fix = "add class_names=model.classes_, one per column"
        check_order_of_text(texts, field, fix)
    if None not in numbers and set(numbers) <= set(range(columns)):
        codes = np.array([int(number or 0) for number in numbers])[places]
        _check_counted_from_zero(codes, matrix, columns, field)
        return codes, None if names is None else list(names), ()
    if names is None and len(texts) == columns:
        order = "in alphabetical order," if None in numbers else "in the order"
        kind = "names" if None in numbers else f"not 0 to {columns - 1}"
        note = f"labels are {kind}: the columns are taken {order} {some_of(texts)}"
        if labels.is_text:
            _check_fits(places, texts, matrix, field)
        return places, texts, (note,)
    if not labels.is_text:
        check_labels(np.array(numbers, dtype=float)[places], len(places), columns, name=field)
    raise InputError(
        f"{field}: not an array of class numbers 0 to {columns - 1} but {len(texts)} names "
        f"({some_of(texts)}) for {columns} columns; {ADD}"
    )


def _check_fits(places: NDArray[Any], texts: list[str], matrix: Any, field: str) -> None:
    """Raise `InputError` if labels fit the columns in another order than that of their names."""
    if np.shape(matrix) != (len(places), len(texts)):
        return
    count = len(texts)
    pairs = np.bincount(np.argmax(matrix, axis=1) * count + places, minlength=count**2)
    hits = pairs.reshape(count, count)
    rows, columns = linear_sum_assignment(hits, maximize=True)
    if hits[rows, columns].sum() - hits.trace() > 4 * len(places) ** 0.5:
        raise InputError(
            f"{field}: names, and the columns do not fit their alphabetical order ("
            f"{some_of(texts)}); say the order: {ADD}"
        )


def _check_not_places(codes: NDArray[Any], labels: Labels, matrix: Any, field: str) -> None:
    """Raise `InputError` if numbers that are among `class_names` fit as places of columns."""
    numbers = np.array([as_number(text) for text in labels.texts], dtype=float)[labels.places]
    if labels.is_text or np.ndim(matrix) != 2 or len(matrix) != len(codes):
        return
    if (numbers != codes).any() and set(numbers) <= set(range(matrix.shape[1])):
        best = np.argmax(matrix, axis=1)
        if np.sum(best == numbers) - np.sum(best == codes) > 4 * len(codes) ** 0.5:
            raise InputError(
                f"{field}: numbers among `class_names`, but they fit the columns better if they "
                "are counted from 0; save the names as labels: class_names[labels]"
            )


def _check_counted_from_zero(codes: NDArray[Any], matrix: Any, columns: int, field: str) -> None:
    """Raise `InputError` if labels seem to be counted from 1, the last class having no point."""
    if matrix is None or np.ndim(matrix) != 2 or len(matrix) != len(codes) or codes.min() == 0:
        return
    best = np.argmax(matrix, axis=1)
    if np.mean(best + 1 == codes) > np.mean(best == codes):
        raise InputError(
            f"{field}: none is 0, and they fit the columns better if counted from 1; say which "
            f"column is which: {ADD} ([{columns}])"
        )
