"""Say what each column or array of a person's file is: labels, classes, splits, weights, …"""

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.archive import array_names, read_arrays
from utility_calibration.metrics.validation import InputError, check_logits

from .cells import (
    Held,
    Labels,
    are_arrays,
    arrays_of,
    cut_off,
    distinct_labels,
    has_lists,
    kept,
    kind_and_name,
    numbers_of,
    plain_column,
    some_of,
    text_of,
)
from .choices import LABELS, LIKE_LABELS, Choices, spelt
from .classes import (
    classes_by_name,
    classes_by_place,
    matching,
    refuse_two_models,
    with_names,
)

USUAL = {
    "groups": ("groups",),
    "clusters": ("cluster", "clusters"),
    "weights": ("weight", "weights", "sample_weight", "sample_weights"),
}
"""Names of the columns or arrays of other purposes."""
LIKE_CLUSTERS = re.compile(
    r"(?:^|[\W_])(?:id|uid|patient|subject|person|user|doc|document|session|image)(?:[\W_]|$)", re.I
)
"""Usual names of what several rows may belong to."""


@dataclass(frozen=True)
class Given:
    """The contents of a file by their purpose; `pipeline/own/check.py` makes them logits.

    kind: logits, probabilities, or None if the file does not say. matrix: [n, C]; for two classes
    also [n] or [n, 1], of the class `single`. names: of the classes in the order of the columns,
    [C]; None: 0 … C-1. labels: [n], numbers of the columns, from 0 on. groups, clusters, weights:
    [n], if the file has them. splits: by name [n], the words calibration and test. tested:
    [splits, n], True for test points, if `splits` or a second file say so. notes: what was decided,
    for the person to read.
    """

    kind: str | None
    matrix: Any
    names: list[str] | None = None
    labels: Any = None
    groups: Any = None
    clusters: Any = None
    splits: dict[str, Any] = field(default_factory=dict)
    tested: NDArray[np.bool_] | None = None
    weights: Any = None
    single: int | None = None
    notes: tuple[str, ...] = ()


def is_split(name: str) -> bool:
    """Whether a column or array of this name says which points calibrate: split, split_2, …"""
    return re.fullmatch(r"split_?\d*", name, re.IGNORECASE) is not None


def has_role(name: str, choices: Choices) -> bool:
    """Whether a column or array of this name has a purpose beside the classes."""
    known = (*LABELS, *LIKE_LABELS, *sum(USUAL.values(), ()), "class_names")
    chosen = (choices.labels, choices.groups, choices.clusters)
    return spelt(name) in known or is_split(name) or name in chosen


def assigned(
    paths: Sequence[Path], contents: Sequence[Held], choices: Choices, mistakes: list[InputError]
) -> Given:
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
    others = [name for name in names if name not in gone]
    notes = list[str]()
    contents = without_ignored(contents, choices.ignore)
    contents = [prepared(held, choices, notes) for held in contents]
    for name, kind in choices.answers.items():
        if not any(map(are_arrays, contents)):  # one column of numbers
            choices = replace(choices, classes=name, values=kind)
    sizes, held = ([], contents[0]) if len(paths) == 1 else _joined(paths[0], contents, choices)
    given = _assigned(held, others, choices, mistakes)
    if sizes and given.splits:
        raise InputError("`split` in both files; leave it out, or the second file")
    tested = np.repeat([False, True], sizes)[None] if sizes else None
    return replace(given, tested=tested, notes=(*notes, *given.notes, *advice))


def without_ignored(contents: Sequence[Held], ignore: str | None) -> list[Held]:
    """What --ignore leaves of tables and arrays; InputError: no table has such a column."""
    names = list(dict.fromkeys(name for held in contents for name in held))
    option = None if all(map(are_arrays, contents)) else "--ignore"
    gone = matching(ignore or "", names, option)
    return [{name: of for name, of in held.items() if name not in gone} for held in contents]


def prepared(held: Held, choices: Choices, notes: list[str]) -> Held:
    """Points as rows, lists of answers as arrays, without points whose label is to be ignored."""
    return _without_labels(arrays_of(_flat(held, choices, notes), choices, notes), choices, notes)


