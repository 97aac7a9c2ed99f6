"""The cells of a person's file as text, numbers and labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.validation import check_labels

from ..words.message_text import COMPLETE, IMPOSSIBLE, cut_off, is_plain, normal
from .decimals import fixes_for

if TYPE_CHECKING:
    import pandas as pd

MOST_NAMED = 5
"""Columns of which a wrong cell is named."""
LONGEST_TEXT = 1000
"""Letters of a label or another name."""
CLASS_NUMBERS = "give class numbers such as 0, 1, 2"
FileColumns = dict[str, Any]
"""What a file holds by name: arrays, or the columns of a table."""


def are_arrays(rows: FileColumns) -> bool:
    """Whether these are arrays, not the columns of a table."""
    return any(isinstance(values, np.ndarray) for values in rows.values())


def _decoded(values: Any) -> NDArray[Any]:
    entries = np.asarray(values)
    return np.char.decode(entries, "utf-8", "replace") if entries.dtype.kind == "S" else entries


def text_of(values: Any, n: int, field: str) -> NDArray[np.str_]:
    """`values` [n] as text without spaces around it; none is empty or has control characters."""
    entries = _decoded(values)
    if entries.shape != (n,):
        raise InputError(f"shape {list(entries.shape)}", field=field, fixes=f"give names [{n}]")
    text = np.char.strip(entries.astype(np.str_))
    if entries.dtype.kind == "f":  # 3.0 is 3 in a column that once had a gap
        is_whole = np.char.endswith(text, ".0")
        text = np.where(is_whole, np.strings.rpartition(text, ".")[0], text)
        text = np.where(np.isnan(entries), "", text)
    different, places = np.unique(text, return_inverse=True)
    names = [normal(name) for name in different.tolist()]
    for place, name in enumerate(names):
        if not name:
            message, fix = "none", COMPLETE
        elif not is_plain(name):
            message, fix = f"control characters in the name {cut_off(name)}", "rename it"
        else:
            continue
        row = int((places == place).argmax())
        raise InputError(message, field=field, row=row, fixes=fix)
    return np.array(names, dtype=np.str_)[places]


def text_column(column: pd.Series[Any]) -> NDArray[np.str_]:
    """A column's entries as text without spaces around it; "" for an empty cell."""
    lengths = column.astype(str).str.len()
    longest = int(lengths.max())
    if longest > LONGEST_TEXT:  # NumPy gives every entry the size of the longest
        message = f"a cell of {longest:,} letters, at most {LONGEST_TEXT:,} are read as a name,"
        row = int(lengths.argmax())
        raise InputError(message, field=str(column.name), row=row, fixes="shorten it")
    return np.char.strip(column.astype(object).where(column.notna(), "").to_numpy(str))


def plain_column(column: pd.Series[Any] | NDArray[Any]) -> NDArray[Any]:
    """Numbers and booleans as they are, with NaN for empty cells; else text. Arrays stay."""
    import pandas as pd

    if isinstance(column, np.ndarray):
        return column
    is_bool = pd.api.types.is_bool_dtype(column.dtype)
    has_gaps = column.isna().any()
    if is_bool and not has_gaps:
        return column.to_numpy(bool)
    if is_bool or not pd.api.types.is_numeric_dtype(column.dtype):
        return text_column(column)
    if has_gaps or column.dtype.kind not in "iu":
        return column.to_numpy(np.float64, na_value=np.nan)
    if column.dtype == np.uint64:  # a number of 2^63 or more would wrap
        return column.to_numpy()
    return column.to_numpy(np.int64)


def numbers_of(
    table: Any, columns: Sequence[str], fixes: Sequence[str], lowest: float = np.nan
) -> NDArray[np.float64]:
    """Some columns of a table, or of a `FileColumns`, as numbers [rows, columns].

    InputError: in each column in which a cell is no finite number and not `lowest`, one of them.
    """
    import pandas as pd

    cells = pd.DataFrame({name: table[name] for name in columns})
    # pandas would return memory that is not writable.
    matrix = cells.apply(as_numbers).to_numpy(np.float64, copy=True, na_value=np.nan)
    is_wrong = ~(np.isfinite(matrix) | (matrix == lowest))
    is_empty_row = cells.isna().all(axis=1).to_numpy()
    if is_empty_row.any():
        raise no_answer(cut_off(columns[0]), is_empty_row)
    mistakes = list[InputError]()
    wrong_columns = np.flatnonzero(is_wrong.any(axis=0)).tolist()
    for place in wrong_columns[:MOST_NAMED]:
        row = int(is_wrong[:, place].argmax())
        cell = str(cells.iloc[row, place])
        is_empty = cell in ("nan", "None", "<NA>")
        message = "nothing" if is_empty else f"`{cut_off(cell)}`, which is no finite number,"
        # One fix for all cells: the first of them names it.
        its_fixes = list[str]()
        if not mistakes:
            its_fixes = [*fixes_for(cell.strip()), *fixes]
            if is_empty and lowest < 0:
                its_fixes.append(IMPOSSIBLE)
        column = cut_off(columns[place])
        mistakes.append(InputError(message, row=row, column=column, fixes=its_fixes))
    if mistakes:
        raise InputError.of_all(mistakes)
    return matrix


