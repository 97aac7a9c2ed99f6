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
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.validation import InputError
from pipeline.harness.artifacts import sha256_of
from pipeline.sources.answers import as_float32, to_logits
from pipeline.sources.class_labels import class_labels, label_names, notes_on_absent_classes
from pipeline.sources.columns import read_columns
from pipeline.sources.given import Given
from pipeline.sources.npz_arrays import read_npz_arrays
from pipeline.sources.result import MissingResource, SourceResult
from pipeline.sources.tables import TABLES

VALUES = ("auto", "logits", "probabilities")

BELOW_CHANCE = "WARNING: worse than guessing"
"""First words of the note on an accuracy below chance; the verdict then recommends nothing."""
FORM = ("kind of answers", "class names", "number of columns", "use of groups", "use of weights")
"""What two files must have in common, in words."""


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
        contents = _joined(Path(path), contents, Path(test), values, groups)
        place = f"{path} and {test}"
    field = f"{place}: labels"
    is_named = contents.names is not None  # a single column then belongs to the class it names
    contents, notes = to_logits(
        place, contents, values, label_names(contents.labels, field) if is_named else []
    )
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
    of_points = (contents.groups, contents.tested, contents.weights)
    return SourceResult(logits, labels.numbers, details, *of_points)


def read_given(
    path: Path,
    values: str,
    groups: str | None = None,
    labelled: bool = True,
    classes: Sequence[str] = (),
) -> Given:
    """Read a file by `read_columns` or `read_npz_arrays`."""
    check_is_file(path, "an npz, CSV or parquet file")
    if path.suffix.lower() in TABLES:
        return read_columns(path, groups, labelled, classes)
    return read_npz_arrays(path, values, groups, labelled)


def check_is_file(path: Path, wanted: str) -> None:
    """Raise an error of one line unless `path` is a file; `wanted` says which file is needed."""
    if path.is_dir():
        raise InputError(f"{path}: this is a folder; give the path of {wanted}")
    if not path.is_file():
        raise MissingResource(f"{path}: no such file; give the path of {wanted}")


def _joined(path: Path, first: Given, other: Path, values: str, groups: str | None) -> Given:
    """The points of `first`, read from `path`, then those of `other` as test points.

    The columns of a table are matched by name.
    """
    second = read_given(other, values, groups, classes=first.names or ())
    for place, half in ((path, first), (other, second)):
        if half.tested is not None:
            raise InputError(f"{place}: has a `split`; leave it out, or the second file")
    forms = [
        (
            half.kind,
            half.names,
            np.shape(half.matrix)[1:],
            half.groups is None,
            half.weights is None,
        )
        for half in (first, second)
    ]
    for what, in_first, in_second in zip(FORM, *forms, strict=True):
        if in_first != in_second:
            raise InputError(f"{other}: not the same {what} as in {path}; give both in one form")

    def stacked(name: str) -> Any:
        halves = [getattr(half, name) for half in (first, second)]
        return None if halves[0] is None else np.concatenate([np.asarray(half) for half in halves])

    return Given(
        first.kind,
        stacked("matrix"),
        first.names,
        stacked("labels"),
        stacked("groups"),
        np.repeat([False, True], [len(first.labels), len(second.labels)])[None],
        stacked("weights"),
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
