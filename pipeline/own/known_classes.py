"""The answers for classes that are known, from a calibrator or the first rows of a file.

New points may have no labels, so that nothing but names decides. Columns that bear no class are
left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError

from .cells import FileColumns, are_arrays, numbers_of
from .choices import Choices, matching
from .classes import class_of_single, leave_out, not_each_once
from .column_errors import in_question, no_bearers, several_sets
from .confidence import by_predictions
from .file_points import FilePoints, KnownClasses
from .message_text import IGNORE, some_of
from .patterns import as_number, bearers_of, borne_alone, whole_sets
from .places import array_of_answers
from .usual_names import SINGLE, spelt, with_names

Columns = tuple[list[str], list[str], int | None]
"""Columns, the names of their classes, and the class of a single one."""


def answers_of_classes(
    held: FileColumns, columns: list[str], classes: KnownClasses, choices: Choices, kind: str | None
) -> FilePoints:
    """The answers in some columns of a table, or in the one array of answers, without labels.

    `order` of the result has the column of each class. `kind` is that of the answers, if it is
    known.

    Raises:
        InputError: which column is which class is not clear.
    """
    if are_arrays(held):
        answers = array_of_answers(held, choices, kind)
        order = np.arange(len(classes.texts))
        if answers.names is not None:
            order = _order_of(answers.names, classes)
        names = answers.names or classes.texts
        given = FilePoints(answers.kind, answers.matrix, names, order=order, single=answers.single)
        return by_predictions(given, held, next(iter(choices.kinds_of(held))), choices)
    notes = list[str]()
    columns, names, single = columns_of_classes(
        held, columns, classes.texts, choices.classes, notes
    )
    matrix = numbers_of(held, columns, ["correct it", IGNORE], -np.inf)
    order = np.arange(len(names))
    given = FilePoints(kind, matrix, names, order=order, single=single, notes=tuple(notes))
    return by_predictions(given, held, columns[0], choices)


def _order_of(names: list[str], classes: KnownClasses) -> NDArray[np.int64]:
    """The place of each class among the names of an array's columns.

    Names of columns say nothing to a calibrator that knows the numbers of its columns alone.
    """
    sets = whole_sets(names, classes.texts)
    if sets:
        place = {text: names.index(name) for name, text in sets[0].labels.items()}
        return np.array([place[text] for text in classes.texts])
    if classes.is_text or all(as_number(name) is not None for name in names):
        message = f"{some_of(names)}, while the classes are {some_of(classes.texts)}"
        raise InputError(message, field="class_names", fixes="give these")
    return np.arange(len(classes.texts))


def columns_of_classes(
    held: FileColumns,
    columns: Sequence[str],
    classes: Sequence[str],
    chosen: str | None,
    notes: list[str],
) -> Columns:
    """The columns in the order of known `classes`, of those that have no other purpose.

    `chosen` is what the person names, by a pattern or a list; `notes` gets what is left out.

    Raises:
        InputError: no column, or several ones, can be that of a class.
    """
    if chosen is not None:
        is_pattern = "*" in chosen
        return _chosen(matching(chosen, columns, "--classes"), classes, is_pattern)
    named = with_names(columns)
    if len(named) < len(columns):
        notes.append("a column without a name is left out")
    sets = bearers_of(named, classes)
    if len(sets) > 1:
        raise several_sets(sets, sets, named)
    if not sets:
        return _single(held, named, classes, notes)
    bearers = sets[0]
    # Where a class's name alone is its column, the pattern fits every other column, too.
    if bearers.others and bearers.pattern != "*":
        raise in_question([*bearers.others], replace(bearers, others={}))
    return _in_order(bearers.labels, classes)


def _in_order(bearing: dict[str, str], classes: Sequence[str]) -> Columns:
    """The columns in the order of the classes that they bear."""
    columns = {text: name for name, text in bearing.items()}
    return [columns[text] for text in classes], list(classes), None


def _chosen(columns: list[str], classes: Sequence[str], is_pattern: bool) -> Columns:
    """The columns that the person names: by the classes in their names, else by place."""
    if len(columns) == 1:
        return _one(columns[0], classes)
    whole = whole_sets(columns, classes)
    if whole and not whole[0].others:
        return _in_order(whole[0].labels, classes)
    if is_pattern:
        raise not_each_once(columns, classes)
    return columns, list(classes), None


def _single(
    held: FileColumns, columns: list[str], classes: Sequence[str], notes: list[str]
) -> Columns:
    """The only column that can be the answers for one of two classes."""
    bearing = [name for name in columns if borne_alone(name, classes)]
    usual = [name for name in columns if SINGLE.fullmatch(spelt(name))]
    likely = bearing if len(bearing) == 1 else usual
    if len(classes) != 2 or len(likely) != 1:
        raise no_bearers(held, columns, classes, is_in_order=True)
    others = [name for name in columns if name not in likely]
    if others and borne_alone(likely[0], classes) is None:
        leave_out(held, others, likely, notes)
    return _one(likely[0], classes)


def _one(column: str, classes: Sequence[str]) -> Columns:
    """One column for two classes."""
    meant = class_of_single(column, classes)
    return [column], list(classes), list(classes).index(meant)
