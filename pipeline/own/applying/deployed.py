"""A calibrator to deploy: fitted to the points of a file, applied to points without labels.

The saved file also says what the calibrator takes: `takes_` is "logits" or "probabilities",
`class_names_` has the names of the columns in their order, if they are known, and `groups_from_`
says which column or array names the group of each point, if the calibrator has patches of groups,
and `predictions_from_` the one with the predictions whose confidence it takes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from utility_calibration.calibrators.base import Calibrator
from utility_calibration.calibrators.inputs import ENOUGH_ROWS, Inputs
from utility_calibration.metrics.errors import InputError

from ...harness.settings import Settings
from ...scoring.fitted import fitted_on
from ...scoring.points import CachedLogits
from ..columns.answers import Answers
from ..columns.classes_of_calibrator import CalibratorClasses, layout_for
from ..columns.layout import Layout
from ..columns.scale import scaled
from ..points.by_parts import Notes, add_notes
from ..reading.cells import FileColumns, plain_column, text_of
from ..reading.parts import each_batch, rows_of
from ..rows.lists import arrays_of, named_by_row
from ..rows.prepared import without_ignored
from ..words.file_options import FileOptions
from ..words.message_text import some_of


def fit_to_keep(settings: Settings, cached: CachedLogits, on_all: bool) -> Calibrator:
    """Fit a calibrator `on_all` points, else on the calibration points of the first split."""
    fitted: Calibrator = fitted_on(settings, cached, None if on_all else 0)
    origin = cached.details.get("origin", {})
    values: dict[str, Any] = {"takes_": origin.get("values", "logits")}
    if fitted.needs_groups and "groups" in cached.details:
        values["groups_from_"] = settings.benchmark.source.get("groups") or "groups"
    predictions = settings.benchmark.source.get("predictions")
    if predictions is not None:
        values["predictions_from_"] = predictions
    if "class_names" in cached.details:
        values["class_names_"] = np.array(cached.details["class_names"])
    for name, value in values.items():  # learned attributes, which the saved file has, too
        setattr(fitted, name, value)
    return fitted


class AnswerColumns(NamedTuple):
    """Where the answers of some points are in their file."""

    array: str
    """The name of one array, or of one column of lists; "" if each class has a column."""
    order: NDArray[np.int64]
    """The class of each column of that array, [C], a number among the calibrator's classes."""
    columns: Mapping[str, int]
    """The class of each column of a table, by the column's name."""


class Unlabelled(NamedTuple):
    """Some points without labels."""

    logits: NDArray[np.float32]
    """[n, C], logits or logarithms of probabilities."""
    groups: NDArray[np.str_] | None
    """[n]; None: the calibrator has no groups."""
    answers: AnswerColumns
    """Where they came from."""


def kind_taken(calibrator: Calibrator) -> str:
    """What the columns of a file must hold for the calibrator: logits or probabilities."""
    is_logits = str(getattr(calibrator, "takes_", calibrator.inputs)) == "logits"
    return "logits" if is_logits else "probabilities"


def inputs_of(kind: str) -> Inputs:
    """What the rows of a file of this kind are for a calibrator, after `with_logits`."""
    return "log_probabilities" if kind == "probabilities" else "logits"


def loaded(path: Path) -> Calibrator:
    """A saved calibrator that takes the rows of `unlabelled`, or of a stream.

    Raises:
        InputError: the file is no saved calibrator.
    """
    calibrator = Calibrator.load(path)
    calibrator.inputs = inputs_of(kind_taken(calibrator))
    return calibrator


def group_column(calibrator: Calibrator) -> str:
    """The column or array with the group of each point; "" if the calibrator has no groups."""
    has_groups = len(getattr(calibrator, "groups_", ())) > 0
    return str(getattr(calibrator, "groups_from_", "groups" if has_groups else ""))


def class_names_of(calibrator: Calibrator) -> list[str] | None:
    """The names of the classes in the calibrator's order; None if it knows their numbers alone."""
    names = getattr(calibrator, "class_names_", None)
    if names is None and calibrator.classes_.dtype.kind == "U":
        names = calibrator.classes_
    return None if names is None else [str(name) for name in names]


def calibrated(
    calibrator: Calibrator, logits: NDArray[np.float32], groups: NDArray[np.str_] | None = None
) -> NDArray[np.float64]:
    """The probabilities [n, C] of a calibrator that was `loaded`."""
    options = {} if groups is None else {"groups": groups}
    return np.asarray(calibrator.predict_proba(logits, **options))


