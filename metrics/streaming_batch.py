"""The checked points of one batch of a stream, and whether its columns are those of before."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Array
from .class_order import classes_of, codes_of, frame_names
from .errors import InputError
from .keywords import PointOptions, check_keywords
from .layout import is_kept, points_of
from .validation import both_classes, check_logits, check_probabilities, check_weights


class Batch(NamedTuple):
    """Points of a weight above 0."""

    matrix: Array
    """[n, C], probabilities or logits."""
    labels: Array
    """[n], the column of each point's class."""
    weights: Array
    """[n], ones where none are given."""
    columns: list[str]
    """[C], the names of the columns, or empty if they have none."""


def checked_batch(
    probabilities: ArrayLike,
    labels: ArrayLike,
    classes: int,
    are_logits: bool,
    options: PointOptions,
) -> Batch | None:
    """Return the points of the arguments of `StreamingCalibration.update`; None if none is kept.

    `InputError` as `update` says, except for what depends on the batches before.
    """
    name = "logits" if are_logits else "probabilities"
    check_keywords(options, PointOptions)
    ignore_index = options.get("ignore_index")
    if ignore_index is not None and not is_kept(labels, ignore_index).any():
        return None
    probabilities, labels, sample_weight = points_of(
        probabilities,
        labels,
        ignore_index,
        name,
        sample_weight=options.get("sample_weight"),
    )
    matrix = both_classes(probabilities, name, log_odds=are_logits)
    check = check_logits if are_logits else check_probabilities
    matrix = check(matrix, name)
    if matrix.shape[1] != classes:
        message = f"{matrix.shape[1]} columns, expected {classes}"
        raise InputError(message, field=name, fixes="give one column per class")
    class_names = classes_of(labels, probabilities, classes, options.get("classes"))
    y = codes_of(labels, len(matrix), class_names)
    columns = _column_names(class_names, probabilities)
    if sample_weight is None:
        return Batch(matrix, y, np.ones(len(y)), columns)
    weights = check_weights(sample_weight, len(y))
    rows = weights > 0
    if rows.all():
        return Batch(matrix, y, weights, columns)
    return Batch(matrix[rows], y[rows], weights[rows], columns)


def _column_names(class_names: Array, matrix: Any) -> list[str]:
    """Return what labels or a data frame call the columns; [] if neither has names for them."""
    names = class_names if class_names.dtype.kind == "U" else frame_names(matrix)
    return [] if names is None else [str(name) for name in names]


def check_same_columns(columns: list[str], before: list[str], name: str) -> None:
    """Raise `InputError` if columns have other names, or another order, than those before.

    Sums are kept by the place of a column.
    """
    if columns and before and columns != before:
        some, earlier = (", ".join(names[:3]) for names in (columns, before))
        message = f"the columns are {some}, those before were {earlier}"
        raise InputError(message, field=name, fixes="give the columns in one order")