def _flat(held: Held, choices: Choices, notes: list[str]) -> Held:
    """Points of sequences or images as rows: logits [B, T, C] with labels [B, T] are [B T, C]."""
    label = labels_of(list(held), choices, [])
    shape = np.shape(held[label]) if are_arrays(held) else ()
    matrices = [name for name in choices.kinds_of(held) if np.shape(held[name])[:-1] == shape]
    if len(shape) < 2 or not matrices:
        return held
    notes.append(
        f"`{matrices[0]}` of shape {list(np.shape(held[matrices[0]]))}: each of the "
        f"{int(np.prod(shape)):,} labels is a point; if those of one sequence or image depend on "
        "each other, add `clusters` of the labels' shape"
    )
    axes = {name: np.shape(of)[: len(shape)] == shape for name, of in held.items()}
    tail = {name: np.shape(of)[len(shape) :] for name, of in held.items()}
    return {n: np.reshape(of, (-1, *tail[n])) if axes[n] else of for n, of in held.items()}


def _without_labels(held: Held, choices: Choices, notes: list[str]) -> Held:
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
    for name in filter(LIKE_CLUSTERS.search, held):
        if has_lists(held[name]):
            continue
        values = np.asarray(held[name])
        may_repeat = values.ndim == 1 and values.dtype.kind != "f" and name != choices.groups
        if may_repeat and 1 < len(set(values.tolist())) < len(values):
            return [f"`{name}` repeats: if rows with one value depend, say --clusters {name}"]
    return []


def _joined(path: Path, contents: Sequence[Held], choices: Choices) -> tuple[list[int], Held]:
    """The numbers of points of two files, and their rows together."""
    import pandas as pd

    (first, second), (names, others) = contents, [with_names(held) for held in contents]
    is_alike = are_arrays(first) == are_arrays(second)
    if not is_alike or set(names) != set(others):
        what, odd = "columns or arrays" if is_alike else "form", sorted({*names} ^ {*others})
        told = f"not the same {what} as in {path} ({some_of(odd)})"
        raise InputError(f"{told}; give both in one form")
    label = roles_of(names, choices, [])["labels"]
    held: Held = {}
    for name in names:
        pair = [first[name], second[name]]
        if name == "class_names" and pair[0].tolist() != pair[1].tolist():
            raise InputError(f"not the same class names as in {path}")
        if pair[0].shape[1:] != pair[1].shape[1:]:
            raise InputError(f"{name}: not the same number of columns as in {path}")
        join: Any = np.concatenate if isinstance(pair[0], np.ndarray) else pd.concat
        held[name] = pair[0] if name == "class_names" else join(pair)
    return [len(of[label]) for of in contents], held


def _assigned(
    held: Held, names: Iterable[str], choices: Choices, mistakes: list[InputError]
) -> Given:
    """What is what in a file, or in two that are joined; the file has all `names`."""
    notes = list[str]()
    roles = roles_of(list(held), choices, notes)
    if lists := [name for name in roles.values() if has_lists(held[name])]:
        several = " (several labels per point, multi-label)" * (lists[0] == roles["labels"])
        told = f"column `{lists[0]}` holds lists or objects{several}"
        raise InputError(f"{told}; give one entry per row")
    of = {role: plain_column(held[name]) for role, name in roles.items()}
    label, used = roles.pop("labels"), [*roles.values(), "class_names"]
    labels = distinct_labels(of["labels"], label, mistakes)
    if not are_arrays(held):
        roles = {role: name for role, name in roles.items() if name not in labels.texts}
    elif unused := [k for k in names if k not in (label, *used, *choices.kinds_of(held))]:
        notes.append(f"not used: {some_of(unused)} (groups of points: --groups NAME)")
    of = {role: of[role] for role in roles}
    given = Given(None, None, labels=labels.places)
    with kept(mistakes):
        columns = [name for name in held if name not in (label, *roles.values())]
        given = answers_of(held, columns, labels, choices)
    return replace(
        given,
        groups=of.get("groups"),
        clusters=of.get("clusters"),
        weights=of.get("weights"),
        splits={name: values for name, values in of.items() if is_split(name)},
        notes=(*notes, *given.notes),
    )


