"""Labels by number or by name: which class each column of the logits belongs to."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metrics.validation import InputError, check_labels, check_nothing_is_masked


def classes_of(labels: Any, columns: int, names: NDArray[np.str_] | None) -> NDArray[Any]:
    """Return the class of each column, [C]: 0 … C-1, or names if the labels are text.

    The names are the data frame's columns. Without named columns they are the labels' distinct
    names in sorted order, as in scikit-learn; every class must then occur among the labels.

    Args:
        labels: [n], the labels of the calibration points.
        columns: C, the number of columns.
        names: the names of a data frame's columns, else None.

    Raises:
        InputError: the labels are text, but do not say which column belongs to which class.
    """
    text = _as_text(labels)
    if text is None:
        return np.arange(columns, dtype=np.int64)
    distinct = np.unique(text)
    if names is not None and np.isin(distinct, names).all():
        return names
    if names is not None or len(distinct) != columns:
        shown = ", ".join(repr(str(name)) for name in distinct[:3])
        raise InputError(
            f"labels: {len(distinct)} names ({shown}, …) for {columns} columns; give the logits as "
            "a data frame whose columns are named like the classes, or class numbers from 0 on"
        )
    return distinct


def codes_of(labels: Any, n: int, classes: NDArray[Any]) -> Tensor:
    """Return the column number of each of `labels` [n], int64.

    Raises:
        InputError: a label is no class, or there are not as many labels as rows.
    """
    text = _as_text(labels)
    if text is None or classes.dtype.kind != "U":
        return check_labels(labels, n, len(classes))
    unknown = ~np.isin(text, classes)
    if unknown.any():
        row = int(unknown.argmax())
        raise InputError(f"labels: {str(text[row])!r} in row {row} is none of the classes")
    order = np.argsort(classes)
    codes = order[np.searchsorted(classes, text, sorter=order)]
    return check_labels(torch.from_numpy(codes), n, len(classes))


def _as_text(labels: Any) -> NDArray[np.str_] | None:
    """Return labels [n] as text if they are text, else None."""
    if isinstance(labels, Tensor):
        return None
    check_nothing_is_masked(labels, "labels")
    try:
        values = np.asarray(labels)
    except ValueError:  # rows of different lengths, which `check_labels` reports
        return None
    if values.dtype.kind == "O" and all(isinstance(label, str) for label in values.ravel()):
        values = values.astype(np.str_)
    return values if values.dtype.kind == "U" and values.ndim == 1 else None
