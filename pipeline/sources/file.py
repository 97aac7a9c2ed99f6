"""A user's classifier: an npz, CSV or parquet file with labels and logits or probabilities.

npz: arrays `labels` [n] and `logits` or `probabilities` [n, C]; optionally `class_names` [C],
`groups` [n], `split` [n] and `weights` [n].
CSV, parquet: the column `label` (or `labels`), then one column per class; optionally `split` and
`weight`.
`split` says calibration or test for each point; split_1, split_2, … are several splits. Or a second
file has the test points of one split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.validation import InputError
from pipeline.harness.artifacts import sha256_of
from pipeline.sources.answers import as_float32, to_logits
from pipeline.sources.class_labels import class_labels, label_names, notes_on_absent_classes
from pipeline.sources.columns import read_columns
from pipeline.sources.given import Given, check_shapes
from pipeline.sources.npz_arrays import read_npz_arrays
from pipeline.sources.result import MissingResource, SourceResult
from pipeline.sources.tables import TABLES
from pipeline.sources.text import listed, text_of

VALUES = ("auto", "logits", "probabilities")

BELOW_CHANCE = "WARNING: worse than guessing"
"""First words of the note on an accuracy below chance."""
MOST_GROUPS = 100
"""Largest number of groups in one file; each gets tables of its own."""


def file_logits(
    *,
    path: str | Path,
    test: str | Path | None = None,
    values: str = "auto",
    groups: str | None = None,
) -> SourceResult:
    """Read logits [n, C] and labels [n] from `path`; probabilities become their logarithms.

    Args:
        path: .npz, .csv or .parquet.
        test: a second such file: its points test, those of `path` calibrate.
        values: the kind of the matrix. `auto`: the name of the array in an npz; in a table,
            probabilities if all values are in [0, 1] and all rows sum to one.
        groups: the column of a table, or the array of an npz, that names each point's group; None
            means the npz's array `groups`, if there is one.

    Raises:
        MissingResource: there is no such file.
        InputError: one line with file, field and fix; rows count from 0, over both files.
    """
    if values not in VALUES:
        raise InputError(f"values={values}: choose one of {', '.join(VALUES)}")
    place, contents = str(path), read_given(Path(path), values, groups)
    if test is not None:
        contents = _joined(place, contents, str(test), read_given(Path(test), values, groups))
        place = f"{path} and {test}"
    field = f"{place}: labels"
    is_named = contents.names is not None  # a single column then belongs to the class it names
    label_texts = label_names(contents.labels, field) if is_named else []
    contents, notes = to_logits(place, contents, values, label_texts)
    logits = as_float32(place, contents.matrix)
    n, classes = logits.shape
    labels = class_labels(contents.labels, n, classes, contents.names, field)
    notes += labels.notes + notes_on_absent_classes(labels, classes, field)
    notes += notes_on_accuracy(logits, labels.numbers)
    origin = {
        "file": str(Path(path).absolute()),
        "sha256": sha256_of(path),
        "values": contents.kind,
    }
    if test is not None:
        origin |= {"test": str(Path(test).absolute()), "test_sha256": sha256_of(test)}
    details: dict[str, Any] = {
        "source": "a file",
        "model": Path(path).stem,
        "preprocessing": "none" if contents.kind == "logits" else "logarithm of probabilities",
        "origin": origin,
        "warnings": notes,
    }
    if labels.names is not None:
        details["class_names"] = labels.names
    return SourceResult(
        logits,
        labels.numbers,
        details,
        groups=contents.groups,
        tested=contents.tested,
        weights=contents.weights,
    )


def read_given(
    path: Path,
    values: str,
    groups: str | None = None,
    labelled: bool = True,
    classes: Sequence[str] = (),
) -> Given:
    """Read a file by `read_columns` or `read_npz_arrays`; check its shapes, weights and groups."""
    check_is_file(path, "an npz, CSV or parquet file")
    if path.suffix.lower() in TABLES:
        contents = read_columns(path, groups, labelled, classes)
    else:
        contents = read_npz_arrays(path, values, groups, labelled)
    check_shapes(path, contents, values)
    _check_sides_have_weight(path, contents)
    if contents.groups is None:
        return contents
    names = text_of(contents.groups, len(contents.labels), f"{path}: groups")
    if (count := len(np.unique(names))) > MOST_GROUPS:
        raise InputError(
            f"{path}: groups: {count} different names for {len(names)} rows, at most "
            f"{MOST_GROUPS}; give the group that a point belongs to, not its number"
        )
    return replace(contents, groups=names)


def _check_sides_have_weight(path: Path, contents: Given) -> None:
    """`InputError` where the points on one side of a split all have weight 0."""
    if contents.tested is None or contents.weights is None:
        return
    for tested in contents.tested:
        for side, points in (("calibration", ~tested), ("test", tested)):
            if not contents.weights[points].any():
                raise InputError(
                    f"{path}: weights: all are zero for the {side} points; give some of them a "
                    "weight"
                )


def check_is_file(path: Path, wanted: str) -> None:
    """Raise an error of one line unless `path` is a file; `wanted` says which file is needed."""
    if path.is_dir():
        raise InputError(f"{path}: this is a folder; give the path of {wanted}")
    if not path.is_file():
        raise MissingResource(f"{path}: no such file; give the path of {wanted}")


def _joined(path: str, first: Given, other: str, second: Given) -> Given:
    """The points of both files, those of the second as test points, in the first one's columns."""
    for place, half in ((path, first), (other, second)):
        if half.tested is not None:
            raise InputError(
                f"{place}: says itself which points test (`split`); leave that out, or the test "
                "file"
            )
    if first.kind != second.kind:
        raise InputError(f"{other}: {second.kind}, but {first.kind} in {path}; give the same")
    for field in ("groups", "weights"):
        if (getattr(first, field) is None) != (getattr(second, field) is None):
            raise InputError(f"{other}: {field} in one file alone; give them in both or in neither")
    sizes = [list(np.shape(half.matrix)) for half in (first, second)]
    if sizes[0][1:] != sizes[1][1:]:
        raise InputError(
            f"{other}: shape {sizes[1]}, but {sizes[0]} in {path}; give the same classes in both"
        )
    matrix = np.asarray(second.matrix)
    if first.names != second.names:
        names, others = first.names or [], second.names or []
        if differing := sorted(set(names) ^ set(others)):
            raise InputError(
                f"{other}: not the classes of {path}: {listed(differing)} in one of them alone; "
                "give the same columns in both"
            )
        matrix = matrix[:, [others.index(name) for name in names]]
    return Given(
        first.kind,
        np.concatenate([np.asarray(first.matrix), matrix]),
        np.concatenate([first.labels, second.labels]),
        first.names,
        None if first.groups is None else np.concatenate([first.groups, second.groups]),
        np.repeat([False, True], [len(first.labels), len(second.labels)])[None],
        None if first.weights is None else np.concatenate([first.weights, second.weights]),
    )


def notes_on_accuracy(logits: NDArray[np.float32], labels: NDArray[np.int64]) -> list[str]:
    """A note if guessing would be right more often than these logits, beyond chance."""
    n, classes = logits.shape
    right, chance = float(np.mean(logits.argmax(axis=1) == labels)), 1 / classes
    if right >= chance - 2 * (chance * (1 - chance) / n) ** 0.5:
        return []
    return [
        f"{BELOW_CHANCE}: the largest column names the label of {100 * right:.1f} % of the "
        f"points, guessing would name {100 * chance:.1f} %; check that the columns are in the "
        "order of the classes"
    ]
