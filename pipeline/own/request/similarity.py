"""A person's file with the similarity of classes for U_w2v, put in the order of the logits.

The npz may have `class_names`, the CSV a header of the names, also before each line.
"""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics import Similarity
from utility_calibration.metrics.archive import read_arrays
from utility_calibration.metrics.errors import InputError, naming, reason_of

from ..reading.cells import numbers_of, text_column, text_of
from ..reading.read import read_table
from ..words.forms import check_is_file, is_table
from ..words.message_text import normal, some_of
from .utilities import FIX, check_match

ASYMMETRY = 1e-6
"""Of S_ij and S_ji, relative to the largest entry: up to this it is rounding."""
Described = tuple[NDArray[np.float64], dict[str, Any]]
"""A similarity [C, C], and details for the record."""


def file_similarity(*, path: str | Path, decimal: str | None = None) -> Described:
    """The symmetric similarity [C, C] of an npz with `matrix`, or of a CSV.

    The details have the `path`, and `class_names` in the order of the matrix if the file has names.

    Args:
        path: the npz or CSV file.
        decimal: the decimal sign of a CSV whose numbers do not show it.

    Raises:
        InputError: the file is of another kind, or its matrix is no similarity.
        MissingResource: no such file.
    """
    path = Path(path)
    check_is_file(path, "an npz or CSV file with a similarity matrix")
    # A file of any other ending is read as an npz, whose reader says what it is.
    if path.suffix.lower() == ".csv":
        numbers, names = _of_csv(path, decimal)
    else:
        numbers, names = _of_npz(path)
    try:
        matrix: NDArray[np.float64] = Similarity(numbers).matrix
    except InputError as error:
        raise InputError(str(error), file=path) from error
    if np.abs(matrix - matrix.T).max() > ASYMMETRY * np.abs(matrix).max():
        raise InputError("not symmetric", file=path, fixes="two classes have one similarity")
    details: dict[str, Any] = {"path": str(path)}
    if names:
        details["class_names"] = names
    return matrix, details


def _of_npz(path: Path) -> tuple[NDArray[Any], list[str]]:
    """The array `matrix` of an npz, and its class names, if it has them."""
    arrays = read_arrays(path, only=("matrix", "class_names"))
    if "matrix" not in arrays:
        raise InputError("no array `matrix`", file=path, fixes="save it under this name")
    matrix = arrays["matrix"]
    names = []
    if "class_names" in arrays:
        names = text_of(arrays["class_names"], len(matrix), "class_names").tolist()
    return matrix, names


def _of_csv(path: Path, decimal: str | None) -> tuple[NDArray[np.float64], list[str]]:
    """The numbers of a CSV, and the names of its header, if it has one."""
    try:
        # Numbers without names, the usual case, need no pandas.
        return np.loadtxt(path, delimiter=",", ndmin=2, encoding="utf-8-sig"), []
    except (ValueError, OverflowError, MemoryError) as error:
        reason = reason_of(error).partition("; use `usecols`")[0]
        message = f"not a CSV of numbers, with or without the names ({reason})"
        if _begins_with_number(path):
            fix = "separate the numbers by commas, as many in each line"
            raise InputError(message, file=path, fixes=fix) from error
        table = read_table(path, decimal)
        names = [str(name) for name in table]
        if len(names) == len(table) + 1:  # the first column has the names of the lines
            names = names[1:]
        if not 1 < len(names) == len(table):
            raise InputError(message, file=path) from error
    if len(names) < len(table.columns):
        line_names = [normal(name) for name in text_column(table.iloc[:, 0]).tolist()]
        check_match(line_names, names, path, "line", "column")
        table = table.iloc[[line_names.index(name) for name in names]]
    with naming(path):
        return numbers_of(table, names, FIX), names


def _begins_with_number(path: Path) -> bool:
    """Whether the first cell is a number, as it is without a line of names."""
    text = path.read_text("utf-8-sig", errors="replace").lstrip()
    try:
        return math.isfinite(float(re.split(r"[,;|\s]", text, maxsplit=1)[0]))
    except ValueError:
        return False


def in_order(similarity: Described, logits_details: Mapping[str, Any]) -> Described:
    """A similarity in the order of the classes of the logits.

    Raises:
        InputError: only the classes of the logits have names, whose order in a table is not that
            of its columns, or both have different names.
    """
    matrix, described = similarity
    is_of_a_file = "path" in described
    if not is_of_a_file or len(matrix) != logits_details["classes"]:
        return similarity  # word vectors were looked up in this order; sizes are checked elsewhere
    path, file_names = described["path"], described.get("class_names")
    class_names = logits_details.get("class_names")
    if file_names is None:
        # The columns of a table may be in any order; an npz has its own, which a matrix can share.
        if class_names and is_table(Path(logits_details["origin"]["file"])):
            message = f"no names of classes, which are {some_of(class_names)}"
            fixes = ["give the CSV a header of the names", "add class_names to the npz"]
            raise InputError(message, field="similarity", file=path, fixes=fixes)
        return similarity
    expected = class_names or [str(number) for number in range(len(matrix))]
    check_match(file_names, expected, path, "class name", "class")
    order = [file_names.index(name) for name in expected]
    return matrix[np.ix_(order, order)], described
