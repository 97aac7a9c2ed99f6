"""Which column of an array is which class: by `class_names`, or by number.

Whole numbers from 0 to C - 1 are the numbers of the columns; those from 1 to C, too, if the columns
fit better then. Any other label is refused, because one that means "none" would become a class.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.validation import check_logits

from .cells import FileColumns, Labels, text_of
from .choices import MOST, Choices
from .file_points import FilePoints
from .message_text import SAVEZ, cut_off, some_of
from .patterns import TRUTH, as_number, whole_sets
from .spelling import one_number_twice
from .usual_names import NO_LABELS

CLASS_NAMES = "add class_names=model.classes_, one per column, or --classes NAME,NAME"


def _kind_and_name(
    arrays: FileColumns, choices: Choices, values: str, is_said: bool
) -> tuple[str | None, str]:
    """Kind and name of the array of answers; None: it is either kind.

    `is_said`: the person says `values`, and not the calibrator that is to be applied.
    """
    found: dict[str, str] = choices.kinds_of(arrays)
    if len(found) == 1 and (values == "logits" or (values != "auto" and is_said)):
        found = dict.fromkeys(found, values)  # whatever the name says
    if values != "auto":
        found = {name: kind or values for name, kind in found.items() if kind in (values, "")}
    if not found:
        raise no_answers(list(arrays), "" if values == "auto" else values)
    (name, kind), *others = found.items()
    for other, other_kind in others[:1]:
        kinds = ("logits", "probabilities")
        fixes = [
            f"take `{each}`: --{kind_of} {each}"
            for each in (name, other)
            for kind_of in kinds
            if found[each] in (kind_of, "")
        ]
        message = f"both `{name}` and `{other}`" + f" hold {kind}" * (kind == other_kind)
        raise InputError(message, field=name, fixes=fixes)
    return kind or None, name


def no_answers(names: Sequence[str], kind: str = "") -> InputError:
    """The error on a file without an array of answers, of one `kind` if the person says it."""
    message = (
        f"no array of {kind or 'logits or probabilities'} (there are {some_of(names) or 'none'})"
    )
    fixes = ["name one: --logits NAME or --probabilities NAME", f"add it: {SAVEZ}"]
    return InputError(message, field=kind or "logits", fixes=fixes)


class NamedArray(NamedTuple):
    """The array of answers.

    kind: of the answers; None: either. matrix: [n, C]; of two classes also [n] or [n, 1]. names: of
    the columns [C], if the person or the file says them. single: the class of a single column.
    """

    kind: str | None
    matrix: Any
    names: list[str] | None
    single: int | None

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return 2 if self.single is not None else int(self.matrix.shape[1])


def array_of_answers(
    arrays: FileColumns, choices: Choices, kind: str | None, n_labels: int | None = None
) -> NamedArray:
    """The one array of answers, with the names of its columns: --classes, or `class_names`.

    `kind` is that of the answers, if a calibrator says it; `n_labels` the number of labels, if
    there are any.
    """
    kind, name = _kind_and_name(arrays, choices, kind or choices.values, is_said=kind is None)
    matrix = arrays[name]
    if matrix.dtype.kind in "bV":  # booleans; an array with named fields
        message = f"of {cut_off(str(matrix.dtype))}"
        raise InputError(message, field=name, fixes="give numbers, [n, classes]")
    if matrix.ndim not in (1, 2) or not matrix.size:
        check_logits(matrix, name)
    if matrix.ndim == 2 and matrix.shape[0] != matrix.shape[1] == n_labels:
        message = f"{list(matrix.shape)} for {n_labels} labels, which looks transposed"
        raise InputError(message, field=name, fixes="give one row per point")
    is_single = matrix.ndim == 1 or matrix.shape[1] == 1
    answers = NamedArray(kind, matrix, None, 1 if is_single else None)
    return answers._replace(names=_names_of_columns(arrays, choices, answers.n_classes))


def _names_of_columns(arrays: FileColumns, choices: Choices, n_classes: int) -> list[str] | None:
    if choices.classes is not None:
        if "*" in choices.classes:
            raise InputError("an array has no columns", field="--classes", fixes="name all classes")
        return text_of(choices.classes.split(","), n_classes, "--classes").tolist()
    if "class_names" not in arrays:
        return None
    names: list[str] = text_of(arrays["class_names"], n_classes, "class_names").tolist()
    if len(set(names)) < n_classes:
        raise InputError("one is repeated", field="class_names", fixes="give each its own")
    return names


def of_array(arrays: FileColumns, labels: Labels, choices: Choices) -> FilePoints:
    """Answers as one array, whose columns are classes by name or by number."""
    answers = array_of_answers(arrays, choices, None, len(labels.places))
    notes = list[str]()
    codes, names = classes_by_place(labels, answers.n_classes, answers.names, answers.matrix, notes)
    return FilePoints(
        answers.kind, answers.matrix, names, codes, single=answers.single, notes=tuple(notes)
    )


def classes_by_place(
    labels: Labels,
    columns: int,
    names: list[str] | None,
    matrix: Any,
    notes: list[str],
    in_order: bool = False,
) -> tuple[NDArray[np.int64], list[str] | None]:
    """Class numbers [n] and the classes' names, for columns that are no labels by pattern.

    Labels that are among `names` [C] go by name. `in_order`: the person says that the columns are
    in the order of the labels. `matrix` [n, C] decides what is advised. InputError: a label is no
    class, or the columns fit other classes far better.
    """
    texts, places = labels.texts, labels.places
    if set(texts) <= {"False", "True"} and not labels.is_text and names is None:
        texts = [TRUTH[text.casefold()] for text in texts]
    numbers = [as_number(text) for text in texts]
    in_range = None not in numbers and set(numbers) <= set(range(columns))
    counted = np.array([-1 if k is None or k % 1 else int(k) for k in numbers])[places]
    for found in whole_sets(names or [], texts):
        place = {
            found.labels[name]: k for k, name in enumerate(names or []) if name in found.labels
        }
        codes = np.array([place[text] for text in texts])[places]
        if not labels.is_text and in_range:
            message = (
                "numbers among `class_names`, but they fit the columns better if counted from 0"
            )
            _check_fit(matrix, codes, counted, message, "save the names: class_names[labels]")
        return codes, names
    if names and (labels.is_text or all(as_number(name) is not None for name in names)):
        raise _unknown(labels, names)
    twice = one_number_twice(texts)
    if twice is not None:
        message = f"{' and '.join(twice)}, which are one number but two names,"
        fixes = ["write them alike if they are one class", CLASS_NAMES]
        raise InputError(message, field="labels", row=labels.row(twice[1]), fixes=fixes)
    if labels.is_text and None not in numbers:
        _check_order_of_text(texts)
    if in_range:
        check_start(matrix, counted, (counted.min(), counted.max()), columns)
        return counted, names
    if None in numbers:
        message = f"names ({some_of(texts)}) for {columns} columns that have none"
        raise InputError(message, field="labels", fixes=CLASS_NAMES)
    by_number, from_one, by_order = (
        int(_hits(matrix, k).sum()) for k in (counted, counted - 1, places)
    )
    if counted.min() > 0 and counted.max() == columns and from_one > by_number:
        notes.append(f"labels are counted from 1: the columns are taken for 1 to {columns}")
        return counted - 1, names or [str(k + 1) for k in range(columns)]
    is_complete = len(texts) == columns
    if in_order and is_complete and by_order > by_number:
        return places, names
    raise _no_class(labels, columns, by_number, by_order if is_complete else 0)


def check_start(
    matrix: Any, counted: NDArray[np.int64], seen: tuple[int, int], columns: int
) -> None:
    """Refuse numbers of columns [n] that fit far better if they are counted from 1, or from -1.

    `seen`: the smallest and the largest number anywhere, of which 0 and C - 1 leave no choice.
    """
    fix = f"say which column is which: {CLASS_NAMES} ([{columns}])"
    if seen[0] > 0 and counted.min() > 0:
        message = "none is 0, and they fit the columns better if counted from 1"
        _check_fit(matrix, counted, counted - 1, message, fix)
    if seen[1] < columns - 1 and counted.max() < columns - 1:
        message = f"none is {columns - 1}, and they fit the columns better if counted from -1"
        _check_fit(matrix, counted, counted + 1, message, fix)


def _check_order_of_text(names: Sequence[str]) -> None:
    """Raise `InputError` if `names` are numbers that have another order as text than as numbers."""
    for as_text, number in zip(sorted(names), sorted(names, key=float), strict=True):
        if as_text != number:
            message = (
                f"numbers as text, whose columns may be in the order of text (…, {as_text}, as "
            )
            message += f"scikit-learn sorts names) or of numbers (…, {number})"
            raise InputError(message, field="labels", fixes=CLASS_NAMES)


def _no_class(labels: Labels, columns: int, by_number: int, by_order: int) -> InputError:
    """The error on whole numbers of which some are no column's; it advises what the values show."""
    odd = [text for text in labels.texts if as_number(text) not in set(range(columns))]
    none = [text for text in odd if text in NO_LABELS]  # without these, more is clear
    clear = 2 * len(labels.places) ** 0.5
    are_fewer = by_order == 0 < by_number or by_number - by_order > clear
    ways = ["leave such points out: --ignore-label LABEL", "name all columns: --classes NAME,NAME"]
    if none or (are_fewer and len(odd) <= MOST):
        out = none or odd
        sign = "=" if len(out) > 1 else " "
        ways = [f"leave such points out: --ignore-label{sign}{','.join(out)}"]
    elif by_order - by_number > clear:
        ways = [f"name the columns in their order: --classes={','.join(labels.texts)}"]
    message = f"{some_of(odd)}, no column's number, which are 0 to {columns - 1},"
    row, fixes = labels.row(odd[0]), ["correct it", *ways]
    return InputError(message, field="labels", row=row, fixes=fixes)


