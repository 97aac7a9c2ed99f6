"""Which columns of a table are which classes, by their names.

A column is a class if it bears a label by the pattern that all labels share (patterns.py), or if
its name fits the pattern and rows sum to one with it only. One column of any other name, and the
table is refused until the person says what it is: a column that is taken for a class makes every
number wrong.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.validation import ROW_SUM_TOLERANCE

from ..reading.cells import FileColumns, Labels
from ..words.file_options import MOST, matching
from ..words.message_text import all_of_one_class, some_of
from ..words.patterns import TRUTH, Bearers, as_number, bearers_of
from ..words.usual_names import SINGLE, spelt, with_names
from .column_errors import (
    in_question,
    lacking_column,
    no_bearers,
    not_each_once,
    one_for_many,
    several_sets,
)
from .single_column import (
    ClassColumns,
    likely_columns,
    refuse_answers,
    single_column,
    values_of,
)

SUMS_TO_ONE = 0.02
"""Rows of columns that are probabilities miss one by less."""


def classes_by_name(
    rows: FileColumns, columns: list[str], labels: Labels, chosen: str | None, notes: list[str]
) -> ClassColumns:
    """The columns of the classes, of `columns` that have no other purpose.

    `chosen` is what the person names, by a pattern or a list; `notes` gets what was decided.
    InputError names all columns in question, and the options that settle it.
    """
    if chosen is not None:
        return _chosen(rows, matching(chosen, columns, "--classes"), labels, "*" in chosen)
    named = with_names(columns)
    if len(named) < len(columns):
        notes.append("a column without a name is left out")
    # One label alone would be found in any column that has it in its name.
    sets = bearers_of(named, labels.texts) if len(labels.texts) > 1 else []
    if not sets:
        return _without_pattern(rows, named, labels, notes)
    sets = [_with_a_named_class(rows, bearers, named) for bearers in sets]
    usable = [bearers for bearers in sets if _can_be_answers(rows, bearers, labels)]
    if len(sets) > 1:  # two models; logits and probabilities; one-hot labels
        raise several_sets(sets, usable, named)
    return _of_one_set(rows, named, labels, sets[0], bool(usable), notes)


def _of_one_set(
    rows: FileColumns,
    named: Sequence[str],
    labels: Labels,
    bearers: Bearers,
    is_usable: bool,
    notes: list[str],
) -> ClassColumns:
    """The columns of the only pattern that bears all labels, if no other column may be a class."""
    further = list(bearers.part_of_further_column)
    unknown = [name for name in named if name not in bearers.label_of_column]
    if not unknown:
        return _ordered(bearers.label_of_column, labels)
    # Of probabilities the sums of rows show which columns belong together.
    off = _off(rows, bearers.label_of_column)
    off_with_further = _off(rows, bearers.named)
    if further == unknown and off_with_further < SUMS_TO_ONE <= off:
        notes.append(f"{some_of(further)}: a class, since rows sum to one with it only")
        return _ordered(bearers.named, labels)
    if off <= ROW_SUM_TOLERANCE and off <= off_with_further:
        notes.append(f"not used, since rows sum to one without: {some_of(unknown, MOST)}")
        return _ordered(bearers.label_of_column, labels)
    if is_usable:
        raise in_question(unknown, bearers)
    raise in_question(unknown, likely=likely_columns(rows, named, labels))


def _with_a_named_class(rows: FileColumns, bearers: Bearers, columns: Sequence[str]) -> Bearers:
    """The columns that bear all labels, and those of a class whose label does not occur.

    p_unknown beside p_0, p_1, … is a class without a point if rows sum to one with it only, and so
    is a single further column of any name.
    """
    others = [name for name in columns if name not in bearers.named]
    further = bearers.parts_of(others)
    if not further and len(others) == 1:
        further = {others[0]: others[0]}
    if not further:
        return bearers
    off_with_further = _off(rows, [*bearers.named, *further])
    if off_with_further < SUMS_TO_ONE <= _off(rows, bearers.named):
        all_further = {**bearers.part_of_further_column, **further}
        return replace(bearers, part_of_further_column=all_further)
    return bearers


def _off(rows: FileColumns, names: Iterable[str]) -> float:
    """How far sums over columns differ from one; infinite if these are no probabilities."""
    p = values_of(rows, names)
    off = float(np.abs(p.sum(axis=1) - 1).max())
    return off if (p >= 0).all() and (p % 1 != 0).any() else np.inf


def _can_be_answers(rows: FileColumns, bearers: Bearers, labels: Labels) -> bool:
    """Whether the values of columns that bear all labels can be probabilities or logits.

    Logits are named so, or name the label oftener than guessing; features with numbers in their
    names do not.
    """
    if _off(rows, bearers.label_of_column) < SUMS_TO_ONE:
        return True
    matrix = values_of(rows, bearers.label_of_column)
    with np.errstate(invalid="ignore"):  # -inf, the logit of what is impossible, has no remainder
        are_whole = bool((matrix % 1 == 0).all())
    if are_whole:  # counts, or one-hot labels
        return False
    if SINGLE.fullmatch(spelt(bearers.pattern)):
        return True
    n, n_classes = len(matrix), len(labels.texts)
    place_of = {text: place for place, text in enumerate(labels.texts)}
    class_of_column = np.array([place_of[text] for text in bearers.label_of_column.values()])
    best = class_of_column[matrix.argmax(axis=1)]
    best_counts = np.bincount(best, minlength=n_classes)
    label_counts = np.bincount(labels.places, minlength=n_classes)
    hits_by_chance = best_counts @ label_counts / n
    # By chance their standard deviation is at most half a root of n: four of these make it sure.
    return bool(np.sum(best == labels.places) > hits_by_chance + 2 * n**0.5)


def _chosen(
    rows: FileColumns, columns: list[str], labels: Labels, is_pattern: bool
) -> ClassColumns:
    """The columns that the person names are the classes, by name, or by place if labels are."""
    if len(columns) == 1:
        return single_column(rows, columns[0], labels)
    sets = bearers_of(columns, labels.texts)
    for bearers in sets:
        if bearers.fit_all(columns):
            return _ordered(bearers.named, labels)
    is_clear = len(sets) == 1 and not labels.is_text
    # A list says that the others are classes, too. A pattern may fit a p_value by chance.
    if is_clear and (not is_pattern or _off(rows, columns) < SUMS_TO_ONE):
        bearers = sets[0]
        # A column is of its label, else of what the pattern leaves of its name, else of its name.
        class_of = {name: name for name in columns}
        class_of |= bearers.parts_of(columns)
        class_of |= bearers.label_of_column
        return _ordered(class_of, labels)
    if labels.is_text or is_pattern or sets:
        raise not_each_once(columns, labels.texts)
    return ClassColumns(columns, None)


def _ordered(class_of: dict[str, str], labels: Labels) -> ClassColumns:
    """Columns, by the classes that they bear, in one order: of numbers, else of names as text.

    The file's order would move draws, and so floors and fits.
    """
    numbers = {
        column: as_number(TRUTH.get(text.casefold(), text)) for column, text in class_of.items()
    }
    if None in numbers.values() and labels.is_text:
        columns = sorted(class_of, key=class_of.__getitem__)
        return ClassColumns(columns, [class_of[column] for column in columns])

    def rank(column: str) -> tuple[bool, float, str]:
        number = numbers[column]
        # Where labels are numbers, a class of another name comes last.
        return number is None, number or 0, class_of[column]

    columns = sorted(class_of, key=rank)
    if labels.is_text:
        return ClassColumns(columns, [class_of[column] for column in columns])
    names = []
    for column in columns:
        text, number = class_of[column], numbers[column]
        is_written_otherwise = text not in labels.texts and number is not None
        names.append(f"{number:.15g}" if is_written_otherwise else text)  # 004 is 4, as labels are
    return ClassColumns(columns, names)


def _without_pattern(
    rows: FileColumns, columns: list[str], labels: Labels, notes: list[str]
) -> ClassColumns:
    """No pattern bears all labels: a single column for two classes, or a message."""
    if len(labels.texts) == 1:
        raise all_of_one_class(len(labels.places), labels.texts[0])
    likely = likely_columns(rows, columns, labels)
    if len(likely) == 1:
        others = [name for name in columns if name not in likely]
        if others:
            refuse_answers(rows, others, likely)
            notes.append(f"not used: {some_of(others, MOST)}")
        return single_column(rows, likely[0], labels)
    lacking = _label_without_column(rows, columns, labels)
    if lacking is not None:
        raise lacking
    one = one_for_many(rows, columns, labels.texts)
    if one is not None:
        raise one
    raise no_bearers(rows, columns, labels.texts, is_in_order=not labels.is_text)


def _label_without_column(
    rows: FileColumns, columns: Sequence[str], labels: Labels
) -> InputError | None:
    """The error on the only label that no column bears, if there is one."""
    # Each label is left out in turn; more than these would take long.
    for text in labels.texts[:MOST]:
        others = [label for label in labels.texts if label != text]
        sets = bearers_of(columns, others) if len(others) > 1 else []
        if sets:
            is_complete = _off(rows, sets[0].label_of_column) < SUMS_TO_ONE
            return lacking_column(text, labels, sets[0], is_complete)
    return None