def no_answer(name: str, is_empty: NDArray[np.bool_]) -> InputError:
    """The error on rows [n] of which some have no answer at all."""
    count, row = int(is_empty.sum()), int(is_empty.argmax())
    these = "this case" if count == 1 else f"these {count:,} cases"
    fix = f"leave {these} out of the file"
    message = f"no answer in {count:,} of {len(is_empty):,} cases, the first"
    return InputError(message, row=row, column=name, fixes=fix)


def as_numbers(column: pd.Series[Any]) -> pd.Series[Any]:
    """Numbers, and NaN for all else. pandas would convert dates, but not their text."""
    import pandas as pd

    is_numeric = pd.api.types.is_numeric_dtype(column.dtype)
    return pd.to_numeric(column if is_numeric else column.astype(str), errors="coerce")


class Labels(NamedTuple):
    """The labels of the points."""

    texts: list[str]
    """The different labels as text: numbers in increasing order, else in the order of text."""
    places: NDArray[np.int64]
    """[n], the place of each point's label in `texts`."""
    is_text: bool
    """Whether they are no numbers."""

    def row(self, text: str) -> int:
        """The first row of a label."""
        return int((self.places == self.texts.index(text)).argmax())


def distinct_labels(values: Any, field: str, mistakes: list[InputError]) -> Labels:
    """The labels [n] of any kind: text, whole or other numbers, booleans.

    Missing labels go to `mistakes` and get another value. InputError: these are no labels [n].
    """
    plain = _decoded(values)
    _check_shape(plain, field)
    is_text = plain.dtype.kind == "U"
    if plain.dtype.kind == "f":
        _check_class_numbers(plain, field)
    is_missing = np.char.strip(plain) == "" if is_text else ~np.isfinite(plain)
    if is_missing.any():
        count, row = int(is_missing.sum()), int(is_missing.argmax())
        message = "1 case has none, first" if count == 1 else f"{count:,} cases have none, first"
        mistakes.append(InputError(message, field="labels", row=row, fixes=COMPLETE))
        if is_missing.all():
            raise mistakes.pop()
        # Any label will do: the file is refused, once all else has been checked.
        plain = np.where(is_missing, plain[~is_missing][0], plain)
    if is_text:
        plain = text_of(plain, len(plain), field)
    different, places = np.unique(plain, return_inverse=True)
    if plain.dtype.kind in "iuf":
        texts = [_number_as_text(number) for number in different.tolist()]
    else:
        texts = [str(label) for label in different.tolist()]
    return Labels(texts, places, is_text)


def _number_as_text(number: float) -> str:
    """A whole number without decimals, as people write a class."""
    return str(int(number)) if number == int(number) else str(number)


def _check_shape(labels: NDArray[Any], field: str) -> None:
    """Raise `InputError` unless these are labels [n] of a kind that can be names or numbers."""
    if labels.ndim == 2 and labels.shape[1] == 1:
        raise InputError(f"shape {list(labels.shape)}", field=field, fixes="save labels[:, 0]")
    is_matrix_of_numbers = labels.ndim == 2 and labels.dtype.kind in "biuf"
    # Rows of which each sums to one are one-hot labels, of which `check_labels` says so.
    if is_matrix_of_numbers and not (labels.sum(axis=1) == 1).all():
        message = f"shape {list(labels.shape)}, several labels per case (multi-label)"
        fix = "give one per row, or score each label in its own file"
        raise InputError(message, field=field, fixes=fix)
    if labels.ndim != 1 or not len(labels):
        check_labels(np.zeros(labels.shape), len(labels) if labels.ndim else 0, 2, name=field)
    if labels.dtype.kind not in "biufU":
        raise InputError(f"an array of {labels.dtype}", field=field, fixes="give names or numbers")


def _check_class_numbers(labels: NDArray[np.floating[Any]], field: str) -> None:
    """Raise `InputError` for labels [n] that are infinite, or are no whole numbers."""
    is_infinite = np.isinf(labels)
    has_fraction = np.zeros(len(labels), dtype=bool)
    finite = np.isfinite(labels)
    has_fraction[finite] = labels[finite] % 1 != 0
    if is_infinite.any():
        message, row = "an infinite number", int(is_infinite.argmax())
        fixes = [CLASS_NUMBERS]
    elif has_fraction.any():
        row = int(has_fraction.argmax())
        message = f"a continuous target ({labels[row]:g})"
        fixes = [CLASS_NUMBERS, f"if they are names, begin each with a letter: c{labels[row]:g}"]
    else:
        return
    raise InputError(message, field=field, row=row, fixes=fixes)
