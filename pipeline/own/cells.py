"""The cells of a person's file: labels, names, numbers, lists; and one line for what is wrong."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import reason_of
from utility_calibration.metrics.validation import InputError, check_labels

from .choices import LABELS, Choices, spelt

if TYPE_CHECKING:
    import pandas as pd

CONTROLS = ("Cc", "Cf", "Cs", "Zl", "Zp")  # Unicode's control characters, line ends, …
JOINERS = "\u00ad\u200c\u200d"  # of these categories, but needed in Persian and Hindi names
LONGEST_TEXT = 1000  # letters of a label or another name
IMPOSSIBLE = "an option that a point lacks has the logit -inf or the probability 0"
Held = dict[str, Any]  # what a file holds by name: arrays, or the columns of a table
LISTS = (list, tuple, dict, np.ndarray)  # what a cell of a column of lists may be


@contextmanager
def naming(place: Any) -> Iterator[None]:
    """Put the name of a file before the message of an `InputError` of the block."""
    try:
        yield
    except InputError as error:
        error.in_file(place)
        raise


@contextmanager
def kept(mistakes: list[InputError]) -> Iterator[None]:
    """Keep an `InputError` of the block, so that all that is wrong can be said at once."""
    try:
        yield
    except InputError as error:
        mistakes.append(error)


def _decoded(values: Any) -> NDArray[Any]:
    entries = np.asarray(values)
    return np.char.decode(entries, "utf-8", "replace") if entries.dtype.kind == "S" else entries


def text_of(values: Any, n: int, field: str) -> NDArray[np.str_]:
    """`values` [n] as text without spaces around it; none is empty or has control characters."""
    entries = _decoded(values)
    if entries.shape != (n,):
        fix = f"give [{n}], a name for each"
        raise InputError(f"shape {list(entries.shape)}", field=field, fixes=fix)
    text = np.char.strip(entries.astype(np.str_))
    if entries.dtype.kind == "f":
        text = np.where(np.isnan(entries), "", text)
    different, places = np.unique(text, return_inverse=True)
    names = list(map(normal, different.tolist()))
    for place, name in enumerate(names):
        if not name or not is_plain(name):
            told, fix = "none", "complete or remove such rows"
            if name:
                told, fix = f"control characters in the name {cut_off(name)}", "rename it"
            row = int((places == place).argmax())
            raise InputError(told, field=field, row=row, fixes=fix)
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
    """The labels of the points, or the classes of a calibrator.

    texts: the different labels as text: numbers in increasing order, else in the order of text.
    places: [n], the place of each point's label in `texts`. is_text: whether they are no numbers.
    are_known: whether they are a calibrator's; a column that bears none of them is then left out.
    """

    texts: list[str]
    places: NDArray[np.int64]
    is_text: bool
    are_known: bool = False

    def row(self, text: str) -> int:
        """The first row of a label."""
        return int((self.places == self.texts.index(text)).argmax())


def distinct_labels(values: Any, field: str, mistakes: list[InputError]) -> Labels:
    """The labels [n] of any kind: text, whole or other numbers, booleans.

    Missing labels go to `mistakes` and get another value. InputError: these are no labels [n].
    """
    plain = _decoded(values)
    if plain.ndim == 2 and plain.shape[1] == 1:
        told = f"shape {list(plain.shape)}, not [n]"
        raise InputError(told, field=field, fixes="save labels[:, 0]")
    if plain.ndim == 2 and plain.dtype.kind in "biuf" and not (plain.sum(axis=1) == 1).all():
        told = f"shape {list(plain.shape)}, several labels per row (multi-label)"
        fix = "give one per row, or score each label in its own file"
        raise InputError(told, field=field, fixes=fix)
    if plain.ndim != 1 or not len(plain):
        check_labels(np.zeros(plain.shape), len(plain) if plain.ndim else 0, 2, name=field)
    if plain.dtype.kind not in "biufU":
        fix = "give class names or numbers"
        raise InputError(f"an array of {plain.dtype}", field=field, fixes=fix)
    is_text = plain.dtype.kind == "U"
    if plain.dtype.kind == "f" and (odd := plain[np.isfinite(plain) & (plain % 1 != 0)]).size:
        told = f"{odd[0]:g} in row {(plain == odd[0]).argmax()} is no whole number"
        raise InputError(f"{field}: {told}; a continuous target has no classes, give class numbers")
    missing = np.char.strip(plain) == "" if is_text else ~np.isfinite(plain)
    if missing.any():
        told, fix = f"none in {missing.sum()} rows, first", "complete or remove such rows"
        row = int(missing.argmax())
        mistakes.append(InputError(told, field="labels", row=row, fixes=fix))
        if missing.all():
            raise mistakes.pop()
        plain = np.where(missing, plain[~missing][0], plain)
    if is_text:
        plain = text_of(plain, len(plain), field)
    different, places = np.unique(plain, return_inverse=True)
    if plain.dtype.kind in "iuf":
        texts = [str(int(v)) if v == int(v) else str(v) for v in different.tolist()]
    else:
        texts = list(map(str, different.tolist()))
    return Labels(texts, places, is_text)


def text_column(column: pd.Series[Any]) -> NDArray[np.str_]:
    """A column's entries as text without spaces around it; "" for an empty cell."""
    lengths = column.astype(str).str.len()
    if (longest := int(lengths.max())) > LONGEST_TEXT:  # NumPy gives every entry the longest's size
        told = f"a cell of {longest:,} letters, at most {LONGEST_TEXT:,} are read as a name"
        raise InputError(f"{column.name}: {told}, in row {int(lengths.argmax())}; shorten it")
    return np.char.strip(column.astype(object).where(column.notna(), "").to_numpy(str))


