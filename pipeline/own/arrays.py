"""Which columns of an array are which classes: by `class_names`, by number, or in sorted order.

Columns of lists, as programs for language models write them, are arrays, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from calibrators.class_order import TRUTH, as_number, check_order_of_text, whole_sets
from metrics.validation import InputError, check_labels
from pipeline.own.cells import ADD, Labels, cut_off, plain_column, some_of, text_of
from pipeline.own.read import LABELS, LISTS, kind_of

if TYPE_CHECKING:
    import pandas as pd


def names_of(arrays: dict[str, Any], columns: int, chosen: str | None) -> list[str] | None:
    """The names of the columns of an array, by --classes or `class_names`."""
    if chosen is not None:
        if "*" in chosen:
            raise InputError("--classes: an array has no columns; name all its classes")
        return text_of(chosen.split(","), columns, "--classes").tolist()
    if "class_names" not in arrays:
        return None
    names = text_of(arrays["class_names"], columns, "class_names").tolist()
    if len(set(names)) < columns:
        raise InputError("class_names: one is repeated; give each class its own")
    return names


def matrix_of(arrays: dict[str, Any], values: str) -> tuple[str, str]:
    """Kind and name of the array of answers."""
    found = [(kind, name) for name in arrays if (kind := kind_of(name)) is not None]
    if values != "auto":
        found = [(kind, name) for kind, name in found if kind == values] or [
            (values, name) for _, name in found if len(found) == 1 and values == "logits"
        ]
    if len(found) == 1:
        return found[0]
    held = f"(it holds {some_of(list(arrays)) or 'nothing'})"
    if not found:
        wanted = "`logits` or `probabilities`" if values == "auto" else f"`{values}`"
        raise InputError(f"no array {wanted} {held}; add one, [n, classes]")
    (kind, name), (other_kind, other) = found[:2]
    if kind == other_kind:
        fix = f"--ignore {name} or --ignore {other}"
        raise InputError(f"both `{name}` and `{other}` hold {kind}; leave one out: {fix}")
    raise InputError(
        f"both `{name}` and `{other}`; choose: --values logits or --values "
        "probabilities, or keep one of them"
    )


def arrays_of(held: Any) -> dict[str, NDArray[Any]] | None:
    """The file's arrays; a table has them if a column holds lists of answers."""
    if isinstance(held, dict):
        return held
    lists = [name for name in held if kind_of(name) and has_lists(held[name])]
    for name in filter(kind_of, held):
        if str(held[name].iloc[0]).startswith("[") and name not in lists:
            raise InputError(f"`{name}` holds lists as text; write JSON lines or parquet")
    if not lists:
        return None
    arrays: dict[str, Any] = {
        name: plain_column(held[name]) for name in held if not has_lists(held[name])
    }
    for name in held:  # a data set knows the order of its classes
        if name.lower() in LABELS and hasattr(held[name], "cat"):
            arrays.setdefault("class_names", held[name].cat.categories.to_numpy(str))
    if "class_names" in held:
        arrays["class_names"] = _same_list("class_names", held["class_names"])
    return arrays | {name: _matrix(name, held[name]) for name in lists}


def _matrix(name: str, column: pd.Series[Any]) -> NDArray[Any]:
    """A column of lists as an array; `null` in JSON becomes NaN."""
    lengths = column.map(lambda cell: len(cell) if isinstance(cell, LISTS) else 0)
    if isinstance(column.iloc[0], dict):
        raise InputError(
            f"column `{name}` holds objects; write a list, or a column per class "
            "(pandas.json_normalize)"
        )
    if (odd := np.flatnonzero(lengths != lengths.iloc[0])).size:
        row, fill = int(odd[0]), "-inf" if kind_of(name) == "logits" else "0"
        raise InputError(
            f"column `{name}` has {lengths.iloc[row]} entries in row {row}, {lengths.iloc[0]} in "
            f"row 0; give one per class (pad with {fill} the impossible)"
        )
    matrix = np.array(column.tolist())
    if matrix.dtype.kind in "OU":
        with suppress(TypeError, ValueError):
            matrix = matrix.astype(float)
    return matrix


def _same_list(name: str, column: pd.Series[Any]) -> NDArray[Any]:
    """The one list that every cell of a column holds."""
    cells = [str(list(cell)) if isinstance(cell, LISTS) else "" for cell in column]
    if isinstance(column.iloc[0], dict) or "" in cells or len(set(cells)) > 1:
        row = next((row for row, cell in enumerate(cells) if cell != cells[0]), 0)
        raise InputError(
            f"column `{name}`: row {row} holds no list, or another one than row 0; give the same "
            "list in every row, one name per column of the answers"
        )
    return np.array(list(column.iloc[0]))


