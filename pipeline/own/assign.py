"""Say what each column or array of a person's file is: labels, classes, splits, weights, …"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.archive import array_names, read_arrays
from metrics.validation import InputError, check_logits
from pipeline.own.arrays import arrays_of, coded, has_lists, matrix_of, names_of
from pipeline.own.cells import (
    Labels,
    Mistakes,
    cut_off,
    distinct_labels,
    numbers_of,
    plain_column,
    some_of,
)
from pipeline.own.classes import classes_of_table, matching, refuse_two_models, with_names
from pipeline.own.read import LABELS, kind_of

LIKE_LABELS = (
    *("target", "targets", "truth", "true", "y", "y_true", "class", "true_label", "true_class"),
    *("ground_truth", "gold", "gold_label", "actual", "answer"),
)
"""Other usual names of the labels; one of them is taken, with a note, if nothing else is one."""
WEIGHTS = ("weight", "weights", "sample_weight", "sample_weights")
CLUSTERS = ("cluster", "clusters")
LIKE_CLUSTERS = re.compile(
    r"(?:^|[\W_])(?:id|uid|patient|subject|person|user|doc|document|session|image)(?:[\W_]|$)", re.I
)
"""Usual names of what several rows may belong to."""


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
    advice = _advice_on_clusters(paths[0], contents[0], choices)
    contents = without_ignored(contents, choices.ignore)
    sizes, held = ([], contents[0]) if len(paths) == 1 else _joined(paths, contents, choices)
    names = array_names(paths[0]) if isinstance(contents[0], dict) else list(held)
    (others,) = without_ignored([dict.fromkeys(names)], choices.ignore)
    given = _assigned(held, others, choices, mistakes)
    if sizes and given.splits:
        raise InputError("`split` in both files; leave it out, or the second file")
    tested = np.repeat([False, True], sizes)[None] if sizes else None
    return replace(given, tested=tested, notes=(*given.notes, *advice))


def without_ignored(contents: Sequence[Any], ignore: str | None) -> list[Any]:
    """Tables, or arrays by name, without what --ignore names: whatever it would have been.

    Raises:
        InputError: no table has such a column. Other arrays of an npz have not even been read.
    """
    names = list(dict.fromkeys(str(name) for held in contents for name in held))
    has_tables = not all(isinstance(held, dict) for held in contents)
    gone = matching(ignore or "", names, "--ignore" if has_tables else None)
    return [
        {name: of for name, of in held.items() if name not in gone}
        if isinstance(held, dict)
        else held[[name for name in held if name not in gone]]
        for held in contents
    ]


def _advice_on_clusters(path: Path, held: Any, choices: Choices) -> list[str]:
    """A note if values repeat in what looks like the names of patients, documents or images."""
    if choices.clusters is not None or any(str(name).lower() in CLUSTERS for name in held):
        return []
    if isinstance(held, dict):  # arrays without a purpose have not been read; some cannot be
        with suppress(InputError):
            held = read_arrays(path, [*filter(LIKE_CLUSTERS.search, array_names(path))])
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

    arrays = [arrays_of(held) for held in contents]
    tables = [array is None for array in arrays]
    names = [set(with_names(list(held))[0]) for held in contents]
    if tables[0] != tables[1] or names[0] != names[1]:
        what = "form" if tables[0] != tables[1] else "columns or arrays"
        odd = some_of(sorted(names[0] ^ names[1]))
        raise InputError(f"not the same {what} as in {paths[0]} ({odd}); give both in one form")
    if tables[0]:
        rows = [held[[name for name in contents[0] if name in names[0]]] for held in contents]
        return [len(held) for held in rows], pd.concat(rows, ignore_index=True)
    first, second = (array or {} for array in arrays)
    for name in first:
        if name == "class_names" and first[name].tolist() != second[name].tolist():
            raise InputError(f"not the same class names as in {paths[0]}")
        if first[name].shape[1:] != second[name].shape[1:]:
            raise InputError(f"{name}: not the same number of columns as in {paths[0]}")
    label = _roles(list(first), choices, [])["labels"]
    joined = {
        name: values if name == "class_names" else np.concatenate([values, second[name]])
        for name, values in first.items()
    }
    return [len(first[label]), len(second[label])], joined


def _assigned(held: Any, names: Sequence[str], choices: Choices, mistakes: Mistakes) -> Given:
    """What is what in one table, or in one set of arrays, of which the file has all `names`."""
    notes = list[str]()
    roles = _roles(list(held), choices, notes)
    for name in roles.values():
        if not isinstance(held, dict) and has_lists(held[name]):
            raise InputError(f"column `{name}` holds lists or objects; give one entry per row")
    label = roles.pop("labels")
    arrays = arrays_of(held)
    of = (
        {name: plain_column(held[name]) for name in (label, *roles.values())}
        if arrays is None
        else arrays
    )
    labels = distinct_labels(of[label], label, mistakes)
    if arrays is None:
        roles = {role: name for role, name in roles.items() if name not in labels.texts}
    else:
        used = (label, *roles.values(), "class_names", *filter(kind_of, names))
        if unused := [name for name in names if name not in used]:
            notes.append(f"not used: {some_of(unused)} (groups of points: --groups NAME)")
    given = Given(None, None, labels=labels.places)
    with mistakes.kept():
        columns = [name for name in held if name not in (label, *roles.values())]
        given = answers_of(held if arrays is None else arrays, columns, labels, choices)
    return replace(
        given,
        groups=of.get(roles.get("groups", "")),
        clusters=of.get(roles.get("clusters", "")),
        weights=of.get(roles.get("weights", "")),
        splits={name: of[name] for name in roles.values() if is_split(name)},
        notes=(*notes, *given.notes),
    )


def _roles(names: Sequence[str], choices: Choices, notes: list[str]) -> dict[str, str]:
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
        raise InputError(what)
    roles = {name: name for name in names if is_split(name)} | {"labels": labels[0]}
    for role, chosen, usual in (
        ("groups", choices.groups, ("groups",)),
        ("clusters", choices.clusters, CLUSTERS),
        ("weights", None, WEIGHTS),
    ):
        if chosen is not None and chosen not in names:
            raise InputError(f"nothing is called `{chosen}` for {role}; there are {some_of(names)}")
        found = [name for name in names if name.lower() in usual]
        if chosen is None and len(found) > 1:
            raise InputError(f"{' and '.join(found)} are both {role}; keep one")
        if chosen is not None or found:
            roles[role] = chosen or found[0]
    return roles


def answers_of(
    held: Any, columns: list[str], labels: Labels, choices: Choices, kind: str | None = None
) -> Given:
    """The answers in some columns of a table, or in the one array of answers, as classes.

    `labels` of the result are the places of the given ones among the classes.

    Args:
        kind: of the answers, if it is known.

    Raises:
        InputError: which column is which class is not clear; one line with the fix.
    """
    arrays = arrays_of(held)
    if arrays is not None:
        return _of_arrays(arrays, labels, choices, kind)
    found = classes_of_table(held, columns, labels, choices.classes)
    fix = "correct it, or say which columns are no classes: --ignore NAME,NAME"
    matrix, names, notes = numbers_of(held, found.columns, fix, -np.inf), found.names, found.notes
    if names is None:
        codes, names, more = coded(labels, len(found.columns), found.columns, matrix)
        notes = (*notes, *more)
    else:
        codes = np.array([names.index(text) for text in labels.texts])[labels.places]
    if choices.values == "auto" and choices.classes is None and not labels.is_text:
        refuse_two_models(found.columns, matrix, codes)
    return Given(kind, matrix, names, codes, single=found.single, notes=notes)


def _of_arrays(arrays: dict[str, Any], labels: Labels, choices: Choices, kind: str | None) -> Given:
    """Answers as one array; its columns have no names, or those of `class_names`."""
    kind, name = matrix_of(arrays, kind or choices.values)
    matrix, n = arrays[name], len(labels.places)
    if matrix.dtype.kind in "bV":  # booleans; an array with named fields
        raise InputError(f"{name}: of {cut_off(str(matrix.dtype))}; give numbers, [n, classes]")
    if matrix.ndim not in (1, 2) or not matrix.size:
        check_logits(matrix, name)
    if matrix.ndim == 2 and matrix.shape[0] != matrix.shape[1] == n and not labels.are_known:
        raise InputError(
            f"{name}: {list(matrix.shape)} for {n} labels, which looks transposed; give one row "
            "per point"
        )
    single = 1 if matrix.ndim == 1 or matrix.shape[1:] == (1,) else None
    columns = matrix.shape[-1] if single is None else 2
    names = names_of(arrays, columns, choices.classes)
    if labels.are_known and names is None:
        return Given(kind, matrix, labels.texts, labels.places, single=single)
    codes, names, notes = coded(labels, columns, names, matrix)
    return Given(kind, matrix, names, codes, single=single, notes=notes)
