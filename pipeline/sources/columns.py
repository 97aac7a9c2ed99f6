"""Which column of a table is what: labels, groups, one per class; what is unclear is refused.

A column that is no class but taken for one (an `id`, a prediction, the label once more) would
change every number without a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from metrics.validation import InputError
from pipeline.sources.class_labels import is_plain, listed, short
from pipeline.sources.given import Given
from pipeline.sources.tables import read_table

if TYPE_CHECKING:
    import pandas as pd

LABELS = ("label", "labels")
OTHER_LABELS = ("target", "targets", "truth", "y", "y_true", "class", "true_label", "ground_truth")
NOT_CLASSES = {
    *OTHER_LABELS,
    *("id", "ids", "idx", "index", "row", "row_id", "uid", "uuid", "key", "name", "file"),
    *("pred", "preds", "prediction", "predictions", "predicted", "predicted_label", "y_pred"),
    *("group", "groups", "fold", "split", "weight", "weights", "sample_weight"),
    *("date", "time", "timestamp"),
}
"""Names that columns of other things than classes usually have, in lower case."""


WHAT_A_TABLE_HOLDS = (
    "keep `label` and one column of numbers per class (groups of points: --groups COLUMN)"
)


def read_columns(path: Path, groups: str | None = None) -> Given:
    """What the CSV or parquet file `path` gives.

    Args:
        path: the file; its column `label` (or `labels`) holds the classes of the points, all others
            one class each, in any order where their names are those of the labels.
        groups: the column that names each point's group.

    Raises:
        InputError: one line with file, column and fix.
    """
    table = read_table(path)
    names = [str(name) for name in table.columns]
    _check_names(path, names)
    label = _label_column(path, names)
    if groups is not None and (groups not in names or groups == label):
        raise InputError(f"{path}: no column `{groups}` for groups; there are {listed(names)}")
    classes = [name for name in names if name not in (label, groups)]
    if not classes:
        raise InputError(f"{path}: no column beside the labels; add one per class")
    check_are_numbers(path, table, classes, WHAT_A_TABLE_HOLDS)
    _check_are_classes(path, classes, table[label])
    matrix = table[classes].to_numpy(np.float64, copy=True, na_value=np.nan)
    _check_none_is_missing(path, classes, matrix)
    return Given(
        kind=None,
        matrix=matrix,
        labels=_values(table[label]),
        names=classes,
        groups=None if groups is None else _values(table[groups]),
    )


def _values(column: pd.Series[Any]) -> NDArray[Any]:
    """A column's entries; of pandas' own types, objects in which what is missing is None."""
    import pandas as pd

    if isinstance(column.dtype, np.dtype):
        return column.to_numpy()
    plain = column.astype(object)
    if pd.api.types.is_bool_dtype(column.dtype) or pd.api.types.is_numeric_dtype(column.dtype):
        return column.to_numpy(np.float64, na_value=np.nan)
    return plain.where(column.notna(), None).to_numpy()


def _check_names(path: Path, names: Sequence[str]) -> None:
    unnamed = [k for k, name in enumerate(names) if name.startswith("Unnamed:") or not name]
    if unnamed:
        raise InputError(
            f"{path}: column {unnamed[0] + 1} has no name, like the row numbers that pandas "
            "writes; leave it out (to_csv(index=False)), or name it if it is a class"
        )
    seen: dict[str, int] = {}
    for k, name in enumerate(names):
        if name in seen:
            raise InputError(
                f"{path}: columns {seen[name] + 1} and {k + 1} are both called `{short(name)}`; "
                "remove or rename one"
            )
        if not is_plain(name):
            raise InputError(
                f"{path}: the name of column {k + 1} holds control characters; rename it"
            )
        seen[name] = k


def _label_column(path: Path, names: Sequence[str]) -> str:
    found = [name for name in names if name.lower() in LABELS]
    if len(found) > 1:
        raise InputError(
            f"{path}: columns `{found[0]}` and `{found[1]}` could both be the labels; "
            "remove or rename one"
        )
    if found:
        return found[0]
    similar = next((name for name in names if name.lower() in OTHER_LABELS), None)
    fix = (
        f"rename `{similar}` to `label` if it holds the classes"
        if similar
        else "the first line must name the columns: label, then one per class"
    )
    raise InputError(f"{path}: no column `label` (the first line reads {listed(names)}); {fix}")


def check_are_numbers(
    path: Path, table: pd.DataFrame, classes: Sequence[str], fix: str = "remove it"
) -> None:
    """`InputError` naming the first column of `classes` that is not of numbers, and its cell.

    Two columns may have one name. `fix` is what to do with a column of text or dates.
    """
    import pandas as pd

    wanted = set(classes)
    for name, column in table.items():
        if name not in wanted:
            continue
        kind = column.dtype
        if pd.api.types.is_bool_dtype(kind):
            raise InputError(
                f"{path}: column `{short(str(name))}` holds True and False, no logits or "
                "probabilities; remove it"
            )
        if not pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_complex_dtype(kind):
            raise InputError(f"{path}: column `{short(str(name))}` {_no_number(column, fix)}")


def _no_number(column: pd.Series[Any], fix: str) -> str:
    """What is wrong with a column that is not of numbers, and the fix."""
    import pandas as pd

    text = column.astype(str)
    given = column.notna().to_numpy()
    numbers = pd.to_numeric(text, errors="coerce").to_numpy(np.float64)
    wrong = given & ~np.isfinite(numbers)  # whole numbers of 400 digits become infinite
    if 0 < wrong.sum() < given.sum() or np.isinf(numbers).any():
        row = int(wrong.argmax())
        cell = short(str(text.to_numpy()[row]))
        what = "too large a number" if np.isinf(numbers[row]) else "no number"
        return f"holds `{cell}` in row {row}, which is {what}; recompute or remove such rows"
    if given.any() and not wrong.any():
        return "holds numbers as text or decimals; save them as floating point, or remove it"
    return f"holds text or dates; {fix}"


def _check_are_classes(path: Path, classes: Sequence[str], labels: pd.Series[Any]) -> None:
    odd = [name for name in classes if name.lower() in NOT_CLASSES]
    known = {str(value) for value in labels.unique()} if odd else set()
    for name in odd:
        if name not in known:
            fix = "give --groups " + name if name.lower() in ("group", "groups") else "remove it"
            raise InputError(
                f"{path}: column `{name}` would be taken for a class; {fix}, or rename it if it "
                "is one"
            )


def _check_none_is_missing(path: Path, classes: Sequence[str], matrix: NDArray[np.float64]) -> None:
    missing = np.isnan(matrix)
    if missing.any():
        row, column = np.argwhere(missing)[0]
        raise InputError(
            f"{path}: column `{short(classes[column])}` holds nothing or NaN in row {row}; "
            "recompute or remove such rows"
        )
