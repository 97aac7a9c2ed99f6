"""What a person's file gives, before it is checked: the same for npz, CSV and parquet."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.validation import InputError
from pipeline.sources.class_labels import short

CALIBRATES = ("calibration", "cal", "validation", "val")
TESTS = ("test",)
"""What a column or array `split` may say of a point."""


@dataclass(frozen=True)
class Given:
    """Arrays of a file by what they are for."""

    kind: str | None
    """logits, probabilities, or None where the file does not say."""
    matrix: Any
    """[n, C]; of two classes also [n] or [n, 1]."""
    labels: Any = None
    """[n], numbers or names of classes; None where no labels were asked for."""
    names: list[str] | None = None
    """Of the columns, [C]."""
    groups: Any = None
    """[n], where the file has them."""
    tested: NDArray[np.bool_] | None = None
    """[splits, n], True where a point tests and False where it calibrates, if the file says so."""


def is_split(name: str) -> bool:
    """Whether a column or array of this name says which points calibrate: split, split_2, …"""
    return re.fullmatch(r"split_?\d*", name, re.IGNORECASE) is not None


def tested_by(path: Path, name: str, values: Any, n: int) -> NDArray[np.bool_]:
    """Which of `n` points test, by a column or array of the words in CALIBRATES and TESTS.

    Raises:
        InputError: another word, another length, or no point on one side.
    """
    given = np.asarray(values)
    if given.shape != (n,):
        raise InputError(f"{path}: {name}: shape {list(given.shape)} for {n} rows; give [n]")
    if given.dtype.kind == "S":
        given = np.char.decode(given, "utf-8", "replace")
    words = [str(value).strip().casefold() for value in given.tolist()]
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
    return is_test


def check_shapes(path: Path, given: Given, values: str = "auto") -> None:
    """`InputError` where the arrays are no forecast at all: told before any number is looked at.

    `values`: "logits" takes zeros and ones, and whole numbers, as logits.
    """
    field = given.kind or "columns"
    matrix, labels = np.asarray(given.matrix), np.asarray(given.labels)
    if given.labels is not None and labels.ndim != 1:
        raise InputError(
            f"{path}: labels: shape {list(labels.shape)}; give one class per row, [n] (of one-hot "
            "labels: labels.argmax(axis=1))"
        )
    if matrix.dtype.kind not in "biuf" or not matrix.size or not matrix.ndim:
        return
    is_turned = matrix.ndim == 2 and len(matrix) != labels.size == matrix.shape[1]
    if given.labels is not None and is_turned:
        raise InputError(
            f"{path}: {field}: shape {list(matrix.shape)} for {len(labels)} labels, a row per "
            f"class; save {field}.T, a row per point"
        )
    if values == "logits":
        return
    single = matrix.ndim == 1 or matrix.shape[1:] == (1,)
    if _are_zero_or_one(matrix) and (single or (np.sum(matrix, axis=-1) == 1).all()):
        what = "zeros and ones"
    elif single and field != "probabilities" and _are_counted(matrix):
        what = "whole numbers"
    else:
        return
    raise InputError(
        f"{path}: {field}: nothing but {what}, like predicted classes; give the classifier's "
        "probabilities (predict_proba) or logits"
    )


def _are_zero_or_one(matrix: NDArray[Any]) -> bool:
    """The first rows decide, mostly: the matrix may be a map of a large file."""
    return all(bool(np.isin(rows, (0, 1)).all()) for rows in (matrix[:8], matrix))


def _are_counted(vector: NDArray[Any]) -> bool:
    return bool((np.isfinite(vector) & (vector >= 0) & (vector == np.round(vector))).all())
