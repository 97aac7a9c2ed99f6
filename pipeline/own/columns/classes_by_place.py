"""Which column is which class where no pattern says it: by `class_names`, or by number.

Whole numbers from 0 to C - 1 are the numbers of the columns; those from 1 to C, too, if the columns
fit better then. Any other label is refused, because one that means "none" would become a class.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError

from ..reading.cells import Labels
from ..reading.spelling import one_number_twice
from ..words.file_options import MOST
from ..words.message_text import cut_off, some_of, typed
from ..words.patterns import TRUTH, as_number, whole_sets
from ..words.usual_names import NO_LABELS
from .answers import Answers

CLASS_NAMES = "add class_names=model.classes_, one per column, or --classes NAME,NAME"
Codes = NDArray[np.int64]


class LabelledClasses(NamedTuple):
    """The labels as numbers of columns."""

    codes: Codes
    """[n], the number of the column of each point's label."""
    names: list[str] | None
    """[C], the classes in the order of the columns; None: their numbers."""


class _Numbers(NamedTuple):
    """The labels as numbers."""

    texts: list[str]
    """The different labels; False and True of columns without names are 0 and 1."""
    by_text: list[float | None]
    """The number that each of them writes; None: it is a name."""
    counted: Codes
    """[n], the number of each point's label; -1: it has none, or a fraction."""
    are_columns: bool
    """Whether all are numbers of columns, 0 to C - 1."""

    @property
    def has_words(self) -> bool:
        """Whether any label is a name."""
        return None in self.by_text


def classes_by_place(
    labels: Labels, answers: Answers, notes: list[str], is_in_order: bool = False
) -> LabelledClasses:
    """The labels as numbers of columns that are no labels by pattern.

    Labels that are among the answers' names go by name, others by number. is_in_order: the person
    says that the columns are in the order of the labels. InputError: a label is no class, or the
    columns fit other classes far better.
    """
    names = answers.names
    numbers = _numbers_of(labels, answers)
    if names is not None:
        codes = _codes_by_name(labels, answers, numbers)
        if codes is not None:
            return LabelledClasses(codes, names)
        if names and (labels.is_text or all(as_number(name) is not None for name in names)):
            raise _unknown(labels, names)
    _check_spellings(labels, numbers)
    if numbers.are_columns:
        counted = numbers.counted
        seen = int(counted.min()), int(counted.max())
        check_start(answers.matrix, counted, seen, answers.n_classes)
        return LabelledClasses(counted, names)
    if numbers.has_words:
        message = f"names ({some_of(numbers.texts)}) for {answers.n_classes} columns that have none"
        raise InputError(message, field="labels", fixes=CLASS_NAMES)
    return _codes_by_fit(labels, answers, numbers, notes, is_in_order)


def _numbers_of(labels: Labels, answers: Answers) -> _Numbers:
    """The labels as numbers, as far as they are any."""
    texts = labels.texts
    are_booleans = set(texts) <= {"False", "True"} and not labels.is_text
    if are_booleans and answers.names is None:
        texts = [TRUTH[text.casefold()] for text in texts]
    by_text = [as_number(text) for text in texts]
    whole = list[int]()
    for number in by_text:
        has_place = number is not None and number % 1 == 0
        whole.append(int(number or 0) if has_place else -1)
    are_columns = None not in by_text and set(by_text) <= set(range(answers.n_classes))
    return _Numbers(texts, by_text, np.array(whole)[labels.places], are_columns)


def _codes_by_name(labels: Labels, answers: Answers, numbers: _Numbers) -> Codes | None:
    """The labels as places of names that bear all of them; None: these do not."""
    names = answers.names or []
    sets = whole_sets(names, numbers.texts)
    if not sets:
        return None
    label_of = sets[0].label_of_column
    # A name that is no label is of a class without a point.
    place_of = {label_of[name]: place for place, name in enumerate(names) if name in label_of}
    codes = np.array([place_of[text] for text in numbers.texts])[labels.places]
    if not labels.is_text and numbers.are_columns:
        message = "numbers among `class_names`, but they fit the columns better if counted from 0"
        fix = "save the names: class_names[labels]"
        _check_fit(answers.matrix, codes, numbers.counted, message, fix)
    return codes


def _check_spellings(labels: Labels, numbers: _Numbers) -> None:
    """Raise `InputError` for one number written twice, and for numbers in the order of text."""
    twice = one_number_twice(numbers.texts)
    if twice is not None:
        message = f"{' and '.join(twice)}, which are one number but two names,"
        fixes = ["write them alike if they are one class", CLASS_NAMES]
        raise InputError(message, field="labels", row=labels.row(twice[1]), fixes=fixes)
    if not labels.is_text or numbers.has_words:
        return
    in_text_order = sorted(numbers.texts)
    in_number_order = sorted(numbers.texts, key=float)
    for as_text, number in zip(in_text_order, in_number_order, strict=True):
        if as_text != number:
            message = (
                f"numbers as text, whose columns may be in the order of text (…, {as_text}, as "
                f"scikit-learn sorts names) or of numbers (…, {number})"
            )
            raise InputError(message, field="labels", fixes=CLASS_NAMES)


