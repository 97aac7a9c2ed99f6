"""Which column belongs to which class: by name, whatever the order of the columns.

The columns that bear the labels share one pattern with one varying part: `prob_{}`, `{}_score`,
`Pr[{}]`, or a bare `{}`. Numbers are compared as numbers (3, 03 and 3.0 are one class), text letter
by letter and, if that finds nothing, without regard to case and punctuation.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from .errors import InputError
from .validation import check_labels, check_nothing_is_masked

NUMBER = re.compile(r"[+-]?\d{1,15}(\.\d{1,6})?")  # longer text is the name of something
NUMBERS_WITHIN = (r"\d+", r"[+-]\d+", r"\d+\.\d+", r"[+-]\d+\.\d+")
"""Numbers in the name of a column count only as a whole: 3 does not stand in p13."""
TRUTH = {"false": "0", "true": "1"}  # other names that programs write for two classes


@dataclass(frozen=True)
class Bearers:
    """The columns that bear all labels by one pattern, and those that look like further classes.

    pattern: as people write it, prob_*. labels: label by column, in the order of the columns.
    others: column and varying part, where the pattern fits but no label is meant.
    """

    pattern: str
    labels: dict[str, str]
    others: dict[str, str]

    @property
    def named(self) -> dict[str, str]:
        """The class of every column that the pattern fits."""
        return {**self.labels, **self.others}


def as_number(name: str) -> float | None:
    """The number that `name` writes, else None."""
    return float(name) if NUMBER.fullmatch(name) else None


def folded(name: str) -> str:
    """A name in lower case, with `_` for each run of other signs than letters and digits."""
    return re.sub(r"[\W_]+", "_", name).casefold()


def bearers_of(columns: Sequence[str], labels: Sequence[str]) -> list[Bearers]:
    """All different sets of columns that bear every one of `labels`, each label once."""
    spellings = [{label: label for label in labels}]
    if len(labels) == 2:
        numbers = {label: as_number(label) for label in labels}
        if {label.casefold() for label in labels} == TRUTH.keys():
            spellings.append({TRUTH[label.casefold()]: label for label in labels})
        elif set(numbers.values()) == {0, 1}:
            spellings.append({str(bool(number)): label for label, number in numbers.items()})
    for spelling in spellings:
        keys: list[Callable[[str], Any]] = [str, folded]
        if len({as_number(text) for text in spelling} - {None}) == len(spelling):
            keys = [as_number]
        for key in keys:
            wanted = {key(text): label for text, label in spelling.items()}
            if len(wanted) == len(labels) and (found := _bearing(columns, wanted, key)):
                return found
    return []


def _bearing(
    columns: Sequence[str], wanted: dict[Any, str], key: Callable[[str], Any]
) -> list[Bearers]:
    """The sets of columns by pattern; every pattern has the first label somewhere."""
    first, affixes = next(iter(wanted)), dict[tuple[str, str], None]()
    seen = {column: folded(column) if key is folded else column for column in columns}
    for text in seen.values():
        if isinstance(first, str):
            starts = [found.start() for found in re.finditer(f"(?={re.escape(first)})", text)]
            spans = [(start, start + len(first)) for start in starts]
        else:
            numbers = [found for form in NUMBERS_WITHIN for found in re.finditer(form, text)]
            spans = [found.span() for found in numbers if key(found[0]) == first]
        affixes |= dict.fromkeys((text[:start], text[stop:]) for start, stop in spans)
    sets: dict[tuple[str, ...], Bearers] = {}
    for before, after in affixes:
        fit = re.compile(f"{re.escape(before)}(.+){re.escape(after)}", re.DOTALL).fullmatch
        parts = {column: found[1] for column, text in seen.items() if (found := fit(text))}
        labels = {name: wanted[key(part)] for name, part in parts.items() if key(part) in wanted}
        if len(labels) == len(set(labels.values())) == len(wanted):
            others = {
                name: part
                for name, part in parts.items()
                if name not in labels and key(part) is not None
            }
            sets.setdefault(tuple(labels), Bearers(f"{before}*{after}", labels, others))
    return list(sets.values())


def borne_alone(column: str, labels: Sequence[str]) -> str | None:
    """The label in the name of a single column, as a word: p_sick, P(sick); -1, not 1, in p_-1."""
    if column in labels:
        return column
    column = re.sub(
        r"(?i)(model|fold|run|seed)[\W_]*\d+", "", column
    )  # these numbers are no labels
    words = f"_{folded(column).strip('_')}_"
    for form in (r"(?<![^\W_])[+-]\d+(?:\.\d+)?", r"\d+(?:\.\d+)?"):
        numbers = {as_number(number) for number in re.findall(form, column)}
        bearing = [
            label
            for label in labels
            if as_number(TRUTH.get(label.casefold(), label)) in numbers
            or (as_number(label) is None and f"_{folded(label).strip('_')}_" in words)
        ]
        if len(bearing) == 1:
            return bearing[0]
    return None


def check_order_of_text(names: Sequence[str], field: str, fix: str) -> None:
    """Raise `InputError` if `names` are numbers that have another order as text than as numbers."""
    if None in map(as_number, names):
        return
    for as_text, number in zip(sorted(names), sorted(names, key=float), strict=True):
        if as_text != number:
            raise InputError(
                "numbers as text",
                field=field,
                fixes="are the columns in the order of text "
                f"(…, {as_text}, as scikit-learn sorts names) or of numbers (…, {number})? {fix}",
            )


def frame_names(values: Any) -> NDArray[np.str_] | None:
    """The names of a data frame's columns as text; None for pandas' own 0 … C-1."""
    columns = getattr(values, "columns", None)
    if columns is None or list(columns) == list(range(len(columns))):
        return None
    return np.array([str(name) for name in columns], dtype=np.str_)


def classes_of(
    labels: Any, matrix: Any, columns: int, classes: Any = None, name: str = "labels"
) -> NDArray[Any]:
    """Return the class of each column, [C]: those of `classes`, or the frame's, or 0 … C-1.

    One rule for metrics and calibrators: without `classes`, labels that are numbers are places of
    columns, and labels that are names are matched with the names of a data frame's columns.

    `labels` [n] are those of the points, `matrix` is what a user gave, with `columns` C.
    InputError: nothing says which column belongs to which class, or two things disagree.
    """
    frame, text = frame_names(matrix), _as_text(labels, name)
    if classes is not None:
        return _checked_classes(classes, columns, frame)
    if text is None:
        if frame is not None:
            _check_numbered(labels, frame.tolist(), name)
        return np.arange(columns, dtype=np.int64)
    known = np.unique(text).tolist()
    listed = [] if frame is None else frame.tolist()
    whole = whole_sets(listed, known)
    if len(whole) == 1:
        return np.array([whole[0].named[column] for column in listed], dtype=np.str_)
    shown = ", ".join(map(repr, known[:3])) + ", …" * (len(known) > 3)
    beside = "without names" if frame is None else ", ".join(listed[:3]) + ", …"
    raise InputError(
        f"{len(known)} names ({shown}) beside {columns} columns {beside}",
        field=name,
        fixes=[
            "say which is which, in their order: classes=[…] (of scikit-learn: "
            "classes=model.classes_)",
            "give a data frame whose columns bear the names",
        ],
    )


def _checked_classes(classes: Any, columns: int, frame: NDArray[np.str_] | None) -> NDArray[Any]:
    """Return the user's `classes` as numbers or text, if they fit the columns."""
    given = np.asarray(classes.cpu() if isinstance(classes, Tensor) else classes).ravel()
    if given.dtype.kind not in "iuU":
        given = np.array([str(entry) for entry in given.tolist()], dtype=np.str_)
    known = [str(entry) for entry in given.tolist()]
    if len(known) != columns or len(set(known)) < columns:
        raise InputError(
            f"{len(set(known))} names for {columns} columns",
            field="classes",
            fixes="name each once",
        )
    for found in whole_sets([] if frame is None else frame.tolist(), known):
        if (held := list(found.named.values())) != known:
            place = next(k for k in range(columns) if held[k] != known[k])
            raise InputError(
                f"column {place} of the data frame is that of {held[place]}, but `classes` has "
                f"{known[place]} there",
                field="classes",
                fixes="give both in one order",
            )
    return given


