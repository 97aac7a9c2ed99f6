"""Check the contents of a person's file: scale of the answers, splits, weights, groups.

Answers become logits in float32. All that is wrong is said at once.
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
    check_weights,
    look_like_probabilities,
)
from pipeline.own.assign import Given
from pipeline.own.labels import Mistakes, cut_off, some_of, text_of

CALIBRATES = ("calibration", "cal", "validation", "val")
TESTS = ("test",)
"""Words in a column or array `split` for points that calibrate, and for points that test."""
MOST_GROUPS = 100
"""Largest number of groups in one file; each gets tables of its own."""
NOTED = 1e-5
"""A larger difference of a row's sum from one is noted; float32 makes smaller ones."""
LARGEST_ROUNDING = 0.005
"""Probabilities may have been rounded to two decimals; each is then off by up to this much."""
FARTHEST_SUM = 0.2
"""Rounded probabilities are refused where the sum of a row is farther from one than this."""
BELOW_CHANCE = "WARNING: worse than guessing"
"""First words of the note on an accuracy below chance; the verdict then recommends nothing."""


def checked(place: str, given: Given, values: str, mistakes: Mistakes) -> Given:
    """The points of a file with logits float32 [n, C] as the matrix, and notes for the person.

    Args:
        place: the file or files, for messages.
        values: the kind of the answers that the person names, or auto.
        mistakes: what is known to be wrong; `given` has no matrix if its columns are not known.

    Raises:
        InputError: one line with all that is wrong, and the fixes.
    """
    n, tested = len(given.labels), given.tested
    with mistakes.kept():
        if given.matrix is not None:
            given = with_logits(place, given, values)
            given = replace(given, matrix=as_float32(place, given.matrix))
            if (rows := len(given.matrix)) != n:
                raise InputError(f"{place}: labels: {n} labels for {rows} rows; give one per row")
    if given.splits:
        with mistakes.kept():
            halves = [_tested(f"{place}: {name}", of, n) for name, of in given.splits.items()]
            tested = np.array(halves)
    with mistakes.kept():
        if given.weights is not None:
            given = replace(given, weights=check_weights(given.weights, n, "weight").numpy())
    with mistakes.kept():
        if given.groups is not None:
            field = f"{place}: groups"
            given = replace(given, groups=_groups(field, given.groups, n))
    with mistakes.kept():
        if given.clusters is not None:
            given = replace(given, clusters=text_of(given.clusters, n, f"{place}: clusters"))
    mistakes.check()
    classes = given.matrix.shape[1]
    names = None if given.names == [str(k) for k in range(classes)] else given.names
    notes = (*given.notes, *_notes_on_classes(place, given), *_notes_on_accuracy(given))
    return replace(given, names=names, tested=tested, notes=notes)


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


def _groups(field: str, values: Any, n: int) -> NDArray[np.str_]:
    names = text_of(values, n, field)
    if (count := len(np.unique(names))) > MOST_GROUPS:
        raise InputError(
            f"{field}: {count} different names for {n} rows, at most {MOST_GROUPS}; give the group "
            "that a point belongs to, not its number"
        )
    return names


def _tested(field: str, values: Any, n: int) -> NDArray[np.bool_]:
    """Which of `n` points test, by words of CALIBRATES and TESTS."""
    words = [word.casefold() for word in text_of(values, n, field).tolist()]
    for row, word in enumerate(words):
        if word not in (*CALIBRATES, *TESTS):
            raise InputError(
                f"{field}: `{cut_off(word)}` in row {row}; say `calibration` or `test` of each "
                "point, and leave out points that the classifier was trained on"
            )
    tested = np.array([word in TESTS for word in words])
    for side, is_empty in (("calibration", tested.all()), ("test", not tested.any())):
        if is_empty:
            raise InputError(f"{field}: no row says `{side}`; mark points for it")
    return tested


def _notes_on_classes(place: str, given: Given) -> list[str]:
    """A note on classes that are no point's label; on points whose own class is impossible.

    Raises:
        InputError: all points are of one class.
    """
    n, classes = given.matrix.shape
    counts = np.bincount(given.labels, minlength=classes)
    names = np.array(given.names or range(classes)).astype(str)
    if counts.max() == n > 1:
        raise InputError(
            f"{place}: labels: all {n} are {cut_off(names[counts.argmax()])}; give points of at "
            "least two classes"
        )
    notes = []
    if not counts.all():
        absent = some_of(names[counts == 0])
        notes = [f"no point's label is {absent}; what is no class must not be among the columns"]
    own = given.matrix[np.arange(n), given.labels]
    if impossible := int(np.isneginf(own).sum()):
        notes.append(f"{impossible} points are of a class that their logits call impossible (-inf)")
    return notes


def _notes_on_accuracy(given: Given) -> list[str]:
    """A note if guessing would be right more often than these logits, beyond chance."""
    n, classes = given.matrix.shape
    right, chance = float(np.mean(given.matrix.argmax(axis=1) == given.labels)), 1 / classes
    if right >= chance - 2 * (chance * (1 - chance) / n) ** 0.5:
        return []
    return [
        f"{BELOW_CHANCE}: the largest column names the label of {100 * right:.1f} % of the "
        f"points, guessing would name {100 * chance:.1f} %; check that the columns are in the "
        "order of the classes"
    ]