def _codes_by_fit(
    labels: Labels, answers: Answers, numbers: _Numbers, notes: list[str], is_in_order: bool
) -> LabelledClasses:
    """Numbers of which some are no column's: counted from 1, or by place in their order."""
    n_columns, counted = answers.n_classes, numbers.counted
    # How often the largest column is that of the label shows how the person counted.
    hits_by_number = int(_hits(answers.matrix, counted).sum())
    hits_from_one = int(_hits(answers.matrix, counted - 1).sum())
    is_one_to_c = counted.min() > 0 and counted.max() == n_columns
    if is_one_to_c and hits_from_one > hits_by_number:
        notes.append(f"labels are counted from 1: the columns are taken for 1 to {n_columns}")
        names = answers.names or [str(number + 1) for number in range(n_columns)]
        return LabelledClasses(counted - 1, names)
    is_complete = len(numbers.texts) == n_columns
    hits_by_order = int(_hits(answers.matrix, labels.places).sum()) if is_complete else 0
    if is_in_order and hits_by_order > hits_by_number:
        return LabelledClasses(labels.places, answers.names)
    raise _no_class(labels, n_columns, hits_by_number, hits_by_order)


def check_start(matrix: Any, counted: Codes, label_range: tuple[int, int], n_columns: int) -> None:
    """Refuse numbers of columns [n] that fit far better if they are counted from 1, or from -1.

    `label_range` is the smallest and the largest number anywhere; 0 and C - 1 leave no choice.
    """
    fix = f"say which column is which: {CLASS_NAMES} ([{n_columns}])"
    smallest, largest = label_range
    if smallest > 0 and counted.min() > 0:
        message = "none is 0, and they fit the columns better if counted from 1"
        _check_fit(matrix, counted, counted - 1, message, fix)
    last = n_columns - 1
    if largest < last and counted.max() < last:
        message = f"none is {last}, and they fit the columns better if counted from -1"
        _check_fit(matrix, counted, counted + 1, message, fix)


def _no_class(
    labels: Labels, n_columns: int, hits_by_number: int, hits_by_order: int
) -> InputError:
    """The error on whole numbers of which some are no column's; it advises what the values show."""
    odd = [text for text in labels.texts if as_number(text) not in set(range(n_columns))]
    usual = [text for text in odd if text in NO_LABELS]
    clear = 2 * len(labels.places) ** 0.5
    are_fewer = hits_by_order == 0 < hits_by_number or hits_by_number - hits_by_order > clear
    ways = ["leave such cases out: --ignore-label LABEL", "name all columns: --classes NAME,NAME"]
    if usual or (are_fewer and len(odd) <= MOST):
        out = usual or odd  # without these, more is clear
        ways = [f"leave such cases out: {typed('--ignore-label', ','.join(out))}"]
    elif hits_by_order - hits_by_number > clear:
        ways = [f"name the columns in their order: {typed('--classes', ','.join(labels.texts))}"]
    message = f"no column has the number {some_of(odd)} (they are 0 to {n_columns - 1}), first"
    row, fixes = labels.row(odd[0]), ["correct it", *ways]
    return InputError(message, field="labels", row=row, fixes=fixes)


def _unknown(labels: Labels, names: Sequence[str]) -> InputError:
    """The error on labels that are none of `names`, the classes of the columns."""
    odd = next((text for text in labels.texts if text not in names), labels.texts[0])
    message = f"{cut_off(odd)}, no class's name (they are {some_of(names)}),"
    return InputError(message, field="labels", row=labels.row(odd), fixes="correct it")


def _hits(matrix: Any, codes: Codes) -> NDArray[np.bool_]:
    """At which of the points the largest column is that of `codes` [n]."""
    values = np.asarray(matrix)
    if len(values) != len(codes):
        return np.zeros(len(codes), dtype=bool)
    if values.ndim == 1 or values.shape[1] == 1:  # of the second of two classes
        are_probabilities = values.min() >= 0 and values.max() <= 1
        is_second = values.reshape(-1) > (0.5 if are_probabilities else 0)
        return np.equal(is_second, codes)
    return np.equal(values.argmax(axis=1), codes)


def _check_fit(matrix: Any, codes: Codes, other: Codes, message: str, fix: str) -> None:
    """Refuse `codes` [n] if the largest columns are surely oftener `other` [n].

    McNemar's test: only points where one of the two fits count. Four standard errors, because every
    part of a stream is tested.
    """
    fits, other_fits = _hits(matrix, codes), _hits(matrix, other)
    gained = int((other_fits & ~fits).sum())
    lost = int((fits & ~other_fits).sum())
    if gained - lost > 4 * (gained + lost) ** 0.5:
        raise InputError(message, field="labels", fixes=fix)