def unlabelled(
    path: Path, calibrator: Calibrator, file_options: FileOptions, notes: Notes | None = None
) -> Iterator[Unlabelled]:
    """Yield the points of a file for a calibrator, some at a time.

    The file is as `score` takes it, without labels. The columns of a table, and an array with
    `class_names`, are matched with the calibrator's classes by name. For two classes one column is
    enough. `notes` gets what is done otherwise or left out.

    Raises:
        InputError: the file does not fit the calibrator.
    """
    takes, group_name = kind_taken(calibrator), group_column(calibrator)
    predicted = str(getattr(calibrator, "predictions_from_", "")) or None
    file_options = replace(file_options, predictions=file_options.predictions or predicted)
    _check_kind(takes, file_options)
    names: Any = class_names_of(calibrator)
    if names is None:
        names = getattr(calibrator, "feature_names_in_", None)
    numbers = range(calibrator.n_features_in_)
    texts = [str(name) for name in (numbers if names is None else names)]
    classes = CalibratorClasses(texts, names is not None, takes)
    layout: Layout | None = None

    def make(rows: FileColumns, start: int) -> Unlabelled:
        nonlocal layout
        (rows,) = without_ignored([rows], file_options.ignore)
        _check_is_there(rows, group_name, file_options.predictions)
        groups = rows.pop(group_name) if group_name else None  # so that it is no class
        row_notes = list[str]()
        rows = arrays_of(named_by_row(rows, file_options), file_options, row_notes, texts)
        # A few rows of probabilities may all be 0 and 1 by chance, and the last few of logits may
        # look like probabilities.
        is_clear = rows_of(rows) < ENOUGH_ROWS and (takes == "probabilities" or start > 0)
        settled = replace(file_options, values=takes if is_clear else file_options.values)
        if layout is None:  # these are the first rows, which decide for all
            columns = [name for name in rows if name != file_options.predictions]
            layout = layout_for(classes, rows, columns, settled)
        answers = layout.answers_in(rows, settled, row_notes)
        scale = scaled(answers, settled.values, is_for_calibrator=True)
        logits = layout.logits_in_order(answers, scale, settled.values, row_notes)
        are_named = file_options.classes is not None or "class_names" in rows
        if layout.has_names and layout.is_array and layout.single is None and not are_named:
            row_notes.append(f"{_by_place(texts)}; another order: --classes NAME,NAME")
        if notes is not None:
            add_notes(notes, row_notes, path, start, rows)
        if groups is not None:
            groups = text_of(plain_column(groups), len(logits), group_name)
        return Unlabelled(logits, groups, _places(layout, answers))

    used = ("class_names", group_name, file_options.predictions)
    return each_batch(path, file_options, lambda name: name in used, make)


def _check_is_there(rows: FileColumns, group_name: str, predictions: str | None) -> None:
    """Raise `InputError` if rows lack the groups or the predictions that the calibrator needs."""
    if group_name and group_name not in rows:
        message = "not there, and the calibrator patches groups"
        raise InputError(message, field=group_name, fixes="add each case's group")
    if predictions is not None and predictions not in rows:
        message = "not there, and the answers are the confidence in these predictions"
        raise InputError(message, field=predictions, fixes="add each case's prediction")


def _by_place(names: Sequence[str]) -> str:
    """The note on columns without names, for a calibrator that has these names of classes."""
    return f"the columns have no names: they are taken in the calibrator's order, {some_of(names)}"


def note_on_places(path: Path, layout: Layout) -> str | None:
    """A note if the classes of points, of this `layout`, are those of a calibrator by place."""
    names = class_names_of(loaded(path))
    if names is None or set(names) == set(layout.class_names):
        return None
    return _by_place(names)


def _check_kind(takes: str, file_options: FileOptions) -> None:
    """Raise `InputError` if the person names another kind than the calibrator was fitted on."""
    said = {kind: f"--{kind}" for kind in file_options.answers.values()}
    said[file_options.values] = f"--values {file_options.values}"
    for kind in said.keys() - {"auto", takes}:
        option = said[kind]
        message = f"{option}, but the calibrator was fitted on {takes}"
        fixes = [f"name the array or column of {takes}: --{takes} NAME"]
        raise InputError(message, field="values", fixes=fixes)


def _places(layout: Layout, answers: Answers) -> AnswerColumns:
    """Where the answers of these rows are in their file."""
    # The layout has the column of each class, and whoever writes the file needs the reverse.
    order = np.argsort(layout.order_of(answers))
    if layout.is_array:
        return AnswerColumns(answers.name, order, {})
    if layout.single is not None:
        return AnswerColumns("", order, {answers.name: layout.single})
    return AnswerColumns("", order, {name: number for number, name in enumerate(layout.columns)})


def forecaster_of(path: Path, layout: Layout) -> Callable[[NDArray[np.float32]], NDArray[Any]]:
    """What a saved calibrator makes of the logits [n, C] of a stream, of this `layout`.

    Raises:
        InputError: the calibrator is for groups, for other classes, or for another kind of answers.
    """
    calibrator = loaded(path)
    classes = list(layout.class_names)
    if calibrator.needs_groups or group_column(calibrator):
        message = "has patches of groups, which one pass does not read"
        raise InputError(message, file=path, fixes="score its output: utility-calibration apply")
    takes = kind_taken(calibrator)
    if takes != layout.kind:
        message = f"fitted on {takes}, while the cases have {layout.kind}"
        raise InputError(message, file=path, fixes=[f"give {takes}", f"fit it on {layout.kind}"])
    names = class_names_of(calibrator)
    numbers = [str(number) for number in range(len(classes))]
    has_names = set(classes) != set(numbers)
    if names is None and has_names:
        message = f"knows no names of classes, while the cases have {some_of(classes)}"
        fix = "fit it with names: fit(X, names[y], classes=names)"
        raise InputError(message, file=path, fixes=fix)
    names = names or [str(number) for number in range(calibrator.n_features_in_)]
    if len(names) != len(classes) or (has_names and set(names) != set(classes)):
        message = f"fitted on {some_of(names)}, while the cases have {some_of(classes)}"
        raise InputError(message, file=path, fixes="give a calibrator of the same classes")
    # The calibrator has its own order of the classes, and the sums that of the points.
    columns = list(range(len(classes)))
    if set(names) == set(classes):
        columns = [classes.index(name) for name in names]
    back = np.argsort(columns)

    def forecaster(logits: NDArray[np.float32]) -> NDArray[Any]:
        return calibrated(calibrator, logits[:, columns])[:, back]

    return forecaster
