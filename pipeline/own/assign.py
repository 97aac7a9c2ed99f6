"""Say what each column or array of a person's file is: labels, classes, splits, weights, …"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from metrics.validation import InputError, check_logits
from pipeline.own.columns import classes_of_table, with_names, without_ignored
from pipeline.own.labels import (
    Labels,
    Mistakes,
    class_names_of,
    classes_by_place,
    distinct_labels,
    some_of,
)
from pipeline.own.lists import LABELS, arrays_of, has_lists
from pipeline.own.read import kind_of, numbers_of, plain_column

if TYPE_CHECKING:
    import pandas as pd

LIKE_LABELS = (
    *("target", "targets", "truth", "true", "y", "y_true", "class", "true_label", "true_class"),
    *("ground_truth", "gold", "gold_label", "actual", "answer"),
)
"""Other usual names of the labels; one of them is taken, with a note, if nothing else is one."""
WEIGHTS = ("weight", "weights", "sample_weight")
CLUSTERS = ("cluster", "clusters")
LIKE_CLUSTERS = re.compile(
    r"(?:^|[\W_])(?:id|uid|patient|subject|person|user|doc|document|session|image)(?:[\W_]|$)", re.I
)
"""Usual names of what several rows may belong to."""
WHAT_A_TABLE_HOLDS = "correct it, or say which columns are no classes: --ignore NAME,NAME"


@dataclass(frozen=True)
class Choices:
    """What the person says about a file that could mean two things (options of score.py)."""

    values: str = "auto"
    """The kind of the answers: auto, logits or probabilities."""
    groups: str | None = None
    """The column or array that names each point's group; None: `groups`, if there is one."""
    clusters: str | None = None
    """The one that says which points depend on each other; None: `cluster` or `clusters`."""
    classes: str | None = None
    """The columns of the classes: a pattern such as prob_*, or names separated by commas."""
    ignore: str | None = None
    """Columns to leave out: names or patterns separated by commas."""


@dataclass(frozen=True)
class Given:
    """The contents of a file by their purpose; `pipeline.own.check` makes them logits."""

    kind: str | None
    """logits, probabilities, or None if the file does not say."""
    matrix: Any
    """[n, C]; for two classes also [n] or [n, 1], of the class `single`."""
    names: list[str] | None = None
    """Names of the classes in the order of the columns, [C]; None: 0 … C-1."""
    labels: Any = None
    """[n], numbers of the columns, from 0 on."""
    groups: Any = None
    """[n], names of groups, if the file has them."""
    clusters: Any = None
    """[n], names of clusters, if the file has them."""
    splits: dict[str, Any] = field(default_factory=dict)
    """By name: [n], the words calibration and test."""
    tested: NDArray[np.bool_] | None = None
    """[splits, n], True for test points, if `splits` or a second file say so."""
    weights: Any = None
    """[n], if the file has weights."""
    single: int | None = None
    """The class of a single column of answers."""
    notes: tuple[str, ...] = ()
    """What was decided, for the person to read."""


def is_split(name: str) -> bool:
    """Whether a column or array of this name says which points calibrate: split, split_2, …"""
    return re.fullmatch(r"split_?\d*", name, re.IGNORECASE) is not None


def has_role(name: str, choices: Choices) -> bool:
    """Whether a column or array of this name has a purpose beside the classes."""
    known = (*LABELS, *LIKE_LABELS, *WEIGHTS, *CLUSTERS, "groups", "class_names")
    return name.lower() in known or is_split(name) or name in (choices.groups, choices.clusters)


def assigned(
    paths: Sequence[Path], contents: Sequence[Any], choices: Choices, mistakes: Mistakes
) -> Given:
    """The labelled points of a file, or of two, of which the second has the test points.

    Args:
        paths: the files.
        contents: the table or arrays of each, of `pipeline.own.read.read`.
        mistakes: gets what does not keep the rest from being checked.

    Raises:
        InputError: something is missing, or could mean two things; one line with the fix.
    """
    place, advice = " and ".join(map(str, paths)), _advice_on_clusters(contents[0], choices)
    contents = without_ignored(place, contents, choices.ignore)
    if len(paths) == 1:
        given = _assigned(place, contents[0], choices, mistakes)
    else:
        sizes, held = _joined(paths, contents, choices)
        given = _assigned(place, held, choices, mistakes)
        if given.splits:
            raise InputError(f"{paths[0]}: has a `split`; leave it out, or the second file")
        given = replace(given, tested=np.repeat([False, True], sizes)[None])
    return replace(given, notes=(*given.notes, *advice))


