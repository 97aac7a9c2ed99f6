"""The answers of a classifier as a file has them, and where an npz or a column of lists has them.

Nothing here makes them logits (scale.py).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.validation import check_logits

from ..reading.cells import FileColumns, text_of
from ..reading.read import no_answers
from ..words.file_options import FileOptions
from ..words.message_text import cut_off

KINDS = ("logits", "probabilities")


class Answers(NamedTuple):
    """The answers in some columns of a table, or in one array."""

    matrix: Any
    """[n, C]; of a single column also [n] or [n, 1]."""
    name: str
    """The array, or the first of the columns: what messages call the answers."""
    kind: str | None = None
    """logits or probabilities; None: the file does not say."""
    names: list[str] | None = None
    """[C], the classes in the order of the columns; None: their numbers, 0 … C-1."""
    single: int | None = None
    """The class of the only column; None: each class has a column."""

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return 2 if self.single is not None else int(self.matrix.shape[1])

    @property
    def class_names(self) -> list[str]:
        """The classes in the order of the columns, their numbers where they have no names."""
        return self.names or [str(number) for number in range(self.n_classes)]

    def single_values(self) -> NDArray[np.float64]:
        """The numbers [n] of the only column."""
        return np.asarray(self.matrix, dtype=np.float64).reshape(-1)


def array_of_answers(
    arrays: FileColumns,
    file_options: FileOptions,
    kind: str | None = None,
    n_labels: int | None = None,
) -> Answers:
    """Find the one array of answers.

    `kind` is that of the answers, if a calibrator says it; `n_labels` the number of labels, if
    there are any.
    """
    values = kind or file_options.values
    name, kind = _name_and_kind(arrays, file_options, values, is_said=kind is None)
    return answers_of_array(arrays, name, kind, file_options, n_labels)


def answers_of_array(
    arrays: FileColumns,
    name: str,
    kind: str | None,
    file_options: FileOptions,
    n_labels: int | None = None,
) -> Answers:
    """The answers in an array, with the names of its columns: --classes, or `class_names`."""
    matrix = arrays[name]
    if matrix.dtype.kind in "bV":  # booleans; an array with named fields
        message = f"of {cut_off(str(matrix.dtype))}"
        raise InputError(message, field=name, fixes="give numbers, [n, classes]")
    if matrix.ndim not in (1, 2) or not matrix.size:
        check_logits(matrix, name)
    if matrix.ndim == 2 and matrix.shape[0] != matrix.shape[1] == n_labels:
        message = f"{list(matrix.shape)} for {n_labels} labels, which looks transposed"
        raise InputError(message, field=name, fixes="give one row per case")
    is_single = matrix.ndim == 1 or matrix.shape[1] == 1
    answers = Answers(matrix, name, kind, single=1 if is_single else None)
    return answers._replace(names=_names_of_columns(arrays, file_options, answers.n_classes))


def _name_and_kind(
    arrays: FileColumns, file_options: FileOptions, values: str, is_said: bool
) -> tuple[str, str | None]:
    """Name and kind of the array of answers; None: it is either kind.

    `is_said`: the person says `values`, and not the calibrator that is to be applied.
    """
    kinds: dict[str, str] = file_options.kinds_of(arrays)
    if len(kinds) == 1 and (values == "logits" or (values != "auto" and is_said)):
        kinds = dict.fromkeys(kinds, values)  # whatever the name says
    if values != "auto":
        kinds = {name: kind or values for name, kind in kinds.items() if kind in (values, "")}
    if not kinds:
        raise no_answers(list(arrays), "" if values == "auto" else values)
    if len(kinds) > 1:
        raise two_answers(kinds)
    ((name, kind),) = kinds.items()
    return name, kind or None


def two_answers(kinds: dict[str, str]) -> InputError:
    """The error on several arrays or columns of answers, of which the first two are named."""
    first, second = list(kinds)[:2]
    fixes = []
    for name in (first, second):
        may_be = [kind for kind in KINDS if kinds[name] in (kind, "")]
        fixes += [f"take `{name}`: --{kind} {name}" for kind in may_be]
    message = f"both `{first}` and `{second}`"
    if kinds[first] == kinds[second]:
        message += f" hold {kinds[first]}"
    return InputError(message, field=first, fixes=fixes)


def _names_of_columns(
    arrays: FileColumns, file_options: FileOptions, n_classes: int
) -> list[str] | None:
    if file_options.classes is not None:
        if "*" in file_options.classes:
            raise InputError("an array has no columns", field="--classes", fixes="name all classes")
        return text_of(file_options.classes.split(","), n_classes, "--classes").tolist()
    if "class_names" not in arrays:
        return None
    names: list[str] = text_of(arrays["class_names"], n_classes, "class_names").tolist()
    if len(set(names)) < n_classes:
        raise InputError("one is repeated", field="class_names", fixes="give each its own")
    return names
