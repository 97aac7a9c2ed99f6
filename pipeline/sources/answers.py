"""The answers in a person's file as logits: which numbers are probabilities, which look like it."""

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

from calibrators.inputs import both_classes, from_probabilities, lookalike
from metrics.validation import (
    ROW_SUM_TOLERANCE,
    InputError,
    check_logits,
    check_numbers,
    look_like_probabilities,
)
from pipeline.sources.class_labels import class_of_column, short
from pipeline.sources.given import Given

NOTED = 1e-5
"""Row sums of float32 over 1000 classes are off one by less; more is worth a line."""
DECIMALS = (2, 3, 4)
"""To which probabilities may have been rounded."""
FARTHEST_SUM = 0.2
"""Rows of rounded probabilities whose sum is farther from one have lost too much."""


def to_logits(
    path: Path, given: Given, values: str, classes: Sequence[str]
) -> tuple[Given, list[str]]:
    """`given` with logits [n, C] as its matrix, and notes on what was decided.

    Args:
        classes: names of the classes, in increasing order or in that of the columns, as far as
            they are known; they name a single column's class.

    Raises:
        InputError: these are no logits or probabilities, or could be either.
    """
    kind = given.kind or values
    if kind == "auto":
        kind = "probabilities" if _are_probabilities(given.matrix) else "logits"
    is_single = np.ndim(given.matrix) == 1 or np.shape(given.matrix)[1:] == (1,)
    both = both_classes(given.matrix, f"{path}: {kind}") if is_single else given.matrix
    if kind == "logits" and values == "auto":
        _refuse_lookalikes(path, both)
    notes = list[str]()
    if is_single:
        given, notes = _of_both_classes(replace(given, matrix=both), kind, classes)
    if kind == "logits":
        logits = check_logits(given.matrix, name=f"{path}: logits").numpy()
    else:
        logits, rounded = _logits_of_probabilities(path, given.matrix)
        notes += rounded
    return replace(given, kind=kind, matrix=logits), notes


def _are_probabilities(matrix: NDArray[Any]) -> bool:
    """Whether a table's columns are probabilities; a single one is that of the second class."""
    if matrix.shape[1] == 1:
        return bool((matrix >= 0).all() and (matrix <= 1).all())
    tensor = torch.from_numpy(matrix)
    return look_like_probabilities(tensor) or _decimals(tensor) is not None


def _refuse_lookalikes(path: Path, matrix: Any) -> None:
    """Probabilities, percentages or votes under the wrong name would pass for logits."""
    numbers = np.asarray(matrix)
    if numbers.ndim != 2 or numbers.size == 0 or numbers.dtype.kind not in "fiu":
        return  # told by the checks of logits
    seen = lookalike(check_numbers(numbers, f"{path}: logits"))
    if seen is not None:
        raise InputError(
            f"{path}: {seen.what}, but would be read as logits; give logits, or {seen.step}save "
            "them as `probabilities`; if they are logits, say so: --values logits"
        )


def as_float32(path: Path, logits: NDArray[Any]) -> NDArray[np.float32]:
    """Logits as the pipeline keeps them; `InputError` where they become infinite."""
    with np.errstate(over="ignore"):  # what becomes infinite is told in the next line
        small = np.asarray(logits, dtype=np.float32)
    check_logits(small, name=f"{path}: logits (as float32)")
    return small


def _of_both_classes(given: Given, kind: str, classes: Sequence[str]) -> tuple[Given, list[str]]:
    """A single column that became 1 - p and p: names for both; log-odds z become 0 and z.

    A table's column that bears a class's name (sick, p_sick, p1) is that class's; any other one is
    the second class's. A note says which, unless its name is the class's.
    """
    matrix, names = given.matrix, given.names
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
    return replace(given, matrix=matrix, names=names), notes


def _logits_of_probabilities(path: Path, matrix: Any) -> tuple[NDArray[np.float32], list[str]]:
    """The logarithm, and a note where rows are off one by more than the rounding of float32."""
    field, notes = f"{path}: probabilities", list[str]()
    p = check_numbers(matrix, field)
    digits = None if p.ndim != 2 or not p.numel() else _decimals(p)
    if digits is not None:
        sums = p.sum(dim=1, keepdim=True, dtype=torch.float64)
        notes = [
            f"probabilities are rounded to {digits} decimals; rows are divided by their sums, "
            f"{float(sums.min()):.4g} to {float(sums.max()):.4g}"
        ]
        p = p / sums
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the note says it
        try:
            logits = from_probabilities(p, name=field)
        except InputError as error:
            raise _better_told(path, p) or error from None
    excess = torch.stack([p.sum(dim=1).sub(1).abs().max(), -p.min(), p.max() - 1])
    off = float(excess.max())
    if off > NOTED:
        notes.append(
            f"probabilities are off by up to {off:.1g}, taken for rounding; rows are renormalised"
        )
    return logits.numpy().astype(np.float32), notes


def _decimals(matrix: Tensor) -> int | None:
    """To how many decimals probabilities [n, C] were rounded, where that moved the rows' sums."""
    p = matrix.to(torch.float64)
    gap = float((p.sum(dim=1) - 1).abs().max())
    if not ROW_SUM_TOLERANCE < gap <= FARTHEST_SUM or float(p.min()) < 0 or float(p.max()) > 1:
        return None
    for digits in DECIMALS:
        unit = 10.0**-digits
        off = float(((p / unit).round() * unit - p).abs().max())
        if off <= 1e-7 and gap <= p.shape[1] * unit / 2 + 1e-9:  # float32 is off by less
            return digits
    return None


def _better_told(path: Path, matrix: Tensor) -> InputError | None:
    """What to say of refused probabilities that are percentages or votes."""
    if matrix.ndim != 2 or not matrix.numel() or not bool(torch.isfinite(matrix).all()):
        return None
    seen = lookalike(matrix)
    if seen is None or not seen.step:
        return None
    return InputError(f"{path}: probabilities: {seen.what}; divide each row by its sum")
