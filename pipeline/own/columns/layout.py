"""Apply the layout of a file: what each column or array is, and which class a column is of.

layout_from_rows.py decides it once, from a whole file or the first rows of a stream, and
classes_of_calibrator.py for the classes of a saved calibrator. This file decides nothing: it only
applies the layout to all rows, whichever part they are in. Rows that lack a column, or have one
more that may count, are refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.calibrators.inputs import ENOUGH_ROWS
from utility_calibration.metrics.errors import InputError

from ..reading.cells import (
    FileColumns,
    Labels,
    are_arrays,
    distinct_labels,
    numbers_of,
    plain_column,
)
from ..rows.lists import CLASS_NAMES
from ..rows.roles import Roles
from ..words.file_options import FileOptions
from ..words.message_text import IGNORE, cut_off, some_of, typed
from ..words.patterns import as_number, whole_sets
from ..words.usual_names import with_names
from .answers import Answers, answers_of_array
from .classes_by_place import check_start
from .confidence import by_predictions
from .file_points import FilePoints
from .scale import Scaled, logits_of, scaled
from .single_column import may_be_answers


@dataclass(frozen=True)
class Layout:
    """What each column or array of a file is."""

    kind: str
    """What the answers are: logits or probabilities."""
    class_names: tuple[str, ...]
    """[C], the classes in their order: their names, or their numbers as text."""
    has_names: bool
    """Whether the classes have names; columns without names go by their place."""
    columns: tuple[str, ...]
    """The columns of a table in the order of the classes, or the one array of answers."""
    is_array: bool
    """Whether the answers are one array, or one column of lists."""
    single: int | None = None
    """The class of the only column; None: each class has a column."""
    predictions: str | None = None
    """The column of predictions, if the answers are the confidence in them."""
    roles: Roles | None = None
    """The labels and all other purposes; None: the points have no labels."""
    codes: Mapping[str, int] = field(default_factory=dict)
    """Class number by label text. Keys: 0 … C-1 as text, if every label of the first rows is the
    number of its class; otherwise all class names, and the label texts of the first rows."""
    label_range: tuple[int, int] = (0, 0)
    """The smallest and the largest class number among the first rows' labels."""
    names: tuple[str, ...] = ()
    """All columns or arrays of the first rows."""

    def needed(self) -> list[str]:
        """The columns or arrays that all rows must have."""
        needed = [*self.columns]
        if self.roles is not None:
            needed += self.roles.names
        if self.is_array and CLASS_NAMES in self.names:
            needed.append(CLASS_NAMES)
        return needed

    def check_columns(self, rows: FileColumns, file_options: FileOptions) -> None:
        """Raise `InputError` if rows lack a column of the first ones, or have one that may count.

        A class more, or weights in some files only, would make every number wrong.
        """
        further = [name for name in with_names(rows) if name not in self.names]
        lacking = [name for name in self.needed() if name not in rows]
        unclear = [name for name in further if _may_count(rows, name, file_options)]
        if lacking:
            name = lacking[0]
            message = f"not there, while the first rows have it (there are {some_of(list(rows))})"
        elif unclear:
            name = unclear[0]
            message = "there, while the first rows lack it"
        else:
            return
        fixes = ["give it in all files"]
        if name not in self.columns:
            fixes.append(f"leave it out everywhere: {typed('--ignore', name)}")
        raise InputError(message, field=name, fixes=fixes)

    def answers_in(self, rows: FileColumns, file_options: FileOptions, notes: list[str]) -> Answers:
        """The answers of some rows."""
        names = list(self.class_names)
        if self.is_array:
            answers = answers_of_array(rows, self.columns[0], self.kind, file_options)
            answers = answers._replace(names=answers.names or names)
        else:
            matrix = matrix_of(rows, self.columns)
            answers = Answers(matrix, self.columns[0], self.kind, names, self.single)
        if self.predictions is not None:
            answers = by_predictions(answers, rows, self.predictions, notes)
        return answers

    def order_of(self, answers: Answers) -> NDArray[np.int64]:
        """The column of each class; the columns of an array may have names in any order.

        Names of columns say nothing where the classes are known by number alone.
        """
        by_place = np.arange(len(self.class_names))
        names = answers.names
        if not self.is_array or names is None or names == list(self.class_names):
            return by_place
        sets = whole_sets(names, self.class_names)
        if sets:
            place_of = {text: names.index(name) for name, text in sets[0].label_of_column.items()}
            return np.array([place_of[text] for text in self.class_names])
        if self.has_names or all(as_number(name) is not None for name in names):
            message = f"{some_of(names)}, while the classes are {some_of(self.class_names)}"
            raise InputError(message, field=CLASS_NAMES, fixes="give these")
        return by_place

    def logits_in_order(
        self, answers: Answers, scale: Scaled, values: str, notes: list[str]
    ) -> NDArray[np.float32]:
        """The answers as logits [n, C], classes in order; `values` as in `FileOptions`."""
        logits = logits_of(answers, scale, values, notes)
        order = self.order_of(answers)
        n_columns = logits.shape[1]
        if n_columns != len(order):
            message = f"{n_columns} columns for {len(order)} classes"
            raise InputError(message, field=scale.kind, fixes="give one per class and no other")
        # Without a change of order there is no copy, and a mapped array stays in its file.
        is_moved = bool((order != np.arange(len(order))).any())
        return logits[:, order] if is_moved else logits

    def codes_of(self, labels: Labels) -> NDArray[np.int64]:
        """The class of each point; InputError: a label is no class of the first rows."""
        odd = [text for text in labels.texts if text not in self.codes]
        if odd:
            message = f"{cut_off(odd[0])} is no class of the first rows"
            fixes = ["correct it", f"leave such cases out: {typed('--ignore-label', odd[0])}"]
            raise InputError(message, field="labels", row=labels.row(odd[0]), fixes=fixes)
        numbers = [self.codes[text] for text in labels.texts]
        return np.array(numbers, np.int64)[labels.places]

    def points_in(
        self, rows: FileColumns, file_options: FileOptions, mistakes: list[InputError]
    ) -> FilePoints:
        """The labelled points of some rows whose columns have been checked.

        `mistakes` gets what does not keep the rest from being checked.

        Raises:
            InputError: the rows do not fit the layout.
        """
        assert self.roles is not None  # the points have labels
        notes = list[str]()
        answers = self.answers_in(rows, file_options, notes)
        labels = distinct_labels(plain_column(rows[self.roles.labels]), self.roles.labels, mistakes)
        codes = self.codes_of(labels)
        order = self.order_of(answers)
        is_moved = bool((order != np.arange(len(order))).any())
        if is_moved and not set(labels.texts) <= set(self.class_names):
            message, fix = "numbers of columns that have another order", "class_names[labels]"
            raise InputError(message, field="labels", fixes=f"save the names: {fix}")
        if not self.has_names:  # few first rows do not show where labels start
            check_start(answers.matrix, codes, self.label_range, len(self.class_names))
        # Few rows of logits may look like probabilities by chance.
        values = self.kind if len(codes) < ENOUGH_ROWS else file_options.values
        scale = scaled(answers, values)
        logits = self.logits_in_order(answers, scale, values, notes)
        check_count(len(codes), len(logits))
        return self.points_with_roles(rows, codes, logits, notes)

    def points_with_roles(
        self, rows: FileColumns, codes: Any, logits: Any, notes: Sequence[str]
    ) -> FilePoints:
        """Points with all that the file says of them, not yet looked at."""
        assert self.roles is not None  # the points have labels
        names = list(self.class_names) if self.has_names else None
        points = FilePoints(self.kind, logits, names, codes, notes=tuple(notes))
        return add_roles(points, rows, self.roles)