def plain_column(column: pd.Series[Any] | NDArray[Any]) -> NDArray[Any]:
    """Numbers and booleans as they are, with NaN for empty cells; else text. Arrays stay."""
    import pandas as pd

    if isinstance(column, np.ndarray):
        return column
    is_bool, has_gaps = pd.api.types.is_bool_dtype(column.dtype), column.isna().any()
    if is_bool and not has_gaps:
        return column.to_numpy(bool)
    if is_bool or not pd.api.types.is_numeric_dtype(column.dtype):
        return text_column(column)
    if has_gaps or column.dtype.kind not in "iu":
        return column.to_numpy(np.float64, na_value=np.nan)
    return column.to_numpy(np.int64)


def numbers_of(
    table: Any, columns: Sequence[str], fix: str, lowest: float = np.nan
) -> NDArray[np.float64]:
    """Some columns of a table, or of a `Held`, as numbers [rows, columns].

    InputError: a cell is no finite number and not `lowest`; it names every such column with one of
    its cells, and ends with `fix`.
    """
    import pandas as pd

    cells = pd.DataFrame({name: table[name] for name in columns})
    # pandas would return memory that is not writable, of which torch warns.
    matrix = cells.apply(as_numbers).to_numpy(np.float64, copy=True, na_value=np.nan)
    wrong = ~(np.isfinite(matrix) | (matrix == lowest))
    told, is_nothing = [], "nothing"
    for place in np.flatnonzero(wrong.any(axis=0)).tolist():
        row = int(wrong[:, place].argmax())
        cell = str(cells.iloc[row, place])
        what = is_nothing if cell in ("nan", "None", "<NA>") else f"`{cut_off(cell)}`"
        told.append(f"column `{cut_off(columns[place])}` holds {what} in row {row}")
    if told:
        more = ", …" if len(told) > 5 else ""
        fix = f"{fix}; {IMPOSSIBLE}" if f" {is_nothing} " in told[0] and lowest < 0 else fix
        raise InputError(f"{', '.join(told[:5])}{more}, which is no finite number; {fix}")
    return matrix


def as_numbers(column: pd.Series[Any]) -> pd.Series[Any]:
    """Numbers, and NaN for all else. pandas would convert dates, but not their text."""
    import pandas as pd

    is_numeric = pd.api.types.is_numeric_dtype(column.dtype)
    return pd.to_numeric(column if is_numeric else column.astype(str), errors="coerce")


def has_lists(column: Any) -> bool:
    """Whether any cell of a column is a list or an object of JSON."""
    return column.dtype == object and any(isinstance(cell, LISTS) for cell in column)


def are_arrays(held: Held) -> bool:
    """Whether these are arrays, not the columns of a table."""
    return any(isinstance(of, np.ndarray) for of in held.values())


def arrays_of(held: Held, choices: Choices, notes: list[str]) -> Held:
    """The same, with each column of lists or objects of answers as an array, padded to one length.

    `class_names` are the names of the objects' entries, or those that a data set knows.
    """
    names, matrices = dict[str, Any](), dict[str, Any]()
    for name, kind in ({} if are_arrays(held) else choices.kinds_of(held)).items():
        if has_lists(held[name]):
            matrices[name], entries = _matrix(name, held[name], kind, notes)
            names |= {"class_names": np.array(entries)} if entries else {}
        elif str(held[name].iloc[0]).startswith("["):
            raise InputError(f"`{name}` holds lists as text; write JSON lines or parquet")
    for name, matrix in matrices.items():
        if (gaps := np.isnan(matrix).any(axis=1)).any():
            told = f"column `{name}` holds NaN or nothing in row {gaps.argmax()}"
            raise InputError(f"{told}; {IMPOSSIBLE}")
    if not matrices:
        return held
    for name in held:  # a data set knows the order of its classes
        if spelt(name) in LABELS and hasattr(held[name], "cat"):
            names = {"class_names": held[name].cat.categories.to_numpy(str)}
    if "class_names" in held:
        names = {"class_names": _one_list("class_names", held["class_names"])}
    return {**held, **matrices, **names}


