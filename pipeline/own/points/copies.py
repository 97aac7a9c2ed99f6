"""Rows that repeat an earlier one exactly: copies of a point, which chance does not make.

Floors and intervals take rows as independent points. Each row twice makes an error look as sure as
twice as many points would: false alarms rise from 5 % to about 40 %.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.forecast import row_bytes
from utility_calibration.metrics.weights import counted

from ..columns.file_points import FilePoints
from ..words.message_text import typed

DENOMINATORS = np.array([*range(1, 1001), 10_000, 100_000])
"""Values that are all multiples of one of 1/m are shares of m votes, or rounded."""
NEAR = 0.15  # from a whole number, after rounding to float32
LOOKED_AT = 50  # rows whose values may be such multiples
ENOUGH = 3.0
"""So many labels of repeated rows must be expected to differ if they are other points; none does
with a probability of 5 %."""
FEW = 0.1  # share of these that may differ


def note_on_copies(points: FilePoints) -> list[str]:
    """A note on rows that seem to be copies: the same answers of full precision, the same label.

    Different points may have the same answers: of a tree's leaf, of few votes, or rounded ones. Of
    such points the labels differ as often as their probabilities say; the labels of copies do not.
    """
    if points.clusters is not None:
        return []
    matrix, labels = points.matrix, points.labels
    first = _first_equal(matrix)
    is_later = first != np.arange(len(matrix))
    if not is_later.any():
        return []
    p = np.exp(matrix[is_later] - matrix[is_later].max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    expected = float((1 - np.square(p).sum(axis=1)).sum())
    differing = int((labels[is_later] != labels[first[is_later]]).sum())
    is_copied = expected >= ENOUGH and differing <= FEW * expected
    if not is_copied or _has_few_values(matrix[is_later], p, points.kind):
        return []
    count, n = int(is_later.sum()) - differing, len(matrix)
    return [
        f"WARNING: {count:,} of {n:,} cases ({100 * count / n:.3g} %) equal an earlier one in all "
        "values and in the label. Copies are no independent cases, and false alarms become "
        "frequent. To count each once: --distinct; if such cases depend on each other, name the "
        "column of what they share: --clusters COLUMN"
    ]


def without_copies(points: FilePoints) -> FilePoints:
    """The points without those that equal an earlier one in all values and in the label.

    Raises:
        InputError: a copy has another weight, group or cluster than the first one, or one
            calibrates and the other tests.
    """
    n = len(points.labels)
    first = _first_equal(np.column_stack([points.matrix, points.labels.astype(np.float32)]))
    is_first = first == np.arange(n)
    columns = {
        "weights": points.weights,
        "groups": points.groups,
        "clusters": points.clusters,
        "split": None if points.tested is None else points.tested.T,
        **points.splits,
    }
    mistakes = list[InputError]()
    for name, values in columns.items():
        differs: Any = np.zeros(n, bool) if values is None else values != values[first]
        differs = np.asarray(differs).reshape(n, -1).any(axis=1)
        if differs.any():
            message = "equal cases differ in it, so it is not clear which one counts"
            row = int(differs.argmax())
            fixes = ["leave the copies out of the file", f"leave it out: {typed('--ignore', name)}"]
            mistakes.append(InputError(message, field=name, row=row, fixes=fixes))
    if mistakes:
        raise InputError.of_all(mistakes)

    note = f"{n - is_first.sum():,} cases that equal an earlier one are left out"
    return _at(is_first, points, note)


def without_weight_0(points: FilePoints) -> FilePoints:
    """The points whose weight is not 0, without weights if these say nothing."""
    if points.weights is None:
        return points
    rows, weights = counted(points.weights)
    if rows is not None:
        note = f"{len(rows) - rows.sum():,} cases of weight 0 are left out"
        points = _at(rows, points, note)
    return replace(points, weights=weights)


def _at(rows: NDArray[np.bool_], points: FilePoints, note: str) -> FilePoints:
    """The points of some rows, and a note of why."""

    def kept(values: Any) -> Any:
        return None if values is None else values[rows]

    return replace(
        points,
        matrix=points.matrix[rows],
        labels=points.labels[rows],
        weights=kept(points.weights),
        groups=kept(points.groups),
        clusters=kept(points.clusters),
        splits={name: words[rows] for name, words in points.splits.items()},
        tested=None if points.tested is None else points.tested[:, rows],
        notes=(*points.notes, note),
    )


def _first_equal(rows: NDArray[Any]) -> NDArray[np.int64]:
    """The place of the first row that equals each row, [n]."""
    whole = row_bytes(rows + 0.0)  # -0 becomes 0
    _, first, inverse = np.unique(whole, return_index=True, return_inverse=True)
    return np.asarray(first[inverse])


def _has_few_values(logits: NDArray[Any], p: NDArray[Any], kind: str | None) -> bool:
    """Whether all values of the rows are multiples of one 1/m: shares of votes, or rounded ones."""
    step = max(1, len(p) // LOOKED_AT)
    as_written = logits if kind == "logits" else p
    values = as_written[::step].astype(np.float64).ravel()
    values = values[np.isfinite(values)]
    # Votes of m trees or m neighbours are multiples of 1/m, so other points often have them, too.
    for denominator in DENOMINATORS:
        multiples = values * denominator
        is_whole = np.abs(multiples - np.rint(multiples)) < NEAR
        if is_whole.all():
            return True
    return False
