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
DECIMALS = (2, 3, 4)
"""Numbers of decimals to which probabilities may have been rounded."""
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
    kind = contents.kind or values
    if kind == "auto":
        kind = "probabilities" if _are_probabilities(contents.matrix) else "logits"
    is_single = np.ndim(contents.matrix) == 1 or np.shape(contents.matrix)[1:] == (1,)
    column = np.reshape(contents.matrix, (-1, 1)) if is_single else contents.matrix
    both = both_classes(column, f"{place}: {kind}") if is_single else contents.matrix
    notes = list[str]()
    if is_single:
        contents, notes = _of_both_classes(replace(contents, matrix=both), kind, classes)
    if kind == "logits":
        logits = check_logits(contents.matrix, name=f"{place}: logits").numpy()
        if values == "auto":
            _refuse_lookalikes(place, both)
    else:
        logits, rounded = _logits_of_probabilities(f"{place}: probabilities", contents.matrix)
        notes += rounded
    return replace(contents, kind=kind, matrix=logits), notes


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


def _of_both_classes(contents: Given, kind: str, classes: Sequence[str]) -> tuple[Given, list[str]]:
    """Name the two columns 1 - p and p that a single column gives; log-odds z give 0 and z.

    A table's column with the name of a class (sick, p_sick, p1) belongs to that class, any other
    column to the second class. A note says to which, unless the names are equal.
    """
    matrix, names = contents.matrix, contents.names
    notes, meant = list[str](), "the second class"
    if names is not None and len(names) == 1 and classes:
        column = names[0]
        meant = class_of_column(column, classes) or classes[-1]
        others = [label for label in classes if label != meant]
        names = [others[0], meant] if len(others) == 1 else None
        if names is not None and column != meant:
            notes = [f"column `{short(column)}` is taken for the probability of {short(meant)}"]
    if kind == "logits":
        matrix = torch.stack([torch.zeros_like(matrix[:, 1]), matrix[:, 1]], dim=1)
        notes = [f"the single column of logits is taken for the log-odds of {short(meant)}"]
    return replace(contents, matrix=matrix, names=names), notes


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
    """Whether rows of probabilities [n, C] do not sum to one because of rounding to DECIMALS."""
    p = matrix.to(torch.float64)
    gap = float((p.sum(dim=1) - 1).abs().max())
    if not ROW_SUM_TOLERANCE < gap <= FARTHEST_SUM or float(p.min()) < 0 or float(p.max()) > 1:
        return False
    units = [10.0**-digits for digits in DECIMALS if gap <= p.shape[1] * 10.0**-digits / 2 + 1e-9]
    # Decimals in float32 are off by less than 1e-7.
    return any(float(((p / unit).round() * unit - p).abs().max()) <= 1e-7 for unit in units)
