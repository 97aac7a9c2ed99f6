"""Scores and labels of sequences and images as a matrix of points, without the ignored ones."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import kind_of, plain
from .errors import InputError


def points_of(
    scores: Any,
    labels: Any,
    ignore_index: int | str | None = None,
    name: str = "probabilities",
    **of_points: Any,
) -> tuple[Any, ...]:
    """Return scores [n, C], labels [n] and what else each point has, without ignored points.

    Args:
        scores: [n, C], or with labels [B, …] the scores [B, …, C] or, as torch's cross entropy
            takes them, [B, C, …]. If both fit, this is refused.
        labels: [n] or [B, …].
        ignore_index: points of this label are left out, such as -100 for padded tokens.
        name: what the caller calls the scores, for messages.
        **of_points: by the name of the argument, what each point has: of the shape of `labels`.
    """
    check_same_order({name: scores, "labels": labels, **of_points})
    values = [scores, labels, *of_points.values()]
    shape, target = (), ()  # type: tuple[int, ...], tuple[int, ...]
    with suppress(ValueError):  # rows of different lengths, which the checks report
        shape, target = np.shape(scores), np.shape(labels)
    axis = classes_axis(shape, target, name) if len(shape) > 2 else None
    if axis is not None:
        values = [as_rows(scores, axis), *map(_vector, values[1:])]
    elif len(shape) > 2:
        return tuple(values)  # the checks say which shape is expected
    if ignore_index is None:
        return tuple(values)
    rows = is_kept(values[1], ignore_index)
    if not rows.any():
        raise InputError(f"every label is {ignore_index}", field="ignore_index")
    for field, entries in zip((name, "labels", *of_points), values, strict=True):
        if entries is not None and len(entries) != len(rows):
            message = f"{len(entries)} for {len(rows)} labels"
            raise InputError(message, field=field, fixes="give one each")
    return tuple(entries_at(entries, rows) for entries in values)


def classes_axis(shape: tuple[int, ...], labels: tuple[int, ...], name: str) -> int | None:
    """Return the axis of the classes of scores of this shape, beside labels of that one.

    None: the shapes do not fit. `InputError`: both the second and the last axis may be it.
    """
    second = shape[:1] + shape[2:] == labels
    last = shape[:-1] == labels
    if second and last and len(shape) > 2:
        message = f"two readings fit, shape {list(shape)} and as many labels"
        raise InputError(message, field=name, fixes="give [n, C] and labels [n]")
    if last:
        return -1
    return 1 if second else None


def is_kept(labels: Any, ignore_index: int | str) -> NDArray[np.bool_]:
    """Return which labels [n] are not the ignored one; `InputError`: one is a name, others not."""
    names = np.asarray(plain(labels, "labels"))
    if isinstance(ignore_index, str) and names.dtype.kind in "biuf":
        message = f"the text `{ignore_index}` for labels that are numbers"
        raise InputError(message, field="ignore_index", fixes="give a number")
    return np.asarray(names != ignore_index, dtype=bool)


def check_same_order(arguments: Mapping[str, Any]) -> None:
    """Raise `InputError` if two pandas objects have the same rows in different orders."""
    indexes = {name: value.index for name, value in arguments.items() if hasattr(value, "iloc")}
    for (one, first), (other, second) in combinations(indexes.items(), 2):
        if len(first) != len(second) or first.equals(second) or not first.is_unique:
            continue
        if set(first) == set(second):
            raise InputError(
                f"its index has the rows of {one} in another order",
                field=other,
                fixes=[
                    f"to match rows by index, give {other}.loc[{one}.index]",
                    f"to match them by place, give {other}.to_numpy()",
                ],
            )


def as_rows(scores: Any, classes_axis: int) -> Any:
    """Return scores of several axes as a matrix [n, C]; the axis of the classes is named."""
    if kind_of(scores) == "torch":  # stays a tensor, so that the answer is one, too
        matrix = scores.movedim(classes_axis, -1)
    else:
        matrix = np.moveaxis(np.asanyarray(plain(scores)), classes_axis, -1)
    return matrix.reshape(-1, matrix.shape[-1])


def _vector(values: Any) -> Any:
    if values is None or kind_of(values):
        return None if values is None else values.reshape(-1)
    return np.asanyarray(values).reshape(-1)


def entries_at(values: Any, rows: NDArray[np.bool_]) -> Any:
    """Return the entries of an array, a frame or a list where `rows` [n] is true; None of None."""
    if values is None:
        return None
    if kind_of(values):
        return values[rows.nonzero()[0]]
    # A data frame of pandas, polars or arrow keeps the names of its columns.
    if hasattr(values, "iloc"):
        return values.iloc[rows.nonzero()[0]]
    if hasattr(values, "columns"):
        places = rows.nonzero()[0]
        is_arrow = hasattr(values, "column_names")
        return values.take(places) if is_arrow else values[places]
    return np.asanyarray(values)[rows]