def _unknown(labels: Labels, names: Sequence[str]) -> InputError:
    """The error on labels that are none of `names`, the classes of the columns."""
    odd = next((text for text in labels.texts if text not in names), labels.texts[0])
    message = f"{cut_off(odd)}, no class's name (they are {some_of(names)}),"
    return InputError(message, field="labels", row=labels.row(odd), fixes="correct it")


def _hits(matrix: Any, codes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """At which of the points the largest column is that of `codes` [n]."""
    values = np.asarray(matrix)
    if len(values) != len(codes):
        return np.zeros(len(codes), dtype=bool)
    if values.ndim == 1 or values.shape[1] == 1:  # of the second of two classes
        is_p = values.min() >= 0 and values.max() <= 1
        return np.equal(values.reshape(-1) > (0.5 if is_p else 0), codes)
    return np.equal(values.argmax(axis=1), codes)


def _check_fit(
    matrix: Any, codes: NDArray[Any], other: NDArray[Any], message: str, fix: str
) -> None:
    """Refuse `codes` [n] if the largest columns are surely oftener `other` [n].

    McNemar's test: only points where one of the two fits count. Four standard errors, because every
    part of a stream is tested.
    """
    own, others = _hits(matrix, codes), _hits(matrix, other)
    gained, lost = int((others & ~own).sum()), int((own & ~others).sum())
    if gained - lost > 4 * (gained + lost) ** 0.5:
        raise InputError(message, field="labels", fixes=fix)
