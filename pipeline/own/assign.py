"""Say what each column or array of a person's file is: labels, classes, splits, weights, …"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from utility_calibration.metrics.archive import array_names, read_arrays
from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.layout import as_rows, classes_axis

from .cells import FileColumns, Labels, are_arrays, distinct_labels, numbers_of, plain_column
from .choices import MOST, Choices, matching
from .classes import classes_by_name, refuse_two_models
from .confidence import by_predictions, check_meaning
from .file_points import FilePoints, Known
from .known_classes import answers_of_classes
from .lists import arrays_of, has_lists, named_by_row
from .message_text import IGNORE, kept, some_of
from .places import check_start, classes_by_place, of_array
from .splits import is_empty, only_training, without_training
from .usual_names import LABELS, LIKE_CLUSTERS, LIKE_LABELS, USUAL, is_split, spelt, with_names


def assigned(
    paths: Sequence[Path],
    contents: Sequence[FileColumns],
    choices: Choices,
    mistakes: list[InputError],
) -> FilePoints:
    """The labelled points of a file, or of two, of which the second has the test points.

    `contents` is what pipeline/own/read.py found in each of `paths`; `mistakes` gets what does
    not keep the rest from being checked. InputError: something is missing or has two meanings.
    """
    advice = _advice_on_clusters(paths[0], contents[0], choices)
    names = dict.fromkeys(
        name
        for path, held in zip(paths, contents, strict=True)
        for name in (array_names(path) if are_arrays(held) else held)
    )
    gone = matching(choices.ignore or "", list(names), None)
    are_tables = not any(map(are_arrays, contents))
    notes = list[str]()
    contents = [without_training(held, notes) for held in contents]
    for held in contents:
        if is_empty(held):
            raise only_training()
    contents = without_ignored(contents, choices.ignore)
    contents = [prepared(held, choices, notes) for held in contents]
    for held in contents if choices.ignore_label is not None else ():
        if not len(held[labels_of(list(held), choices, [])]):
            message = f"no point is left without {choices.ignore_label}"
            raise InputError(message, field="--ignore-label", fixes="name fewer labels")
    sizes, held = ([], contents[0]) if len(paths) == 1 else _joined(paths[0], contents, choices)
    others = [name for name in names if name not in gone and (name in held or not are_tables)]
    given = points_in(held, choices, mistakes, others)
    if sizes and given.splits:
        fixes = ["leave it out", "leave out the second file"]
        raise InputError("in both files", field="split", fixes=fixes)
    tested = np.repeat([False, True], sizes)[None] if sizes else None
    return replace(given, tested=tested, notes=(*notes, *given.notes, *advice))


def without_ignored(
    contents: Sequence[FileColumns], ignore: str | None, may_lack: bool = False
) -> list[FileColumns]:
    """What --ignore leaves of tables and arrays.

    may_lack: for a shard of several, of which another one may have such a column.

    Raises:
        InputError: no table has a column that is to be ignored.
    """
    names = list(dict.fromkeys(name for held in contents for name in held))
    flag = None if may_lack or all(map(are_arrays, contents)) else "--ignore"
    gone = matching(ignore or "", names, flag)
    return [{name: of for name, of in held.items() if name not in gone} for held in contents]


def prepared(
    held: FileColumns, choices: Choices, notes: list[str], known: Sequence[str] | None = None
) -> FileColumns:
    """Points as rows, lists of answers as arrays, without points whose label is to be ignored.

    `known` are the classes, where first rows say them.
    """
    rows = _flat(named_by_row(held, choices), choices, notes)
    return _without_labels(arrays_of(rows, choices, notes, known), choices, notes)


def _flat(held: FileColumns, choices: Choices, notes: list[str]) -> FileColumns:
    """Points of sequences or images as rows, as the metrics take them (metrics/layout.py).

    With labels [B, T] logits [B, T, C] or [B, C, T] become [B T, C].
    """
    label = labels_of(list(held), choices, [])
    shape = np.shape(held[label]) if are_arrays(held) else ()
    if len(shape) < 2:
        return held
    rows: FileColumns = {}
    for name in choices.kinds_of(held):
        of_scores = np.shape(held[name])
        axis = classes_axis(of_scores, shape, name) if len(of_scores) > 2 else None
        if axis is not None:
            rows[name] = as_rows(held[name], axis)
    if not rows:
        return held
    first = next(iter(rows))
    notes.append(
        f"`{first}` of shape {list(np.shape(held[first]))}: each of the "
        f"{int(np.prod(shape)):,} labels is a point; if those of one sequence or image depend on "
        "each other, add `clusters` of the labels' shape"
    )
    for name, values in held.items():
        if np.shape(values) == shape:
            rows[name] = np.reshape(values, -1)
    return held | rows


def _without_labels(held: FileColumns, choices: Choices, notes: list[str]) -> FileColumns:
    """The points whose label is none of those that --ignore-label names."""
    if choices.ignore_label is None:
        return held
    label = labels_of(list(held), choices, [])
    labels = distinct_labels(plain_column(held[label]), label, [])
    gone = {text.strip() for text in choices.ignore_label.split(",")}
    kept = np.isin(labels.places, [k for k, text in enumerate(labels.texts) if text not in gone])
    notes.append(f"{np.sum(~kept):,} points with the label {choices.ignore_label} are left out")
    n = len(kept)
    return {
        name: of if (name == "class_names" and are_arrays(held)) or len(of) != n else of[kept]
        for name, of in held.items()
    }


def _advice_on_clusters(path: Path, held: Any, choices: Choices) -> list[str]:
    """A note if values repeat in what looks like the names of patients, documents or images."""
    if choices.clusters is not None or any(spelt(name) in USUAL["clusters"] for name in held):
        return []
    if are_arrays(held):  # arrays without a purpose have not been read; some cannot be
        with suppress(InputError):
            held = read_arrays(path, [*filter(LIKE_CLUSTERS.search, array_names(path))])
    purposes = {choices.groups, choices.labels, *choices.answers}
    with suppress(InputError):
        purposes.add(labels_of(list(held), choices, []))
    for name in filter(LIKE_CLUSTERS.search, held):
        if has_lists(held[name]) or name in purposes:
            continue
        values = np.asarray(held[name])
        may_repeat = values.ndim == 1 and values.dtype.kind != "f"
        if may_repeat and 1 < len(set(values.tolist())) < len(values):
            return [f"`{name}` repeats: if rows with one value depend, say --clusters {name}"]
    return []


def _joined(
    path: Path, contents: Sequence[FileColumns], choices: Choices
) -> tuple[list[int], FileColumns]:
    """The numbers of points of two files, and their rows together."""
    import pandas as pd

    (first, second), (names, others) = contents, [with_names(held) for held in contents]
    is_alike = are_arrays(first) == are_arrays(second)
    if not is_alike or set(names) != set(others):
        what, odd = "columns or arrays" if is_alike else "form", sorted({*names} ^ {*others})
        message = f"not the same {what} as in {path} ({some_of(odd)})"
        raise InputError(message, field="--test", fixes="give both in one form")
    label = roles_of(names, choices, [])["labels"]
    held: FileColumns = {}
    for name in names:
        pair = [first[name], second[name]]
        if name == "class_names" and pair[0].tolist() != pair[1].tolist():
            raise InputError(f"not those of {path}", field=name, fixes="give the same classes")
        if pair[0].shape[1:] != pair[1].shape[1:]:
            message = f"not the same number of columns as in {path}"
            raise InputError(message, field=name, fixes="give the same classes")
        join: Any = np.concatenate if isinstance(pair[0], np.ndarray) else pd.concat
        held[name] = pair[0] if name == "class_names" else join(pair)
    return [len(of[label]) for of in contents], held


def points_in(
    held: FileColumns,
    choices: Choices,
    mistakes: list[InputError],
    names: Iterable[str] = (),
    known: Known | None = None,
) -> FilePoints:
    """What is what in a file of `names`, in two that are joined, or in rows of `known` classes."""
    notes = list[str]()
    for name, kind in choices.answers.items():
        if not are_arrays(held):  # one column of numbers
            choices = replace(choices, classes=name, values=kind)
    roles = roles_of(list(held), choices, notes)
    lists = [name for name in roles.values() if has_lists(held[name])]
    if lists:
        several = ", several labels per point (multi-label)," * (lists[0] == roles["labels"])
        message, fix = f"lists or objects{several}", "give one entry per row"
        raise InputError(message, column=lists[0], fixes=fix)
    of = {role: plain_column(held[name]) for role, name in roles.items()}
    label, used = roles.pop("labels"), [*roles.values(), "class_names"]
    labels = distinct_labels(of["labels"], label, mistakes)
    if not are_arrays(held):
        classes = labels if known is None else known.classes
        roles = {role: name for role, name in roles.items() if name not in classes.texts}
    else:
        unused = [k for k in names if k not in (label, *used, *choices.kinds_of(held))]
        if unused:
            notes.append(f"not used: {some_of(unused)} (groups of points: --groups NAME)")
    of = {role: of[role] for role in roles}
    given = FilePoints(None, None, labels=labels.places)
    with kept(mistakes):
        columns = [name for name in held if name not in (label, *roles.values())]
        if known is None:
            given = answers_of(held, columns, labels, choices)
        else:
            codes = known.codes_of(labels)
            answers = answers_of_classes(held, columns, known.classes, choices, None)
            order = np.asarray(answers.order)
            is_moved = bool((order != np.arange(len(order))).any())
            if is_moved and not set(labels.texts) <= set(known.classes.texts):
                message, fix = "numbers of columns that have another order", "class_names[labels]"
                raise InputError(message, field="labels", fixes=f"save the names: {fix}")
            if not known.classes.is_text:  # few first rows do not show where labels start
                check_start(answers.matrix, codes, known.seen, len(known.classes.texts))
            given = replace(answers, labels=codes)
    first = np.unique(labels.places, return_index=True)[1]
    return replace(
        given,
        codes=dict(zip(labels.texts, given.labels[first].tolist(), strict=True)),
        groups=of.get("groups"),
        clusters=of.get("clusters"),
        weights=of.get("weights"),
        splits={name: values for name, values in of.items() if is_split(name)},
        notes=(*notes, *given.notes),
    )


def labels_of(names: Sequence[str], choices: Choices, notes: list[str]) -> str:
    """The column or array of the labels."""
    if choices.labels is not None:
        return _there(choices.labels, names, "--labels")
    labels = [name for name in names if spelt(name) in LABELS]
    if not labels:
        labels = [name for name in names if spelt(name) in LIKE_LABELS]
        notes += [f"`{name}` is taken for the labels" for name in labels]
    if not labels:
        message = f"no `label` or `labels` (there are {some_of(names, MOST)})"
        fix = "name one (--labels NAME); the first line of a table must name its columns"
        raise InputError(message, field="labels", fixes=fix)
    if len(labels) > 1:
        message = f"{' and '.join(f'`{name}`' for name in labels)} could be the labels"
        fixes = [f"choose: --labels {name}" for name in labels]
        raise InputError(message, field="labels", fixes=fixes)
    return labels[0]


def _there(name: str, names: Sequence[str], option: str) -> str:
    """A name that the person gives, if it is there."""
    if name not in names:
        message, fix = f"nothing is called {name}", f"name one of {some_of(names)}"
        raise InputError(message, field=option, fixes=fix)
    return name


def roles_of(names: Sequence[str], choices: Choices, notes: list[str]) -> dict[str, str]:
    """The column or array of each purpose; splits have their own names."""
    roles = {name: name for name in names if is_split(name)} | {
        "labels": labels_of(names, choices, notes)
    }
    for role, usual in USUAL.items():
        chosen = getattr(choices, role, None)
        if chosen is not None:
            fitting = [_there(chosen, names, f"--{role}")]
        else:
            fitting = [name for name in names if spelt(name) in usual]
        if len(fitting) > 1:
            fixes = [f"leave one out: --ignore {name}" for name in fitting]
            raise InputError(f"{' and '.join(fitting)} are both {role}", field=role, fixes=fixes)
        if fitting:
            roles[role] = fitting[0]
    return roles


def answers_of(
    held: FileColumns, columns: list[str], labels: Labels, choices: Choices
) -> FilePoints:
    """The answers in some columns of a table, or in the one array of answers, as classes.

    `labels` of the result are the places of the given ones among the classes.

    Raises:
        InputError: which column is which class is not clear.
    """
    if are_arrays(held):
        given = of_array(held, labels, choices)
        name = next(iter(choices.kinds_of(held)))
    else:
        given = _of_columns(held, columns, labels, choices)
        name = given.columns[0]
    check_meaning(given, held, name, labels.texts, choices)
    return by_predictions(given, held, name, choices)


def _of_columns(
    held: FileColumns, columns: list[str], labels: Labels, choices: Choices
) -> FilePoints:
    """The answers in some columns of a table."""
    notes = list[str]()
    columns, names, single = classes_by_name(held, columns, labels, choices.classes, notes)
    matrix = numbers_of(held, columns, ["correct it", IGNORE], -np.inf)
    if names is None:
        codes, names = classes_by_place(labels, len(columns), columns, matrix, notes, True)
    else:
        place = {name: number for number, name in enumerate(names)}
        codes = np.array([place[text] for text in labels.texts])[labels.places]
    if choices.values == "auto" and choices.classes is None and not labels.is_text:
        refuse_two_models(columns, matrix, codes)
    return FilePoints(
        None, matrix, names, codes, columns=tuple(columns), single=single, notes=tuple(notes)
    )
