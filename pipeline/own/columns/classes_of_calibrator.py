"""The layout of points without labels, for the classes of a saved calibrator.

New points may have no labels, so that nothing but names decides. Columns that bear no class are
left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from ..reading.cells import FileColumns, are_arrays
from ..words.file_options import FileOptions, matching
from ..words.patterns import bearers_of, borne_alone, whole_sets
from ..words.usual_names import with_names
from .answers import array_of_answers
from .column_errors import in_question, no_bearers, not_each_once, several_sets
from .confidence import may_be_confidence
from .layout import Layout
from .single_column import ClassColumns, class_of_single, refuse_answers, usual_singles


class CalibratorClasses(NamedTuple):
    """The classes of a calibrator."""

    texts: list[str]
    """Their names in order, or their numbers as text."""
    have_names: bool
    """Whether it knows their names."""
    kind: str
    """What it takes: logits or probabilities."""


def layout_for(
    classes: CalibratorClasses, rows: FileColumns, columns: Sequence[str], file_options: FileOptions
) -> Layout:
    """Find the answers for the classes in some columns of a table, or in the one array of answers.

    Raises:
        InputError: which column is which class is not clear.
    """
    if are_arrays(rows):
        answers = array_of_answers(rows, file_options, classes.kind)
        names, single = [answers.name], answers.single
    else:
        names, _, single = _columns_of(rows, columns, classes.texts, file_options.classes)
    is_confidence = may_be_confidence(single, classes.kind, file_options.values)
    return Layout(
        kind=classes.kind,
        class_names=tuple(classes.texts),
        has_names=classes.have_names,
        columns=tuple(names),
        is_array=are_arrays(rows),
        single=single,
        predictions=file_options.predictions if is_confidence else None,
        names=tuple(rows),
    )


def _columns_of(
    rows: FileColumns, columns: Sequence[str], classes: Sequence[str], chosen: str | None
) -> ClassColumns:
    """The columns in the order of known `classes`, of those that have no other purpose.

    `chosen` is what the person names, by a pattern or a list.

    Raises:
        InputError: no column, or several ones, can be that of a class.
    """
    if chosen is not None:
        is_pattern = "*" in chosen
        return _chosen(matching(chosen, columns, "--classes"), classes, is_pattern)
    named = with_names(columns)
    sets = bearers_of(named, classes)
    if len(sets) > 1:
        raise several_sets(sets, sets, named)
    if not sets:
        return _single(rows, named, classes)
    bearers = sets[0]
    # Where a class's name alone is its column, the pattern fits every other column, too.
    if bearers.part_of_further_column and bearers.pattern != "*":
        without_further = replace(bearers, part_of_further_column={})
        raise in_question([*bearers.part_of_further_column], without_further)
    return _in_order(bearers.label_of_column, classes)


def _in_order(class_of: dict[str, str], classes: Sequence[str]) -> ClassColumns:
    """The columns in the order of the classes that they bear."""
    column_of = {text: name for name, text in class_of.items()}
    return ClassColumns([column_of[text] for text in classes], list(classes))


def _chosen(columns: list[str], classes: Sequence[str], is_pattern: bool) -> ClassColumns:
    """The columns that the person names: by the classes in their names, else by place."""
    if len(columns) == 1:
        return _one(columns[0], classes)
    whole = whole_sets(columns, classes)
    if whole and not whole[0].part_of_further_column:
        return _in_order(whole[0].label_of_column, classes)
    if is_pattern:
        raise not_each_once(columns, classes)
    return ClassColumns(columns, list(classes))


def _single(rows: FileColumns, columns: list[str], classes: Sequence[str]) -> ClassColumns:
    """The only column that can be the answers for one of two classes."""
    bearing = [name for name in columns if borne_alone(name, classes)]
    likely = bearing if len(bearing) == 1 else usual_singles(columns)
    if len(classes) != 2 or len(likely) != 1:
        raise no_bearers(rows, columns, classes, is_in_order=True)
    others = [name for name in columns if name not in likely]
    # A class in the name settles it; a name such as `score` does only beside nothing alike.
    if others and borne_alone(likely[0], classes) is None:
        refuse_answers(rows, others, likely)
    return _one(likely[0], classes)


def _one(column: str, classes: Sequence[str]) -> ClassColumns:
    """One column for two classes."""
    meant = class_of_single(column, classes)
    return ClassColumns([column], list(classes), list(classes).index(meant))
