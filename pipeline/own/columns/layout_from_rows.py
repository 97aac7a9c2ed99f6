"""Decide the layout of a file from its labelled rows: all, or the first ones of a stream.

The answers are one array, whose columns are classes by their place, or columns of a table, which
are classes by their names (classes_by_place.py, classes_by_name.py). layout.py applies the layout.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError

from ..reading.cells import FileColumns, Labels, are_arrays, distinct_labels, plain_column
from ..rows.lists import CLASS_NAMES, has_lists
from ..rows.roles import Roles, roles_of
from ..words.file_options import FileOptions
from ..words.message_text import kept, some_of
from .answers import Answers, array_of_answers, two_answers
from .classes_by_name import classes_by_name
from .classes_by_place import LabelledClasses, classes_by_place
from .confidence import by_predictions, check_meaning, may_be_confidence
from .file_points import FilePoints
from .layout import Layout, add_roles, check_count, matrix_of
from .rules import refuse_two_models
from .scale import scaled


class PointsAndLayout(NamedTuple):
    """The points of a file's labelled rows, and the layout by which they were read."""

    points: FilePoints
    layout: Layout | None
    """None: the classes or their values were refused, as a mistake says."""


class _AnswersAndClasses(NamedTuple):
    """The answers, and each label as the number of its class."""

    answers: Answers
    labelled: LabelledClasses
    columns: list[str]
    """The columns of a table in the order of the classes, or the one array."""


def points_and_layout(
    rows: FileColumns,
    file_options: FileOptions,
    mistakes: list[InputError],
    names: Iterable[str] = (),
    tested: NDArray[np.bool_] | None = None,
) -> PointsAndLayout:
    """Decide what each column or array of labelled rows is, and read the points by it.

    Args:
        rows: prepared, of one file or of two.
        file_options: what the person says.
        mistakes: gets what does not keep the rest from being checked.
        names: all columns or arrays of the files, also those that are not in `rows`.
        tested: [1, n], True for the rows of a second file; None: there is none.

    Raises:
        InputError: a purpose has no column, or several ones.
    """
    notes = list[str]()
    roles = roles_of(list(rows), file_options, notes)
    _refuse_lists(rows, roles)
    labels = distinct_labels(plain_column(rows[roles.labels]), roles.labels, mistakes)
    if are_arrays(rows):
        used = {*roles.names, CLASS_NAMES, *file_options.kinds_of(rows)}
        unused = [name for name in names if name not in used]
        if unused:
            notes.append(f"not used: {some_of(unused)} (groups of cases: --groups NAME)")
    else:
        roles = roles.without(labels.texts)
    # Where no classes are clear, the other columns can be checked nevertheless.
    without_answers = add_roles(FilePoints(None, None, labels=labels.places), rows, roles)
    with kept(mistakes):
        classes = _classes_of(rows, roles, labels, file_options, notes)
        return _read_by_classes(rows, roles, labels, classes, file_options, notes, tested)
    # Reached only if the classes or their values were refused: `kept` has put that error into
    # `mistakes`.
    return PointsAndLayout(without_answers, None)


def _refuse_lists(rows: FileColumns, roles: Roles) -> None:
    """Raise `InputError` if what has a purpose has lists or objects in its cells."""
    for name in roles.names:
        if has_lists(rows[name]):
            several = ", several labels per case (multi-label)," if name == roles.labels else ""
            message, fix = f"lists or objects{several}", "give one entry per row"
            raise InputError(message, column=name, fixes=fix)


def _classes_of(
    rows: FileColumns, roles: Roles, labels: Labels, file_options: FileOptions, notes: list[str]
) -> _AnswersAndClasses:
    """The answers as classes; InputError: which column is which class is not clear."""
    if are_arrays(rows):
        answers = array_of_answers(rows, file_options, None, len(labels.places))
        labelled = classes_by_place(labels, answers, notes)
        return _AnswersAndClasses(answers, labelled, [answers.name])
    wanted, kind = file_options.classes, None
    if len(file_options.answers) > 1:
        raise two_answers(file_options.answers)
    if file_options.answers:  # --logits or --probabilities also says what the column holds
        wanted, kind = next(iter(file_options.answers.items()))
    used = set(roles.names)
    columns = [name for name in rows if name not in used]
    classes = classes_by_name(rows, columns, labels, wanted, notes)
    matrix = matrix_of(rows, classes.columns)
    answers = Answers(matrix, classes.columns[0], kind, classes.names, classes.single)
    if classes.names is None:  # the person named the columns, and the labels are numbers
        by_column = answers._replace(names=classes.columns)
        labelled = classes_by_place(labels, by_column, notes, is_in_order=True)
    else:
        place_of = {name: place for place, name in enumerate(classes.names)}
        codes = np.array([place_of[text] for text in labels.texts])[labels.places]
        labelled = LabelledClasses(codes, classes.names)
    if file_options.values == "auto" and wanted is None and not labels.is_text:
        refuse_two_models(classes.columns, matrix, labelled.codes)
    return _AnswersAndClasses(answers, labelled, classes.columns)


def _read_by_classes(
    rows: FileColumns,
    roles: Roles,
    labels: Labels,
    classes: _AnswersAndClasses,
    file_options: FileOptions,
    notes: list[str],
    tested: NDArray[np.bool_] | None,
) -> PointsAndLayout:
    """The layout, and the points that it makes of the rows, where the classes are known."""
    codes = classes.labelled.codes
    answers = classes.answers._replace(names=classes.labelled.names)
    check_meaning(answers, rows, labels.texts, file_options)
    is_confidence = may_be_confidence(answers.single, answers.kind, file_options.values)
    predictions = file_options.predictions if is_confidence else None
    if predictions is not None:
        answers = by_predictions(answers, rows, predictions, notes)
    scale = scaled(answers, file_options.values, tested)
    layout = Layout(
        kind=scale.kind,
        class_names=tuple(answers.class_names),
        has_names=answers.names is not None,
        columns=tuple(classes.columns),
        is_array=are_arrays(rows),
        single=answers.single,
        predictions=predictions,
        roles=roles,
        codes=_class_of_each_label(labels, codes, answers.class_names),
        label_range=(int(codes.min()), int(codes.max())),
        names=tuple(rows),
    )
    logits = layout.logits_in_order(answers, scale, file_options.values, notes)
    check_count(len(codes), len(logits))
    return PointsAndLayout(layout.points_with_roles(rows, codes, logits, notes), layout)


def _class_of_each_label(labels: Labels, codes: Any, class_names: list[str]) -> dict[str, int]:
    """The class number of each label's text, also of labels that only later rows have."""
    _, first_rows = np.unique(labels.places, return_index=True)
    class_of = dict(zip(labels.texts, codes[first_rows].tolist(), strict=True))
    is_number_of_class = all(text == str(code) for text, code in class_of.items())
    if is_number_of_class:  # so a label of a later row is a number, too, and never a name
        return {str(number): number for number in range(len(class_names))}
    # Labels are names, or numbers in another way, such as 1 to C or 01. A class that the first
    # rows lack is known by its name.
    return {name: number for number, name in enumerate(class_names)} | class_of