def _advice_on_clusters(held: Any, choices: Choices) -> list[str]:
    """A note if values repeat in what looks like the names of patients, documents or images."""
    if choices.clusters is not None or any(str(name).lower() in CLUSTERS for name in held):
        return []
    for name in held:
        values = np.asarray(held[name])
        if not LIKE_CLUSTERS.search(str(name)) or values.ndim != 1 or values.dtype.kind == "f":
            continue
        if name != choices.groups and 1 < len(set(values.tolist())) < len(values):
            return [f"`{name}` repeats: if rows with one value depend, say --clusters {name}"]
    return []


def _joined(
    paths: Sequence[Path], contents: Sequence[Any], choices: Choices
) -> tuple[list[int], Any]:
    """The numbers of points of two files, and their rows in one table or in one set of arrays."""
    import pandas as pd

    arrays = [arrays_of(str(path), held) for path, held in zip(paths, contents, strict=True)]
    tables = [array is None for array in arrays]
    names = [set(with_names(list(held))[0]) for held in contents]
    if tables[0] != tables[1] or names[0] != names[1]:
        what = "form" if tables[0] != tables[1] else "columns or arrays"
        odd = some_of(sorted(names[0] ^ names[1]))
        raise InputError(
            f"{paths[1]}: not the same {what} as in {paths[0]} ({odd}); give both in one form"
        )
    if tables[0]:
        rows = [held[[name for name in contents[0] if name in names[0]]] for held in contents]
        return [len(held) for held in rows], pd.concat(rows, ignore_index=True)
    first, second = (array or {} for array in arrays)
    for name in first:
        if name == "class_names" and first[name].tolist() != second[name].tolist():
            raise InputError(f"{paths[1]}: not the same class names as in {paths[0]}")
        if first[name].shape[1:] != second[name].shape[1:]:
            raise InputError(f"{paths[1]}: {name}: not the same number of columns as in {paths[0]}")
    label = _roles(str(paths[0]), list(first), choices, [])["labels"]
    joined = {
        name: values if name == "class_names" else np.concatenate([values, second[name]])
        for name, values in first.items()
    }
    return [len(first[label]), len(second[label])], joined


def _assigned(path: str, held: Any, choices: Choices, mistakes: Mistakes) -> Given:
    arrays, notes = arrays_of(path, held), list[str]()
    names = list(held)
    roles = _roles(path, names, choices, notes)
    for name in roles.values():
        if not isinstance(held, dict) and has_lists(held[name]):
            raise InputError(
                f"{path}: column `{name}` holds lists or objects; give one entry per row"
            )
    label = roles.pop("labels")
    if arrays is None:
        labels = distinct_labels(plain_column(held[label]), f"{path}: {label}", mistakes)
        roles = {role: name for role, name in roles.items() if name not in labels.texts}
        given = Given(None, None, labels=labels.places)
        with mistakes.kept():
            given = _of_table(path, held, [*roles.values(), label], labels, choices)
        values = {name: plain_column(held[name]) for name in roles.values()}
    else:
        labels, values = distinct_labels(arrays[label], f"{path}: {label}", mistakes), arrays
        given = Given(None, None, labels=labels.places)
        with mistakes.kept():
            given = _of_arrays(path, arrays, labels, choices)
    return replace(
        given,
        groups=values.get(roles.get("groups", "")),
        clusters=values.get(roles.get("clusters", "")),
        weights=values.get(roles.get("weights", "")),
        splits={name: values[name] for name in roles.values() if is_split(name)},
        notes=(*notes, *given.notes),
    )