def _matrix(
    name: str, column: pd.Series[Any], kind: str, notes: list[str]
) -> tuple[NDArray[Any], list[str]]:
    """A column of lists or objects as an array [n, C], and the names of the objects' entries.

    A list is of numbers, of pairs [number, whatever] as evaluation harnesses write them, or of
    objects {label, score}. A row that has fewer entries is padded with what is impossible.
    """
    with suppress(TypeError, ValueError):  # lists of one length, which this reads fast
        matrix = np.array(column.tolist(), float)
        if matrix.ndim == 2:
            return matrix, []
    cells = [_entries(cell) for cell in column]
    if wrong := [row for row, cell in enumerate(cells) if not cell]:
        raise InputError(f"column `{name}` holds no entries in row {wrong[0]}; {IMPOSSIBLE}")
    keys: list[Any] = list(dict.fromkeys(key for cell in cells for key in cell))
    keys.sort(key=lambda key: key if isinstance(key, int) else str(key))
    absent = np.array([[key not in cell for key in keys] for cell in cells])
    try:
        matrix = np.array([[cell.get(key, np.nan) for key in keys] for cell in cells], float)
    except (TypeError, ValueError) as error:
        told = f"column `{name}` holds something else than numbers ({reason_of(error)})"
        raise InputError(f"{told}; give one number per class") from error
    if absent.any():
        held, rows = matrix[~absent], int(absent.any(axis=1).sum())
        is_p = kind == "probabilities" or (not kind and held.min() >= 0 and held.max() <= 1)
        matrix[absent] = 0.0 if is_p else -np.inf
        told = f"{rows} rows have fewer than {len(keys)} entries"
        notes.append(f"`{name}`: {told}; options that they lack are impossible")
    return matrix, [] if isinstance(keys[0], int) else keys


def _entries(cell: Any) -> dict[Any, Any]:
    """The numbers of a list by place, of an object by name; nothing of anything else."""
    if isinstance(cell, dict):
        return {str(key): value for key, value in cell.items()}
    if not isinstance(cell, LISTS):
        return {}
    parts = list(cell)
    if all(isinstance(part, dict) and {"label", "score"} <= part.keys() for part in parts):
        return {str(part["label"]): part["score"] for part in parts}
    pairs = all(isinstance(part, LISTS) and len(part) == 2 for part in parts)
    return dict(enumerate(part[0] if pairs else part for part in parts))


def _one_list(name: str, column: pd.Series[Any]) -> NDArray[Any]:
    """The one list that every cell of a column holds."""
    cells = [str(list(cell)) if isinstance(cell, LISTS) else "" for cell in column]
    if isinstance(column.iloc[0], dict) or "" in cells or len(set(cells)) > 1:
        row = next((row for row, cell in enumerate(cells) if cell != cells[0]), 0)
        told = f"row {row} holds no list, or another one than row 0"
        fix = "give the same list in every row, one name per column of the answers"
        raise InputError(f"column `{name}`: {told}; {fix}")
    return np.array(list(column.iloc[0]))


def kind_and_name(arrays: Held, choices: Choices, values: str) -> tuple[str | None, str]:
    """Kind and name of the array of answers; None: it is either kind."""
    found: dict[str, str] = choices.kinds_of(arrays)
    if values == "logits" and len(found) == 1:
        found = dict.fromkeys(found, values)  # whatever the name says
    if values != "auto":
        found = {name: kind or values for name, kind in found.items() if kind in (values, "")}
    if not found:
        wanted = "`logits` or `probabilities`" if values == "auto" else f"`{values}`"
        held = f"(it holds {some_of(list(arrays)) or 'nothing'})"
        fix = "add one, [n, classes], or name one: --logits NAME or --probabilities NAME"
        raise InputError(f"no array {wanted} {held}; {fix}")
    (name, kind), *others = found.items()
    for other, other_kind in others[:1]:
        fix = "; choose: --values logits or --values probabilities, or keep one of them"
        if kind == other_kind:
            fix = f" hold {kind}; leave one out: --ignore {name} or --ignore {other}"
        raise InputError(f"both `{name}` and `{other}`{fix}")
    return kind or None, name