def whole_sets(names: Sequence[str], labels: Sequence[str]) -> list[Bearers]:
    """The patterns that bear `labels` and fit all of the columns."""
    return [held for held in bearers_of(names, labels) if len(held.named) == len(names)]


def _check_numbered(labels: Any, columns: Sequence[str], name: str) -> None:
    """Raise `InputError` if numbered columns are not in the order of the class numbers.

    Labels that are numbers are places of columns, so the names may only say the same: 0 … C-1, or
    1 … C where a label is 0.
    """
    values = labels.cpu().numpy() if isinstance(labels, Tensor) else np.asarray(labels)
    places = range(len(columns))
    orders = [[start + place for place in places] for start in (0, 1) if not start or 0 in values]
    for digits in re.findall(r"\d+", columns[0]):
        for found in whole_sets(columns, [digits]):
            if [as_number(found.named[column]) for column in columns] not in orders:
                raise InputError(
                    f"these are class numbers, but the columns are in the order "
                    f"{', '.join(columns[:3])}, …",
                    field=name,
                    fixes=f"put them in the order 0 to {len(columns) - 1}",
                )


def codes_of(labels: Any, n: int, classes: NDArray[Any], name: str = "labels") -> Tensor:
    """Return the column number of each of `labels` [n], int64, for columns of these `classes` [C].

    InputError: a label is no class, or there are not as many labels as rows.
    """
    if classes.dtype.kind != "U" and np.array_equal(classes, np.arange(len(classes))):
        return check_labels(labels, n, len(classes), name)
    check_nothing_is_masked(labels, name)
    given = np.asarray(labels.cpu() if isinstance(labels, Tensor) else labels)
    if given.dtype.kind == "f" and bool((given == np.round(given)).all()):
        given = given.astype(np.int64)  # pandas makes 3.0 of 3 in a column with a gap
    place_of = {str(entry): place for place, entry in enumerate(classes.tolist())}
    distinct, places = np.unique(given.astype(np.str_), return_inverse=True)
    codes = np.array([place_of.get(entry, -1) for entry in distinct.tolist()], dtype=np.int64)
    if (codes < 0).any():
        unknown = int((codes < 0).argmax())
        row = int((places.ravel() == unknown).argmax())
        shown = ", ".join(map(str, classes[:3])) + ", …" * (len(classes) > 3)
        raise InputError(
            f"none of the classes ({shown}): {str(distinct[unknown])!r}",
            field=name,
            row=row,
            fixes="correct it",
        )
    return check_labels(codes[places].reshape(given.shape), n, len(classes), name)


def class_codes(
    labels: Any, matrix: Any, shape: Sequence[int], classes: Any = None, name: str = "labels"
) -> Tensor:
    """Return the column number of each label, int64 [n], for a `matrix` of `shape` [n, C]."""
    return codes_of(labels, shape[0], classes_of(labels, matrix, shape[1], classes, name), name)


def _as_text(labels: Any, name: str) -> NDArray[np.str_] | None:
    if isinstance(labels, Tensor):
        return None
    check_nothing_is_masked(labels, name)
    try:
        values = np.asarray(labels)
    except ValueError:  # rows of different lengths, which `check_labels` reports
        return None
    if values.dtype.kind == "O" and all(isinstance(label, str) for label in values.ravel()):
        values = values.astype(np.str_)
    return values if values.dtype.kind == "U" and values.ndim == 1 else None
