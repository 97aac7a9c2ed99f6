"""Which points of a person's file calibrate and which test: the columns or arrays split, split_2, …

Points that the classifier was trained on do neither. They are left out before anything is read.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError

from .cells import FileColumns, are_arrays, plain_column, text_of
from .lists import has_lists
from .message_text import cut_off
from .usual_names import is_split

CALIBRATES, TESTS = ("calibration", "cal", "validation", "val"), ("test",)
"""Words in a column or array `split` for points that calibrate, and for points that test."""
TRAINS = ("train", "training")
"""Words for points that the classifier was trained on."""


def without_training(held: FileColumns, notes: list[str]) -> FileColumns:
    """The rows that a column or array `split` does not call training points; a note counts others.

    Of several such columns all must say so. The result may be empty.
    """
    trains = [_says_training(column) for name, column in held.items() if is_split(name)]
    rows = [each for each in trains if each is not None]
    if not rows or len(rows) < len(trains) or len({len(each) for each in rows}) > 1:
        return held
    is_training = np.all(rows, axis=0)
    if not is_training.any():
        return held
    n = len(is_training)
    notes.append(
        f"{is_training.sum():,} rows whose `split` says `train` are left out: the classifier was "
        "trained on them; rows count from 0 without them"
    )
    kept = ~is_training
    return {name: of[kept] if _is_of_points(name, of, held, n) else of for name, of in held.items()}


def only_training() -> InputError:
    """The error on a file without any other points."""
    fix = "give points that the classifier was not trained on"
    return InputError("all rows say `train`", field="split", fixes=fix)


def is_empty(held: FileColumns) -> bool:
    """Whether no row is left; `class_names` has one entry per class."""
    return not any(np.size(values) for name, values in held.items() if name != "class_names")


def tested(field: str, values: Any, n: int) -> NDArray[np.bool_]:
    """Which of `n` points test, by words of CALIBRATES and TESTS."""
    words = [word.casefold() for word in text_of(values, n, field).tolist()]
    for row, word in enumerate(words):
        if word not in (*CALIBRATES, *TESTS):
            fixes = ["say `calibration` or `test`", "leave out what the classifier was trained on"]
            raise InputError(f"`{cut_off(word)}`", field=field, row=row, fixes=fixes)
    tests = np.isin(words, TESTS)
    if tests.all() or not tests.any():
        side = "calibration" if tests.all() else "test"
        raise InputError(f"no row says `{side}`", field=field, fixes="mark points for it")
    return tests


def _says_training(column: Any) -> NDArray[np.bool_] | None:
    """Which entries [n] are a word of TRAINS; None: these are no words."""
    if has_lists(column):
        return None
    values = np.asarray(plain_column(column))
    if values.ndim != 1 or values.dtype.kind not in "US":
        return None
    text = np.char.decode(values, "utf-8", "replace") if values.dtype.kind == "S" else values
    words = np.char.lower(np.char.strip(text))
    return np.isin(words, TRAINS)


def _is_of_points(name: str, values: Any, held: FileColumns, n: int) -> bool:
    is_names = name == "class_names" and are_arrays(held)
    return not is_names and np.ndim(values) > 0 and len(values) == n