def add_roles(points: FilePoints, rows: FileColumns, roles: Roles) -> FilePoints:
    """The points with the column or array of each purpose, not yet looked at."""
    values = {role: plain_column(rows[name]) for role, name in roles.beside_labels()}
    return replace(
        points,
        groups=values.get("groups"),
        clusters=values.get("clusters"),
        weights=values.get("weights"),
        splits={name: values[name] for name in roles.splits},
    )


def matrix_of(rows: FileColumns, columns: Sequence[str]) -> NDArray[np.float64]:
    """The numbers [n, columns] of answers; -inf is impossible, nothing is a mistake."""
    return numbers_of(rows, columns, ["correct it", IGNORE], -np.inf)


def _may_count(rows: FileColumns, name: str, file_options: FileOptions) -> bool:
    """Whether a column or array that the first rows lack may have a purpose, or be a class."""
    if file_options.gives_role(name) or file_options.kinds_of([name]):
        return True
    return not are_arrays(rows) and may_be_answers(rows, name)


def check_count(n_labels: int, n_rows: int) -> None:
    """Raise `InputError` unless there are as many labels as rows of answers."""
    if n_labels != n_rows:
        message = f"{n_labels} labels for {n_rows} rows"
        raise InputError(message, field="labels", fixes="give one per row")
