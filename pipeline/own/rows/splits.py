"""Which points of a person's file calibrate and which test: the columns or arrays split, split_2, …

Points that the classifier was trained on do neither. They are left out before anything is read.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError

from ..reading.cells import FileColumns, are_arrays, plain_column, text_of
from ..words.message_text import cut_off
from ..words.usual_names import is_split
from .lists import has_lists

CALIBRATES = ("calibration", "cal", "validation", "val")
"""Words in a column or array `split` for points that calibrate."""
TESTS = ("test",)
"""Words for points that test."""
TRAINS = ("train", "training")
"""Words for points that the classifier was trained on."""


def without_training(rows: FileColumns, notes: list[str]) -> FileColumns:
    """The rows that a column or array `split` does not call training points; a note counts others.

    Of several such columns all must say so. The result may be empty.
    """
    say_training = [_says_training(column) for name, column in rows.items() if is_split(name)]
    words = [says for says in say_training if says is not None]
    are_all_words = len(words) == len(say_training)
    lengths = {len(says) for says in words}
    # What is no column of words is refused later, with its row.
    if not are_all_words or len(lengths) != 1:
        return rows
    is_training = np.all(words, axis=0)
    if not is_training.any():
        return rows
    notes.append(
        f"{is_training.sum():,} cases whose `split` says `train` are left out: the classifier was "
        "trained on them; rows count from 0 without them"
    )
    left = dict(rows)
    for name, values in rows.items():
        is_of_classes = name == "class_names" and are_arrays(rows)
        is_of_points = np.ndim(values) > 0 and len(values) == len(is_training)
        if is_of_points and not is_of_classes:
            left[name] = values[~is_training]
    return left


def no_rows() -> InputError:
    """The error on a file without any point."""
    return InputError("no rows", fixes="give at least one case")


def only_training() -> InputError:
    """The error on a file without any other points."""
    fix = "give cases that the classifier was not trained on"
    return InputError("all cases say `train`", field="split", fixes=fix)


def is_empty(rows: FileColumns) -> bool:
    """Whether no row is left; `class_names` has one entry per class."""
    return not any(np.size(values) for name, values in rows.items() if name != "class_names")


def tested(field: str, values: Any, n: int) -> NDArray[np.bool_]:
    """Which of `n` points test, by words of CALIBRATES and TESTS."""
    words = [word.casefold() for word in text_of(values, n, field).tolist()]
    # Another word could mean either side, and a wrong one would make every number wrong.
    for row, word in enumerate(words):
        if word not in (*CALIBRATES, *TESTS):
            fixes = ["say `calibration` or `test`", "leave out what the classifier was trained on"]
            raise InputError(f"`{cut_off(word)}`", field=field, row=row, fixes=fixes)
    tests = np.isin(words, TESTS)
    if tests.all() or not tests.any():
        side = "calibration" if tests.all() else "test"
        raise InputError(f"no case says `{side}`", field=field, fixes="mark cases for it")
    return tests


def _says_training(column: Any) -> NDArray[np.bool_] | None:
    """Which entries [n] are a word of TRAINS; None: these are no words."""
    if has_lists(column):
        return None
    values = np.asarray(plain_column(column))
    if values.ndim != 1 or values.dtype.kind not in "US":
        return None
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "replace")
    words = np.char.lower(np.char.strip(values))
    return np.isin(words, TRAINS)
