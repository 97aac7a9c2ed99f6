"""The contents of a user's file, the same for npz, CSV and parquet, and checks of their form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.validation import InputError, check_weights
from pipeline.sources.text import listed, short, text_of

CALIBRATES = ("calibration", "cal", "validation", "val")
TESTS = ("test",)
"""Words in a column or array `split` for points that calibrate, and for points that test."""
WEIGHTS = ("weight", "weights", "sample_weight")
"""Names of a column or array with the weights of the points."""


@dataclass(frozen=True)
class Given:
    """The arrays of a file by their purpose."""

    kind: str | None
    """logits, probabilities, or None if the file does not say."""
    matrix: Any
    """[n, C]; for two classes also [n] or [n, 1]."""
    labels: Any = None
    """[n], numbers or names of classes; None if points need no labels."""
    names: list[str] | None = None
    """Names of the columns, [C]."""
    groups: NDArray[np.str_] | None = None
    """[n], if the file has groups."""
    tested: NDArray[np.bool_] | None = None
    """[splits, n], True for test points, False for calibration points, if the file has splits."""
    weights: NDArray[np.float64] | None = None
    """[n], if the file has weights."""


def weights_of(path: Path, columns: Mapping[str, Any], n: int) -> NDArray[np.float64] | None:
    """The weights of `n` points from the columns or arrays with weights; None if there are none.

    Raises:
        InputError: there are several, or weights are negative, not finite or all zero.
    """
    if len(columns) > 1:
        raise InputError(f"{path}: weights: both {listed(list(columns))}; leave all out but one")
    for name, values in columns.items():
        return check_weights(values, n, f"{path}: {name}").numpy()
    return None


def is_split(name: str) -> bool:
    """Whether a column or array of this name says which points calibrate: split, split_2, …"""
    return re.fullmatch(r"split_?\d*", name, re.IGNORECASE) is not None


def tested_by(path: Path, splits: Mapping[str, Any], n: int) -> NDArray[np.bool_] | None:
    """Which of `n` points test, [splits, n], by columns or arrays of words; None if there are none.

    Raises:
        InputError: a word is not in CALIBRATES or TESTS, or one side has no point.
    """
    rows = []
    for name, values in splits.items():
        words = [word.casefold() for word in text_of(values, n, f"{path}: {name}").tolist()]
        for row, word in enumerate(words):
            if word not in (*CALIBRATES, *TESTS):
                raise InputError(
                    f"{path}: {name}: `{short(word)}` in row {row}; say `calibration` or `test` of "
                    "each point, and leave out points that the classifier was trained on"
                )
        is_test = np.array([word in TESTS for word in words])
        for side, is_empty in (("calibration", is_test.all()), ("test", not is_test.any())):
            if is_empty:
                raise InputError(f"{path}: {name}: no row says `{side}`; mark points for it")
        rows.append(is_test)
    return np.array(rows) if rows else None


def check_shapes(path: Path, contents: Given, values: str = "auto") -> None:
    """Raise `InputError` for arrays that are no forecasts: transposed, one-hot, predicted classes.

    `values`: "logits" takes zeros and ones, and whole numbers, as logits.
    """
    field = contents.kind or "columns"
    matrix, labels = np.asarray(contents.matrix), np.asarray(contents.labels)
    if contents.labels is not None and labels.ndim != 1:
        raise InputError(
            f"{path}: labels: shape {list(labels.shape)}; give one class per row, [n] (of one-hot "
            "labels: labels.argmax(axis=1))"
        )
    if matrix.dtype.kind not in "biuf" or not matrix.size or not matrix.ndim:
        return
    is_turned = matrix.ndim == 2 and len(matrix) != labels.size == matrix.shape[1]
    if contents.labels is not None and is_turned:
        raise InputError(
            f"{path}: {field}: shape {list(matrix.shape)} for {len(labels)} labels, a row per "
            f"class; save {field}.T, a row per point"
        )
    if values == "logits":
        return
    is_single = matrix.ndim == 1 or matrix.shape[1:] == (1,)
    # The first rows mostly decide; the matrix may be mapped from a large file.
    are_bits = all(bool(np.isin(rows, (0, 1)).all()) for rows in (matrix[:8], matrix))
    are_votes = are_bits and (is_single or bool((np.sum(matrix, axis=-1) == 1).all()))
    is_count = is_single and field != "probabilities" and _are_counted(matrix)
    if are_votes or is_count:
        raise InputError(
            f"{path}: {field}: nothing but {'zeros and ones' if are_votes else 'whole numbers'}, "
            "like predicted classes; give the classifier's probabilities (predict_proba) or logits"
        )


def _are_counted(vector: NDArray[Any]) -> bool:
    return bool((np.isfinite(vector) & (vector >= 0) & (vector == np.round(vector))).all())
