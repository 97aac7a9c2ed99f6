"""Which column or array of a person's file has which purpose beside the answers, by its name."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from utility_calibration.metrics.archive import array_names, read_arrays
from utility_calibration.metrics.errors import InputError

from ..reading.cells import FileColumns, are_arrays
from ..words.file_options import MOST, FileOptions
from ..words.message_text import some_of, typed
from ..words.usual_names import LABELS, LIKE_CLUSTERS, LIKE_LABELS, USUAL, is_split, spelt
from .lists import has_lists


@dataclass(frozen=True)
class Roles:
    """The columns or arrays by their purpose; None: the file has none for it."""

    labels: str
    splits: tuple[str, ...] = ()
    """Which points calibrate and which test; each is a split of its own."""
    groups: str | None = None
    clusters: str | None = None
    predictions: str | None = None
    """The predicted classes, where the answers are the confidence in them."""
    weights: str | None = None

    def beside_labels(self) -> Iterator[tuple[str, str]]:
        """Yield each purpose but that of the labels, and the column or array that has it."""
        for name in self.splits:
            yield name, name
        for field in fields(self)[2:]:
            name = getattr(self, field.name)
            if name is not None:
                yield field.name, name

    @property
    def names(self) -> list[str]:
        """All columns or arrays that have a purpose, that of the labels first."""
        return [self.labels, *(name for _, name in self.beside_labels())]

    def without(self, columns: Collection[str]) -> "Roles":
        """The same without some columns, which are classes."""
        kept = {role: name for role, name in self.beside_labels() if name not in columns}
        splits = tuple(name for name in self.splits if name in kept)
        others = {role: name for role, name in kept.items() if role not in splits}
        return Roles(self.labels, splits, **others)


def labels_of(names: Sequence[str], file_options: FileOptions, notes: list[str]) -> str:
    """The column or array of the labels."""
    if file_options.labels is not None:
        return _present(file_options.labels, names, "--labels")
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
        fixes = [f"choose: {typed('--labels', name)}" for name in labels]
        raise InputError(message, field="labels", fixes=fixes)
    return labels[0]


def _present(name: str, names: Sequence[str], option: str) -> str:
    """A name that the person gives, if it is there."""
    if name not in names:
        message = f"nothing is called {name}"
        raise InputError(message, field=option, fixes=f"name one of {some_of(names)}")
    return name


def roles_of(names: Sequence[str], file_options: FileOptions, notes: list[str]) -> Roles:
    """The column or array of each purpose.

    Raises:
        InputError: two columns may have one purpose, or one that the person names is not there.
    """
    splits = tuple(name for name in names if is_split(name))
    labels = labels_of(names, file_options, notes)
    others = {}
    for role, usual in USUAL.items():
        chosen = getattr(file_options, role, None)
        if chosen is not None:
            fitting = [_present(chosen, names, f"--{role}")]
        else:
            fitting = [name for name in names if spelt(name) in usual]
        if len(fitting) > 1:
            fixes = [f"leave one out: {typed('--ignore', name)}" for name in fitting]
            raise InputError(f"{' and '.join(fitting)} are both {role}", field=role, fixes=fixes)
        if fitting:
            others[role] = fitting[0]
    return Roles(labels, splits, **others)


def advice_on_clusters(path: Path, rows: Any, file_options: FileOptions) -> list[str]:
    """A note if values repeat in what looks like the names of patients, documents or images."""
    if file_options.clusters is not None or any(spelt(name) in USUAL["clusters"] for name in rows):
        return []
    if are_arrays(rows):
        # Arrays without a purpose have not been read; some cannot be.
        with suppress(InputError):
            rows = read_arrays(path, [*filter(LIKE_CLUSTERS.search, array_names(path))])
    purposes = {file_options.groups, file_options.labels, *file_options.answers}
    with suppress(InputError):
        purposes.add(labels_of(list(rows), file_options, []))
    for name in filter(LIKE_CLUSTERS.search, rows):
        if name not in purposes and _repeats(rows, name):
            clusters = typed("--clusters", name)
            return [f"`{name}` repeats: if cases with one value depend, say {clusters}"]
    return []


def _repeats(rows: FileColumns, name: str) -> bool:
    """Whether some, but not all, of the entries of a column of names are equal."""
    if has_lists(rows[name]):
        return False
    values = np.asarray(rows[name])
    if values.ndim != 1 or values.dtype.kind == "f":
        return False
    return 1 < len(set(values.tolist())) < len(values)
