"""The columns of a table by their purpose: labels, groups, splits, weights, one per class.

If a column that is no class (an `id`, a prediction, the label once more) were taken for a class,
every number would be wrong without notice. So the usual names of such columns are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from metrics.validation import InputError
from pipeline.sources.class_labels import class_of_column
from pipeline.sources.given import WEIGHTS, Given, is_split, with_labels
from pipeline.sources.tables import numbers_of, read_table, text_column
from pipeline.sources.text import listed

if TYPE_CHECKING:
    import pandas as pd

LABELS = ("label", "labels")
NOT_CLASSES = {
    *LABELS,
    *("target", "targets", "truth", "y", "y_true", "class", "true_label", "ground_truth"),
    *("id", "ids", "idx", "index", "row", "row_id", "uid", "uuid", "key", "name", "file"),
    *("pred", "preds", "prediction", "predictions", "predicted", "predicted_label", "y_pred"),
    *("group", "groups", "fold"),
    *("date", "time", "timestamp"),
}
"""Usual names of columns that are no classes, in lower case."""
WHAT_A_TABLE_HOLDS = (
    "correct it, or keep `label` and one column of numbers per class (groups of points: --groups "
    "COLUMN)"
)


def read_columns(
    path: Path, groups: str | None = None, labelled: bool = True, classes: Sequence[str] = ()
) -> Given:
    """Read the CSV or parquet file `path`.

    Args:
        path: the file; its column `label` (or `labels`) holds the classes of the points, `split`
            (`split_1`, `split_2`, …) which points calibrate and test, `weight` their weights. Every
            other column holds one class, in any order where their names are those of the labels.
        groups: the column that names each point's group.
        labelled: whether labels are needed; else they are ignored.
        classes: the names of the classes if they are known; other columns are then ignored.

    Raises:
        InputError: one line with file, column and fix.
    """
    table = read_table(path)
    names = list(table.columns)
    label = next((name for name in names if name.lower() in LABELS), None)
    if label is None and labelled:
        raise InputError(
            f"{path}: no column `label` (the first line reads {listed(names)}); the first line "
            "must name the columns, separated by commas: label, then one per class"
        )
    if groups is not None and groups not in names:
        raise InputError(f"{path}: no column `{groups}` for groups; there are {listed(names)}")
    labels = set(table[label].astype(str)) if labelled else set()
    others = [
        name
        for name in names
        if name == groups or is_split(name) or (name.lower() in WEIGHTS and name not in labels)
    ]
    columns = [name for name in names if name not in (label, *others)]
    if classes:
        columns = _columns_of(path, columns, classes)
    elif labelled:
        _check_are_classes(path, columns, labels)
    if not columns:
        raise InputError(f"{path}: no column beside the labels; add one per class")
    given = Given(None, numbers_of(path, table, columns, WHAT_A_TABLE_HOLDS), columns)
    if not labelled:
        return given
    described = {
        name: table[name].to_numpy() if name.lower() in WEIGHTS else text_column(table[name])
        for name in others
    }
    return with_labels(path, given, _labels(table[label]), described, groups)


def _labels(column: pd.Series[Any]) -> NDArray[Any]:
    """Numbers if pandas has read numbers, with NaN for empty cells; else text."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.to_numpy(np.float64, na_value=np.nan)
    return text_column(column)


def _check_are_classes(path: Path, columns: Sequence[str], labels: set[str]) -> None:
    """Raise `InputError` for a column with a name of NOT_CLASSES, unless a class has this name.

    pandas calls columns without a name, such as the row numbers of `to_csv`, `Unnamed: 0`.
    """
    for name in columns:
        is_odd = name.lower() in NOT_CLASSES or not name or name.startswith("Unnamed:")
        if is_odd and name not in labels:
            fix = "give --groups " + name if name.lower() in ("group", "groups") else "remove it"
            raise InputError(
                f"{path}: column `{name}` would be taken for a class; {fix}, or rename it if it "
                "is one"
            )


def _columns_of(path: Path, columns: Sequence[str], classes: Sequence[str]) -> list[str]:
    """The columns of known classes, in their order: cat and dog, or p_cat and p_dog.

    For two classes one column is enough: the only one, or the only one with a class's name.
    """
    bearing = {class_of_column(name, classes): name for name in columns}
    bearing |= {name: name for name in columns if name in classes}
    bearing.pop(None, None)
    if missing := [name for name in classes if name not in bearing]:
        for only in (list(bearing.values()), list(columns)):
            if len(classes) == 2 and len(only) == 1:
                return only
        raise InputError(
            f"{path}: no column `{missing[0]}` for the class of this name; rename or add it"
        )
    return [bearing[name] for name in classes]
