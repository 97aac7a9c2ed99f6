"""Decide the layout of a file from its labelled rows: all, or the first ones of a stream."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from utility_calibration.metrics.errors import InputError

from .answer_array import array_of_answers
from .answers import Answers
from .cells import FileColumns, Labels, are_arrays, distinct_labels, plain_column
from .choices import Choices
from .classes_by_name import classes_by_name
from .classes_by_place import LabelledClasses, classes_by_place
from .confidence import by_predictions, check_meaning, may_be_confidence
from .file_points import FilePoints
from .layout import Layout, check_count, matrix_of, with_roles
from .lists import CLASS_NAMES, has_lists
from .message_text import kept, some_of
from .roles import Roles, roles_of
from .rules import refuse_two_models
from .scale import scaled


class Decided(NamedTuple):
    """What a file's labelled rows say."""

    points: FilePoints
    layout: Layout | None
    """None: the columns of the classes are not clear, as a mistake says."""


class _Classes(NamedTuple):
    """The answers, and the labels as their classes."""

    answers: Answers
    labelled: LabelledClasses
    columns: list[str]
    """The columns of a table in the order of the classes, or the one array."""


def decided(
    rows: FileColumns,
    choices: Choices,
    mistakes: list[InputError],
    names: Iterable[str] = (),
    tested: Any = None,
) -> Decided:
    """Decide what each column or array of labelled rows is, and read the points by it.

    Args:
        rows: prepared, of one file or of two.
        choices: what the person says.
        mistakes: gets what does not keep the rest from being checked.
        names: all columns or arrays of the files, also those that are not in `rows`.
        tested: that of `FilePoints`, if there are two files.

    Raises:
        InputError: a purpose has no column, or several ones.
    """
    notes = list[str]()
    roles = roles_of(list(rows), choices, notes)
    _refuse_lists(rows, roles)
    labels = distinct_labels(plain_column(rows[roles.labels]), roles.labels, mistakes)
    if are_arrays(rows):
        used = {*roles.names, CLASS_NAMES, *choices.kinds_of(rows)}
        unused = [name for name in names if name not in used]
        if unused:
            notes.append(f"not used: {some_of(unused)} (groups of points: --groups NAME)")
    else:
        roles = roles.without(labels.texts)
    layout = None
    points = with_roles(FilePoints(None, None, labels=labels.places), rows, roles)
    with kept(mistakes):
        classes = _classes_of(rows, roles, labels, choices, notes)
        layout, points = _applied(rows, roles, labels, classes, choices, notes, tested)
    return Decided(points, layout)


def _refuse_lists(rows: FileColumns, roles: Roles) -> None:
    """Raise `InputError` if what has a purpose has lists or objects in its cells."""
    for name in roles.names:
        if has_lists(rows[name]):
            several = ", several labels per point (multi-label)," if name == roles.labels else ""
            message, fix = f"lists or objects{several}", "give one entry per row"
            raise InputError(message, column=name, fixes=fix)


def _classes_of(
    rows: FileColumns, roles: Roles, labels: Labels, choices: Choices, notes: list[str]
) -> _Classes:
    """The answers as classes; InputError: which column is which class is not clear."""
    if are_arrays(rows):
        answers = array_of_answers(rows, choices, None, len(labels.places))
        labelled = classes_by_place(labels, answers, notes)
        return _Classes(answers, labelled, [answers.name])
    kind = None
    for name, kind_of_name in choices.answers.items():  # one column of numbers
        choices, kind = replace(choices, classes=name), kind_of_name
    used = set(roles.names)
    columns = [name for name in rows if name not in used]
    classes = classes_by_name(rows, columns, labels, choices.classes, notes)
    matrix = matrix_of(rows, classes.columns)
    answers = Answers(matrix, classes.columns[0], kind, classes.names, classes.single)
    if classes.names is None:
        by_column = answers._replace(names=classes.columns)
        labelled = classes_by_place(labels, by_column, notes, is_in_order=True)
    else:
        place_of = {name: place for place, name in enumerate(classes.names)}
        codes = np.array([place_of[text] for text in labels.texts])[labels.places]
        labelled = LabelledClasses(codes, classes.names)
    if choices.values == "auto" and choices.classes is None and not labels.is_text:
        refuse_two_models(classes.columns, matrix, labelled.codes)
    return _Classes(answers, labelled, classes.columns)


def _applied(
    rows: FileColumns,
    roles: Roles,
    labels: Labels,
    classes: _Classes,
    choices: Choices,
    notes: list[str],
    tested: Any,
) -> tuple[Layout, FilePoints]:
    """The layout, and the points that it makes of the rows."""
    codes = classes.labelled.codes
    answers = classes.answers._replace(names=classes.labelled.names)
    check_meaning(answers, rows, labels.texts, choices)
    is_confidence = may_be_confidence(answers.single, answers.kind, choices.values)
    predictions = choices.predictions if is_confidence else None
    if predictions is not None:
        answers = by_predictions(answers, rows, predictions, notes)
    scale = scaled(answers, choices.values, tested)
    layout = Layout(
        kind=scale.kind,
        class_names=tuple(answers.class_names),
        has_names=answers.names is not None,
        columns=tuple(classes.columns),
        is_array=are_arrays(rows),
        single=answers.single,
        predictions=predictions,
        roles=roles,
        codes=_codes_by_text(labels, codes, answers.class_names),
        label_range=(int(codes.min()), int(codes.max())),
        names=tuple(rows),
    )
    logits = layout.logits_of(answers, scale, choices.values, notes)
    check_count(len(codes), len(logits))
    return layout, layout.with_roles(rows, codes, logits, notes)


def _codes_by_text(labels: Labels, codes: Any, class_names: list[str]) -> dict[str, int]:
    """The class of each label, also of those that only later rows have."""
    _, first_rows = np.unique(labels.places, return_index=True)
    seen = dict(zip(labels.texts, codes[first_rows].tolist(), strict=True))
    are_numbers = all(text == str(code) for text, code in seen.items())
    if are_numbers:
        return {str(number): number for number in range(len(class_names))}
    by_name = {name: number for number, name in enumerate(class_names)}
    return by_name | seen
