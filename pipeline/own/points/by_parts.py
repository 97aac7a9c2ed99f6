"""The labelled points of a person's file some rows at a time, for files beyond memory.

The first rows decide what the columns mean, as `score` does for a whole file; all others must fit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError, naming

from ..columns.layout import Layout
from ..reading.cells import FileColumns, are_arrays
from ..reading.parts import batches, each_batch, rows_of
from ..rows.prepared import prepared, without_ignored
from ..rows.roles import Roles, roles_of
from ..rows.splits import is_empty, no_rows, only_training, without_training
from ..words.file_options import FileOptions, matching
from ..words.message_text import typed
from .check import with_checked_roles
from .whole_file import points_and_layout_of_files

COUNTED = re.compile(r"(\d[\d,]*)( cases .* left out)")
"""A note of how many points or rows are left out."""

Notes = dict[str, str]
"""Notes of a reading, with the place at which each holds first, by their text without numbers."""


class Points(NamedTuple):
    """Some labelled points."""

    logits: NDArray[np.float32]
    """[n, C]"""
    labels: NDArray[np.int64]
    """[n], the numbers of the classes."""
    weights: NDArray[np.float64]
    """[n], ones if the file has none."""


class FirstRows(NamedTuple):
    """What the first rows of some files say of all rows."""

    layout: Layout
    notes: Notes


def first_rows_of(paths: Sequence[Path], file_options: FileOptions) -> FirstRows:
    """What `score` takes the first rows of some files for, of those that are no training points.

    Raises:
        InputError: other rows could not be read alike, or there is none.
    """
    n_rows = 0
    for path in paths:

        def make(rows: FileColumns, start: int, path: Path = path) -> FirstRows | None:
            nonlocal n_rows
            n_rows += rows_of(rows)
            is_training = is_empty(without_training(rows, []))
            return None if is_training else decided_from(path, rows, file_options, start)

        decisions = each_batch(path, file_options, file_options.gives_role, make)
        first_rows = next(filter(None, decisions), None)
        if first_rows is not None:
            return first_rows
    with naming(paths[0]):
        if not n_rows:
            raise no_rows()
        raise only_training()


def check_ignored(paths: Sequence[Path], file_options: FileOptions) -> None:
    """Raise `InputError` if --ignore names a column that no table has."""
    names = dict[str, None]()
    for place, path in enumerate(paths, 1):
        rows = next(batches(path, file_options, file_options.gives_role), FileColumns())
        if are_arrays(rows):
            return
        names |= dict.fromkeys(rows)
        try:
            matching(file_options.ignore or "", list(names), "--ignore")
            return
        except InputError:
            if place == len(paths):
                raise


def labelled(
    path: Path, file_options: FileOptions, layout: Layout, notes: Notes
) -> Iterator[Points]:
    """Yield the labelled points of a file, some at a time.

    `layout` is that of the first rows. `notes` gets what is done otherwise or left out.
    """

    def make(rows: FileColumns, start: int) -> Points:
        row_notes = list[str]()
        points = points_of(rows, file_options, layout, row_notes)
        add_notes(notes, row_notes, path, start, rows)
        return points

    return each_batch(path, file_options, file_options.gives_role, make)


def add_notes(
    notes: Notes, row_notes: Sequence[str], path: Path, start: int, rows: FileColumns
) -> None:
    """Add the notes of some rows of a file that differ from all others by more than numbers.

    What is counted is added up.
    """
    for note in row_notes:
        place = f"{path.name}, rows {start:,} to {start + rows_of(rows) - 1:,}"
        is_count = COUNTED.fullmatch(note)
        join_note(notes, re.sub(r"\d[\d.,]*", "#", note), note if is_count else f"{place}: {note}")


def join_note(notes: Notes, key: str, note: str) -> None:
    """Add a note, or to the count of one that is there."""
    before, new = (COUNTED.fullmatch(text) for text in (notes.get(key, ""), note))
    if before and new:
        total = sum(int(match[1].replace(",", "")) for match in (before, new))
        note = f"{total:,}{new[2]}"
        notes[key] = note
    else:
        notes.setdefault(key, note)


def decided_from(
    path: Path, whole: FileColumns, file_options: FileOptions, start: int = 0
) -> FirstRows:
    """What `score` takes these rows for; InputError: other rows could not be read alike."""
    mistakes, row_notes = list[InputError](), list[str]()
    rows = without_training(whole, row_notes)
    (rows,) = without_ignored([rows], file_options.ignore, may_lack=True)
    settled = replace(file_options, ignore=None)  # it is left out already
    try:
        points, layout = points_and_layout_of_files([path], [rows], settled, mistakes)
        with_checked_roles(points, mistakes)
    except InputError:  # perhaps of a column that is to be ignored: the first splits are all alike
        _refuse_what_needs_all(roles_of(list(prepared(rows, settled, [])), settled, []))
        raise
    assert layout is not None and layout.roles is not None  # else there are mistakes
    _refuse_what_needs_all(layout.roles)
    notes = Notes()
    add_notes(notes, [*row_notes, *points.notes], path, start, whole)
    return FirstRows(layout, notes)


def points_of(
    rows: FileColumns, file_options: FileOptions, layout: Layout, notes: list[str]
) -> Points:
    """The points of some rows. InputError: they do not fit what the first rows say."""
    assert layout.roles is not None  # the points have labels
    logits = np.empty((0, len(layout.class_names)), np.float32)
    no_points = Points(logits, np.empty(0, np.int64), np.empty(0))
    (rows,) = without_ignored([without_training(rows, notes)], file_options.ignore, may_lack=True)
    if is_empty(rows):
        return no_points
    rows = prepared(rows, file_options, notes, layout.class_names)
    # A file that lacks a column, or has one more, must not shift the classes.
    layout.check_columns(rows, file_options)
    if not len(rows[layout.roles.labels]):  # each point has a label that is to be ignored
        return no_points
    mistakes = list[InputError]()
    points = layout.points_in(rows, file_options, mistakes)
    points = with_checked_roles(points, mistakes)
    notes += points.notes
    weights = np.ones(len(points.labels)) if points.weights is None else points.weights
    return Points(points.matrix, points.labels, weights)


def _refuse_what_needs_all(roles: Roles) -> None:
    """Raise `InputError` for splits, groups or clusters."""
    of_a_point = "weights", "predictions"
    names = [name for role, name in roles.beside_labels() if role not in of_a_point]
    if names:
        message = "one pass does not have all cases at once"
        fix = f"to do without: {typed('--ignore', ','.join(names))}"
        raise InputError(message, field=names[0], fixes=fix)