def labels_of(names: Sequence[str], choices: Choices, notes: list[str]) -> str:
    """The column or array of the labels."""
    if choices.labels is not None:
        if choices.labels not in names:
            raise InputError(
                f"--labels: nothing is called {choices.labels}; there are {some_of(names)}"
            )
        return choices.labels
    labels = [name for name in names if spelt(name) in LABELS]
    if not labels:
        labels = [name for name in names if spelt(name) in LIKE_LABELS]
        notes += [f"`{name}` is taken for the labels" for name in labels]
    if not labels:
        fix = "name one (--labels NAME); the first line of a table must name its columns"
        raise InputError(f"no `label` or `labels` (there are {some_of(names)}); {fix}")
    if len(labels) > 1:
        told = " and ".join(f"`{name}`" for name in labels)
        raise InputError(f"{told} could be the labels; choose: --labels {labels[0]}, or another")
    return labels[0]


def roles_of(names: Sequence[str], choices: Choices, notes: list[str]) -> dict[str, str]:
    """The column or array of each purpose; splits have their own names."""
    roles = {name: name for name in names if is_split(name)} | {
        "labels": labels_of(names, choices, notes)
    }
    for role, usual in USUAL.items():
        chosen = getattr(choices, role, None)
        if chosen is not None and chosen not in names:
            raise InputError(f"nothing is called `{chosen}` for {role}; there are {some_of(names)}")
        found = [name for name in names if spelt(name) in usual] if chosen is None else [chosen]
        if len(found) > 1:
            raise InputError(f"{' and '.join(found)} are both {role}; keep one")
        if found:
            roles[role] = found[0]
    return roles


def answers_of(
    held: Held, columns: list[str], labels: Labels, choices: Choices, kind: str | None = None
) -> Given:
    """The answers in some columns of a table, or in the one array of answers, as classes.

    `labels` of the result are the places of the given ones among the classes. `kind` is that of the
    answers, if it is known. InputError: which column is which class is not clear.
    """
    if are_arrays(held):
        return _of_arrays(held, labels, choices, kind)
    notes = list[str]()
    columns, names, single = classes_by_name(held, columns, labels, choices.classes, notes)
    fix = "correct it, or say which columns are no classes: --ignore NAME,NAME"
    matrix = numbers_of(held, columns, fix, -np.inf)
    if names is None:
        codes, names = classes_by_place(labels, len(columns), columns, matrix, notes, True)
    else:
        codes = np.array([names.index(text) for text in labels.texts])[labels.places]
    if choices.values == "auto" and choices.classes is None and not labels.is_text:
        refuse_two_models(columns, matrix, codes)
    return Given(kind, matrix, names, codes, single=single, notes=tuple(notes))


def _of_arrays(arrays: Held, labels: Labels, choices: Choices, kind: str | None) -> Given:
    """Answers as one array; its columns have no names, or those of --classes or `class_names`."""
    kind, name = kind_and_name(arrays, choices, kind or choices.values)
    matrix, n = arrays[name], len(labels.places)
    if matrix.dtype.kind in "bV":  # booleans; an array with named fields
        raise InputError(f"{name}: of {cut_off(str(matrix.dtype))}; give numbers, [n, classes]")
    if matrix.ndim not in (1, 2) or not matrix.size:
        check_logits(matrix, name)
    if matrix.ndim == 2 and matrix.shape[0] != matrix.shape[1] == n and not labels.are_known:
        told = f"{list(matrix.shape)} for {n} labels, which looks transposed"
        raise InputError(f"{name}: {told}; give one row per point")
    single = 1 if matrix.ndim == 1 or matrix.shape[1] == 1 else None
    columns, names, notes = 2 if single else matrix.shape[1], None, list[str]()
    if choices.classes is not None:
        if "*" in choices.classes:
            raise InputError("--classes: an array has no columns; name all its classes")
        names = text_of(choices.classes.split(","), columns, "--classes").tolist()
    elif "class_names" in arrays:
        names = text_of(arrays["class_names"], columns, "class_names").tolist()
        if len(set(names)) < columns:
            raise InputError("class_names: one is repeated; give each class its own")
    if labels.are_known and names is None:
        codes, names = labels.places, labels.texts
    else:
        codes, names = classes_by_place(labels, columns, names, matrix, notes)
    return Given(kind, matrix, names, codes, single=single, notes=tuple(notes))
