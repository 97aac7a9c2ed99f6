"""The scale of a person's answers: logits, probabilities, or one line that asks.

Answers become logits in float32. What could be either is refused.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from calibrators.inputs import from_probabilities, lookalike
from metrics.validation import (
    COARSE_ROUNDING,
    ROUNDING,
    ROW_SUM_TOLERANCE,
    InputError,
    both_classes,
    check_logits,
    check_numbers,
    look_like_probabilities,
)
from pipeline.own.assign import Given

NOTED = 1e-5
"""A larger difference of a row's sum from one is noted; float32 makes smaller ones."""
DIGITS = (2, 3, 4, 5)
"""Probabilities may have been rounded to so many digits, after the point or significant ones."""
BFLOAT16 = 2**-8
"""The largest difference of a row's sum from one if probabilities were kept in bfloat16."""
FARTHEST_SUM = 0.2
"""Rounded probabilities are refused where the sum of a row is farther from one than this."""


def with_logits(place: Path | str, given: Given, values: str) -> Given:
    """`given` with logits [n, C] as its matrix; probabilities become their logarithms.

    Raises:
        InputError: these are no logits or probabilities, or could be either.
    """
    kind, matrix, notes = given.kind, given.matrix, list(given.notes)
    if values != "auto":
        kind = values
    if given.single is not None:
        matrix = np.reshape(matrix, (-1, 1))
    if kind is None:
        kind = "probabilities" if _are_probabilities(matrix) else "logits"
    field = f"{place}: {kind}"
    if values != "logits":
        _refuse_votes(field, np.asarray(matrix))
        _refuse_scores(str(place), kind, matrix)
    both = both_classes(matrix, field)
    if kind == "logits":
        logits = check_logits(both_classes(matrix, field, log_odds=True), name=field).numpy()
        if values == "auto":
            _refuse_lookalikes(place, both)
            _refuse_two_kinds(place, np.asarray(matrix), given.tested)
    else:
        logits, rounded = _logits_of_probabilities(field, both)
        notes += rounded
    if given.single is not None:
        logits = logits[:, ::-1].copy() if given.single == 0 else logits
        meant = str((given.names or ["0", "1"])[given.single])
        what = "probability" if kind == "probabilities" else "log-odds"
        notes = [note for note in notes if "is taken for" not in note or "`labels`" in note]
        notes.append(f"the single column is taken for the {what} of {meant}")
    return replace(given, kind=kind, matrix=logits, notes=tuple(notes))


def as_float32(place: Path | str, logits: NDArray[Any]) -> NDArray[np.float32]:
    """Logits as the pipeline keeps them; `InputError` if some become infinite."""
    with np.errstate(over="ignore"):  # what is very small becomes -inf, an impossible class
        small = np.asarray(logits, dtype=np.float32)
    if np.isposinf(small.max()):
        row = int(small.max(axis=1).argmax())
        raise InputError(
            f"{place}: logits: row {row} is too large for float32; divide all by one constant"
        )
    return small


def _refuse_scores(place: str, kind: str, matrix: Any) -> None:
    """Raise `InputError` for values in [0, 1] whose rows do not sum to one."""
    numbers = check_numbers(matrix, f"{place}: {kind}")
    if numbers.ndim != 2 or not numbers.numel():
        return
    if numbers.shape[1] == 1:
        low, high = float(numbers.min()), float(numbers.max())
        if kind == "logits" and low >= 0 and high > 1 + COARSE_ROUNDING:
            raise InputError(
                f"{place}: a single column with values from {low:g} to {high:g}: percentages? give "
                "probabilities; if they are log-odds, say so: --values logits"
            )
        return
    for rows in (numbers[:8], numbers):  # the first rows of logits show what they are
        if not bool(((rows >= -COARSE_ROUNDING) & (rows <= 1 + COARSE_ROUNDING)).all()):
            return
    sums = numbers.sum(dim=1, dtype=torch.float64)
    off = (sums - 1).abs()
    if bool((off > ROW_SUM_TOLERANCE).any()) and not _are_rounded(numbers):
        row = int(off.argmax())
        transposed = bool(((numbers.sum(dim=0) - 1).abs() <= ROW_SUM_TOLERANCE).all())
        fix = (
            "columns sum to one, so transpose it"
            if transposed
            else (
                "sigmoid scores? rounded to one decimal? cut to the top K? give all classes' "
                "probabilities, or divide each row by its sum; if they are logits: --values logits"
            )
        )
        raise InputError(
            f"{place}: all values are in [0, 1], but row {row} sums to {float(sums[row]):.4g}; "
            f"{fix}"
        )


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


def _refuse_two_kinds(
    place: Path | str, matrix: NDArray[Any], tested: NDArray[np.bool_] | None
) -> None:
    """Raise `InputError` if some rows of logits, or those of one of two files, are probabilities.

    A thousand rows are looked at, which are spread over all. Whole numbers may be logits.
    """
    rows = matrix[:: max(1, len(matrix) // 1000)].astype(np.float64)
    if matrix.shape[1] > 1:
        sums = rows.sum(axis=1)
        sums_to_one = (np.abs(sums - 1) < 1e-3) | (np.abs(sums - 100) < 0.1)
        odd = (rows >= 0).all(axis=1) & sums_to_one & (rows != np.round(rows)).any(axis=1)
        is_mixed = odd.sum() > max(2, 0.02 * len(odd))
    else:
        halves = [] if tested is None else [matrix[~tested[0]], matrix[tested[0]]]
        is_mixed = any(len(half) > 9 and bool(((half >= 0) & (half <= 1)).all()) for half in halves)
    if is_mixed:
        raise InputError(
            f"{place}: some rows look like probabilities, others do not; give logits of all "
            "points, or probabilities of all; if all are logits: --values logits"
        )


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
    why = "taken for rounding or clipping; rows are renormalised"
    note = f"probabilities are off by up to {off:.1g}, {why}"
    return logits.numpy().astype(np.float32), [note] if off > NOTED else []


def _are_rounded(matrix: Tensor) -> bool:
    """Whether rows of probabilities [n, C] may miss a sum of one by rounding or clipping."""
    p = matrix.to(torch.float64)
    off = float((p.sum(dim=1) - 1).abs().max())
    gap = off - ROUNDING
    if float(p.min()) < 0 or float(p.max()) > 1 or not off > ROW_SUM_TOLERANCE:
        return False
    if gap > FARTHEST_SUM:
        return False
    if gap <= BFLOAT16:
        return True
    low = p.min()  # small values may have been raised to this one
    if bool(low > 0) and bool(
        ((p.sum(dim=1) - 1).abs() <= low * (p == low).sum(dim=1) + BFLOAT16).all()
    ):
        return True
    # The values show the rounding: what was cut to the top K has more digits. Each value is
    # compared with its digits as a whole number, of which float16 is off by up to .05.
    some = p[:: max(1, len(p) // 1000)]
    some = some[some > 0]
    places = some.log10().floor()
    for digits in DIGITS:
        whole = some * 10 ** (digits - 1 - places)
        if gap <= p.shape[1] * 10.0**-digits / 2 and bool(
            ((whole - whole.round()).abs() < 0.1).all()
        ):
            return True
    return False
