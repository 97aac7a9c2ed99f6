"""Turn the classifier's answers in a user's file, logits or probabilities, into logits."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from calibrators.inputs import from_probabilities, lookalike
from metrics.validation import (
    ROUNDING,
    ROW_SUM_TOLERANCE,
    InputError,
    both_classes,
    check_logits,
    check_numbers,
    look_like_probabilities,
)
from pipeline.sources.class_labels import class_of_column
from pipeline.sources.given import Given
from pipeline.sources.text import short

NOTED = 1e-5
"""A larger difference of a row's sum from one is noted; float32 makes smaller ones."""
LARGEST_ROUNDING = 0.005
"""Probabilities may have been rounded to two decimals; each is then off by up to this much."""
FARTHEST_SUM = 0.2
"""Rounded probabilities are refused where the sum of a row is farther from one than this."""


def to_logits(
    place: Path | str, contents: Given, values: str, classes: Sequence[str]
) -> tuple[Given, list[str]]:
    """`contents` with logits [n, C] as its matrix, and notes on what was decided.

    Args:
        place: the file or files, for messages.
        classes: names of the classes, if they are known, in increasing order or in the order of
            the columns; a single column gets its class from them.

    Raises:
        InputError: these are no logits or probabilities, or could be either.
    """
    kind, matrix = contents.kind or values, contents.matrix
    is_single = np.ndim(matrix) == 1 or np.shape(matrix)[1:] == (1,)
    if is_single:
        matrix = np.reshape(matrix, (-1, 1))
    if kind == "auto":
        kind = "probabilities" if _are_probabilities(matrix) else "logits"
    field, notes, names = f"{place}: {kind}", list[str](), contents.names
    if values != "logits":
        _refuse_votes(field, np.asarray(matrix))
    if is_single:
        names, notes = _names_of_both(names, kind, classes)
    both = both_classes(matrix, field)
    if kind == "logits":
        logits = check_logits(both_classes(matrix, field, log_odds=True), name=field).numpy()
        if values == "auto":
            _refuse_lookalikes(place, both)
    else:
        logits, rounded = _logits_of_probabilities(field, both)
        notes += rounded
    return replace(contents, kind=kind, matrix=logits, names=names), notes


def _refuse_votes(field: str, matrix: NDArray[Any]) -> None:
    """Raise `InputError` for predicted classes: numbers in one column, or one 1 in each row."""
    if matrix.dtype.kind not in "biuf" or matrix.ndim != 2 or not matrix.size:
        return

    def are_votes(rows: NDArray[Any]) -> bool:
        are_whole = bool((rows >= 0).all() and (rows == np.round(rows)).all())
        return are_whole and (rows.shape[1] == 1 or bool((rows.sum(axis=1) == 1).all()))

    # The first rows mostly decide; the matrix may be mapped from a large file.
    if are_votes(matrix[:8]) and are_votes(matrix):
        raise InputError(
            f"{field}: only whole numbers, like predicted classes; give the classifier's "
            "probabilities (predict_proba) or logits"
        )


def _are_probabilities(matrix: NDArray[Any]) -> bool:
    """Whether a table's columns are probabilities; a single column may be of any class."""
    if matrix.shape[1] == 1:
        return bool((matrix >= 0).all() and (matrix <= 1).all())
    tensor = torch.from_numpy(matrix)
    return look_like_probabilities(tensor) or _are_rounded(tensor)


def _refuse_lookalikes(place: Path | str, matrix: Any) -> None:
    """Raise `InputError` for probabilities, percentages or votes that are called logits."""
    seen = lookalike(check_numbers(matrix, f"{place}: logits"))
    if seen is not None:
        raise InputError(
            f"{place}: {seen.what}, but would be read as logits; give logits, or {seen.step}save "
            "them as `probabilities`; if they are logits, say so: --values logits"
        )


def as_float32(place: Path | str, logits: NDArray[Any]) -> NDArray[np.float32]:
    """Logits as the pipeline keeps them; `InputError` if some become infinite."""
    with np.errstate(over="ignore"):  # the next check finds infinite numbers
        small = np.asarray(logits, dtype=np.float32)
    check_logits(small, name=f"{place}: logits (as float32)")
    return small


def _names_of_both(
    names: list[str] | None, kind: str, classes: Sequence[str]
) -> tuple[list[str] | None, list[str]]:
    """The names of both classes for a single column, and a note on the class that it is taken for.

    A table's column with the name of a class (sick, p_sick, p1) belongs to that class, any other
    column to the second class. There is no note if the names are equal.
    """
    meant, notes = "the second class", list[str]()
    if names is not None and len(names) == 1 and classes:
        column = names[0]
        meant = class_of_column(column, classes) or classes[-1]
        others = [label for label in classes if label != meant]
        names = [others[0], meant] if len(others) == 1 else None
        if names is not None and column != meant:
            notes = [f"column `{short(column)}` is taken for the probability of {short(meant)}"]
    if kind == "logits":
        notes = [f"the single column of logits is taken for the log-odds of {short(meant)}"]
    return names, notes


def _logits_of_probabilities(field: str, matrix: Any) -> tuple[NDArray[np.float32], list[str]]:
    """The logarithms, and a note if a row's sum differs from one by more than NOTED."""
    p = check_numbers(matrix, field)
    off = 0.0
    if p.ndim == 2 and p.numel():
        sums = p.sum(dim=1, keepdim=True, dtype=torch.float64)
        off = float(torch.stack([(sums - 1).abs().max(), -p.min(), p.max() - 1]).max())
        if _are_rounded(p):
            p = p / sums
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the note says the same
        logits = from_probabilities(p, name=field)
    note = f"probabilities are off by up to {off:.1g}, taken for rounding; rows are renormalised"
    return logits.numpy().astype(np.float32), [note] if off > NOTED else []


def _are_rounded(matrix: Tensor) -> bool:
    """Whether rows of probabilities [n, C] may miss a sum of one because they were rounded."""
    p = matrix.to(torch.float64)
    gap = float((p.sum(dim=1) - 1).abs().max())
    farthest = min(FARTHEST_SUM, p.shape[1] * LARGEST_ROUNDING)
    is_in_range = float(p.min()) >= 0 and float(p.max()) <= 1
    return is_in_range and ROW_SUM_TOLERANCE < gap <= farthest + ROUNDING