def has_lists(column: pd.Series[Any]) -> bool:
    """Whether any cell of a column is a list or an object of JSON."""
    is_list = column.map(lambda cell: isinstance(cell, LISTS)) if column.dtype == object else None
    return is_list is not None and bool(is_list.any())


def coded(
    labels: Labels, columns: int, names: list[str] | None, matrix: Any
) -> tuple[NDArray[np.int64], list[str] | None, tuple[str, ...]]:
    """Class numbers [n], the classes' names, and notes, for columns that are no labels by pattern.

    Labels that are among `names` [C] go by name. Labels from 0 to C - 1 are the numbers of the
    columns. Else C different labels are the columns in increasing order.

    Args:
        matrix: [n, C], which shows whether labels fit another order much better; None: not asked.

    Raises:
        InputError: a label is unknown, or the order of the columns is not.
    """
    texts, places = labels.texts, labels.places
    if texts in (["False", "True"], ["False"], ["True"]) and not labels.is_text and names is None:
        texts = [TRUTH[text.casefold()] for text in texts]
    numbers = [as_number(text) for text in texts]
    in_range = None not in numbers and set(numbers) <= set(range(columns))
    counted = np.array([int(number or 0) for number in numbers])[places] if in_range else None
    if names is not None:
        for found in whole_sets(names, texts):
            place = {label: names.index(name) for name, label in found.labels.items()}
            codes = np.array([place[text] for text in texts])[places]
            if not labels.is_text and in_range:
                told = "numbers among `class_names`, but they fit the columns better if they are "
                fix = "counted from 0; save the names as labels: class_names[labels]"
                _check_fit(matrix, codes, counted, told + fix)
            return codes, names, ()
        if labels.is_text or all(as_number(name) is not None for name in names):
            raise InputError(_no_name(labels, names))
    if labels.is_text:
        check_order_of_text(texts, "labels", "add class_names=model.classes_, one per column")
    if counted is not None:
        if counted.min() > 0:
            told = "none is 0, and they fit the columns better if counted from 1; say which column "
            _check_fit(matrix, counted, counted - 1, f"{told}is which: {ADD} ([{columns}])")
        return counted, names, ()
    if len(texts) == columns:
        order = "in alphabetical order," if None in numbers else "in the order"
        kind = "names" if None in numbers else f"not 0 to {columns - 1}"
        note = f"labels are {kind}: the columns are taken {order} {some_of(texts)}"
        if labels.is_text:
            told = "names, and the columns do not fit their alphabetical order"
            _check_fit(matrix, places, None, f"{told} ({some_of(texts)}); say the order: {ADD}")
        return places, names or texts, (note,)
    if not labels.is_text:
        check_labels(np.array(numbers, dtype=float)[places], len(places), columns, name="labels")
    raise InputError(
        f"labels: not an array of class numbers 0 to {columns - 1} but {len(texts)} names "
        f"({some_of(texts)}) for {columns} columns; {ADD}"
    )


def _no_name(labels: Labels, names: Sequence[str]) -> str:
    """The message on labels that are not among the names of the columns."""
    if labels.are_known:
        fitted = some_of(labels.texts)
        return (
            f"class_names: {some_of(names)}, but the calibrator was fitted on {fitted}; give these"
        )
    odd = next((text for text in labels.texts if text not in names), labels.texts[0])
    row = int((labels.places == labels.texts.index(odd)).argmax())
    return (
        f"labels: {cut_off(odd)} in row {row} is no class's name (they are {some_of(names)}); "
        "correct it"
    )


def _check_fit(matrix: Any, codes: NDArray[Any], other: Any, told: str) -> None:
    """Raise `InputError` if the largest columns are those of `other` [n] far oftener than `codes`.

    `other` None: another order of the columns, whichever fits best.
    """
    n = len(codes)
    if np.ndim(matrix) != 2 or len(matrix) != n:
        return
    best = np.argmax(matrix, axis=1)
    if other is None:
        count = np.shape(matrix)[1]
        hits = np.bincount(best * count + codes, minlength=count**2).reshape(count, count)
        rows, columns = linear_sum_assignment(hits, maximize=True)
        other = rows[np.argsort(columns)][codes]
    if np.sum(best == other) - np.sum(best == codes) > 4 * n**0.5:
        raise InputError(f"labels: {told}")
