"""The cells of a person's file: labels, names and numbers; and one line for all that is wrong."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metrics.validation import InputError, check_labels

if TYPE_CHECKING:
    import pandas as pd

CONTROLS = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode's categories of control characters, such as line ends and changes of direction."""
JOINERS = "\u00ad\u200c\u200d"
"""Characters of these categories that names in Persian and Hindi need."""
ADD = "add `class_names`, one per column, or --classes NAME,NAME"
"""How a person says which column of an array is which class."""


@contextmanager
def naming(place: Any) -> Iterator[None]:
    """Put the name of a file before the message of an `InputError` of the block."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{place}: {error}") from error


class Mistakes:
    """Collects what is wrong with one file, so that all of it is said at once."""

    def __init__(self) -> None:
        self.found: list[str] = []

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keep an `InputError` of the block for later."""
        try:
            yield
        except InputError as error:
            self.found.append(str(error))

    def check(self) -> None:
        """Raise one `InputError` with all that was kept."""
        if self.found:
            raise InputError("; also: ".join(dict.fromkeys(self.found)))


def text_of(values: Any, n: int, field: str) -> NDArray[np.str_]:
    """`values` [n] as text without spaces around it.

    Raises:
        InputError: the shape is wrong, or an entry is empty or has control characters; rows count
            from 0.
    """
    entries = np.asarray(values)
    if entries.shape != (n,):
        raise InputError(f"{field}: shape {list(entries.shape)}; give [{n}], a name for each")
    if entries.dtype.kind == "S":
        entries = np.char.decode(entries, "utf-8", "replace")
    text = np.char.strip(entries.astype(np.str_))
    if entries.dtype.kind == "f":
        text = np.where(np.isnan(entries), "", text)
    different, places = np.unique(text, return_inverse=True)
    names = [normal(name) for name in different.tolist()]
    for place, name in enumerate(names):
        row = int((places == place).argmax())
        if not name:
            raise InputError(f"{field}: none in row {row}; complete or remove such rows")
        if not is_plain(name):
            raise InputError(
                f"{field}: {cut_off(name)} in row {row} holds control characters; rename it"
            )
    return np.array(names, dtype=np.str_)[places]


def normal(name: str) -> str:
    """A name with one code for each letter; some programs write é as e and an accent."""
    return unicodedata.normalize("NFC", name)


def is_plain(name: str) -> bool:
    """Whether a name holds no control character."""
    return all(c in JOINERS or unicodedata.category(c) not in CONTROLS for c in name)


def some_of(values: Sequence[Any] | NDArray[Any], most: int = 5) -> str:
    """The first five of the values, cut off for a message."""
    shown = [cut_off(str(value)) for value in list(values)[:most]]
    return ", ".join(shown) + (", …" if len(values) > most else "")


def cut_off(text: str) -> str:
    """A text from a file, printable and cut off for a message."""
    printable = "".join(c if c.isprintable() else "?" for c in text)
    return printable if len(printable) <= 30 else f"{printable[:30]}…"


class Labels(NamedTuple):
    """The labels of the points, or the classes of a calibrator."""

    texts: list[str]
    """The different labels as text: numbers in increasing order, else in the order of text."""
    places: NDArray[np.int64]
    """[n], the place of each point's label in `texts`."""
    is_text: bool
    """Whether they are text, not numbers."""
    are_known: bool = False
    """Whether they are a calibrator's; a column that bears none of them is then left out."""


def distinct_labels(values: Any, field: str, mistakes: Mistakes) -> Labels:
    """The labels [n] of any kind: text, whole or other numbers, booleans.

    Missing labels go to `mistakes`, and are replaced by another one.

    Raises:
        InputError: they are no labels, or not [n].
    """
    plain = np.asarray(values)
    if plain.ndim == 2 and plain.shape[1] == 1:
        raise InputError(f"{field}: shape {list(plain.shape)}, not [n]; save labels[:, 0]")
    if plain.ndim != 1 or not len(plain):
        check_labels(np.zeros(plain.shape), len(plain) if plain.ndim else 0, 2, name=field)
    if plain.dtype.kind == "S":
        plain = np.char.decode(plain, "utf-8", "replace")
    if plain.dtype.kind not in "biufU":
        raise InputError(f"{field}: an array of {plain.dtype}; give class names or numbers")
    is_text = plain.dtype.kind == "U"
    missing = np.char.strip(plain) == "" if is_text else ~np.isfinite(plain)
    if missing.any():
        row = int(missing.argmax())
        fix = "complete or remove such rows"
        mistakes.found.append(f"labels: none in row {row} ({missing.sum()} of all); {fix}")
        if missing.all():
            mistakes.check()
        plain = np.where(missing, plain[~missing][0], plain)
    if is_text:
        plain = text_of(plain, len(plain), field)
    different, places = np.unique(plain, return_inverse=True)
    is_whole = plain.dtype.kind in "iuf"
    texts = [
        str(int(value)) if is_whole and value == int(value) else str(value)
        for value in different.tolist()
    ]
    return Labels(texts, places, is_text)


def text_column(column: pd.Series[Any]) -> NDArray[np.str_]:
    """A column's entries as text without spaces around it; "" for an empty cell."""
    text = column.astype(object).where(column.notna(), "").to_numpy(str)
    return np.char.strip(text)


def plain_column(column: pd.Series[Any]) -> NDArray[Any]:
    """Numbers and booleans as they are, with NaN for empty cells; else text."""
    import pandas as pd

    kind = column.dtype
    if pd.api.types.is_bool_dtype(kind) and not column.isna().any():
        return column.to_numpy(bool)
    if pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind):
        if column.isna().any() or kind.kind not in "iu":
            return column.to_numpy(np.float64, na_value=np.nan)
        return column.to_numpy(np.int64)
    return text_column(column)


def numbers_of(
    table: pd.DataFrame, columns: Sequence[str], fix: str, lowest: float = np.nan
) -> NDArray[np.float64]:
    """The columns called `columns` as numbers [rows, columns].

    Raises:
        InputError: a cell is no finite number and not `lowest`; the message names every such
            column with one of its cells, and ends with `fix`.
    """
    cells = table[list(columns)]
    # pandas would return memory that is not writable, of which torch warns.
    matrix = cells.apply(_as_numbers).to_numpy(np.float64, copy=True, na_value=np.nan)
    wrong = ~(np.isfinite(matrix) | (matrix == lowest))
    told = []
    for place in np.flatnonzero(wrong.any(axis=0)).tolist():
        row = int(wrong[:, place].argmax())
        cell = str(cells.iloc[row, place])
        what = "nothing" if cell in ("nan", "None", "<NA>") else f"`{cut_off(cell)}`"
        told.append(f"column `{cut_off(columns[place])}` holds {what} in row {row}")
    if told:
        more = ", …" if len(told) > 5 else ""
        raise InputError(f"{', '.join(told[:5])}{more}, which is no finite number; {fix}")
    return matrix


def _as_numbers(column: pd.Series[Any]) -> pd.Series[Any]:
    """Numbers, and NaN for all else. pandas would convert dates, but not their text."""
    import pandas as pd

    is_numeric = pd.api.types.is_numeric_dtype(column.dtype)
    return pd.to_numeric(column if is_numeric else column.astype(str), errors="coerce")