def _roles(path: str, names: Sequence[str], choices: Choices, notes: list[str]) -> dict[str, str]:
    """The column or array of each purpose; splits have their own names."""
    labels = [name for name in names if name.lower() in LABELS]
    if not labels:
        labels = [name for name in names if name.lower() in LIKE_LABELS]
        notes += [f"`{name}` is taken for the labels" for name in labels]
    if len(labels) != 1:
        what = f"{' and '.join(f'`{name}`' for name in labels)} could be the labels; keep one"
        if not labels:
            what = (
                f"no `label` or `labels` (there are {some_of(names)}); name the labels so; the "
                "first line of a table must name its columns: label, then one per class"
            )
        raise InputError(f"{path}: {what}")
    roles = {name: name for name in names if is_split(name)} | {"labels": labels[0]}
    for role, chosen, usual in (
        ("groups", choices.groups, ("groups",)),
        ("clusters", choices.clusters, CLUSTERS),
        ("weights", None, WEIGHTS),
    ):
        if chosen is not None and chosen not in names:
            raise InputError(
                f"{path}: nothing is called `{chosen}` for {role}; there are {some_of(names)}"
            )
        found = [name for name in names if name.lower() in usual]
        if chosen is None and len(found) > 1:
            raise InputError(f"{path}: {' and '.join(found)} are both {role}; keep one")
        if chosen is not None or found:
            roles[role] = chosen or found[0]
    return roles


def _of_table(
    path: str, table: pd.DataFrame, roles: Sequence[str], labels: Labels, choices: Choices
) -> Given:
    """Answers as one column per class."""
    found = classes_of_table(path, table, roles, labels, choices.classes)
    names, notes = found.names, found.notes
    matrix = numbers_of(path, table, found.columns, WHAT_A_TABLE_HOLDS, -np.inf)
    if names is None:
        count = len(found.columns)
        codes, names, more = classes_by_place(labels, count, None, matrix, f"{path}: labels")
        names, notes = names or found.columns, (*notes, *more)
    else:
        codes = np.array([names.index(text) for text in labels.texts])[labels.places]
    return Given(None, matrix, names, codes, single=found.single, notes=notes)


def _of_arrays(path: str, arrays: dict[str, Any], labels: Labels, choices: Choices) -> Given:
    """Answers as one array; its columns have no names, or those of `class_names`."""
    kind, name = matrix_of(path, arrays, choices.values)
    matrix, n = arrays[name], len(labels.places)
    if matrix.ndim not in (1, 2) or not matrix.size:
        check_logits(matrix, f"{path}: {name}")
    if matrix.ndim == 2 and matrix.shape[0] != matrix.shape[1] == n:
        raise InputError(
            f"{path}: {name}: {list(matrix.shape)} for {n} labels, which looks transposed; give "
            "one row per point"
        )
    is_single = matrix.ndim == 1 or matrix.shape[1:] == (1,)
    columns = 2 if is_single else matrix.shape[-1]
    names = class_names_of(path, arrays, columns, choices.classes)
    codes, names, notes = classes_by_place(labels, columns, names, matrix, f"{path}: labels")
    return Given(kind, matrix, names, codes, single=1 if is_single else None, notes=notes)


def matrix_of(path: str, arrays: dict[str, Any], values: str) -> tuple[str, str]:
    """Kind and name of the array of answers."""
    found = [(kind, name) for name in arrays if (kind := kind_of(name)) is not None]
    if values != "auto":
        found = [(kind, name) for kind, name in found if kind == values] or [
            (values, name) for _, name in found if len(found) == 1 and values == "logits"
        ]
    exact = [(kind, name) for kind, name in found if kind == name]
    if len(found) == 1 or (len(exact) == 1 and len({kind for kind, _ in found}) == 1):
        return (exact or found)[0]
    held = f"(it holds {some_of(list(arrays)) or 'nothing'})"
    if not found:
        wanted = "`logits` or `probabilities`" if values == "auto" else f"`{values}`"
        raise InputError(f"{path}: no array {wanted} {held}; add one, [n, classes]")
    raise InputError(
        f"{path}: both `{found[0][1]}` and `{found[1][1]}`; choose: --values logits or --values "
        "probabilities, or keep one of them"
    )
