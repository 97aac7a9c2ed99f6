"""Notes on the points of a person's file: what is odd, though it may be meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.calibrators.inputs import ENOUGH_ROWS

from ..columns.file_points import FilePoints
from ..words.message_text import some_of
from .point_rules import zero_likelihood

BELOW_CHANCE = "WARNING: worse than guessing"
"""First words of the note on an accuracy below chance."""
MOST_VALUES = 2_000_000
"""Of the rows in which ties are looked for, which are spread over all."""
MANY_TIES = 0.5
"""Share of rows with equal values that is noted even if the largest one is always single."""


def _class_names(points: FilePoints) -> list[str]:
    return points.names or [str(number) for number in range(points.matrix.shape[1])]


def _on_absent_classes(points: FilePoints) -> list[str]:
    """A note on classes that are the label of no point."""
    names = _class_names(points)
    counts = np.bincount(points.labels, minlength=len(names))
    if counts.all():
        return []
    odd = some_of([names[number] for number in np.flatnonzero(counts == 0)])
    return [f"no case has the label {odd}; what is no class must not be among the columns"]


def _on_zero_likelihood(points: FilePoints) -> list[str]:
    """A note on points whose label is impossible."""
    is_zero = zero_likelihood(points)
    count, row = int(is_zero.sum()), int(is_zero.argmax())
    if not count:
        return []
    if points.kind == "probabilities":
        return [
            f"the true class has probability 0 in {count} cases, first in "
            f"row {row} (rows count from 0); to fit the methods, 0 counts as 1e-12"
        ]
    return [f"the true class has the logit -inf in {count} test cases, so probability 0"]


def _on_order(points: FilePoints) -> list[str]:
    """A note on columns that fall in every row, or rise in every row."""
    matrix = points.matrix
    n, n_classes = matrix.shape
    if n < ENOUGH_ROWS or n_classes < 3:
        return []
    for word, sign in (("falls", 1), ("rises", -1)):
        # The first rows of most files show that they are in no order.
        is_first_in_order = _is_falling(sign * matrix[:8])
        if is_first_in_order and _is_falling(sign * matrix) and np.ptp(matrix, 0).any():
            return [
                f"every row {word} from the first column to the last: the K largest values of each "
                "case, in order, do not belong to classes, and cumulative probabilities are sums "
                "over classes; give one column per class"
            ]
    return []


def _is_falling(matrix: NDArray[Any]) -> bool:
    return bool((matrix[:, 1:] <= matrix[:, :-1]).all())


def _on_chance(points: FilePoints) -> list[str]:
    """A note if guessing would be right more often than the largest column."""
    matrix, labels = points.matrix, points.labels
    n, n_classes = matrix.shape
    chance = 1 / n_classes
    right = float(np.mean(matrix.argmax(axis=1) == labels))
    if right >= chance - 2 * (chance * (1 - chance) / n) ** 0.5:
        return []
    fix = "check that the columns are in the order of the classes"
    is_smallest = matrix.argmin(axis=1) == labels
    smallest_right = float(np.mean(is_smallest))
    # Columns in another order would explain the points as well as losses would.
    if smallest_right > chance and np.mean(is_smallest[1::2]) >= _right_by_column(matrix, labels):
        fix = (
            f"the smallest value names that of {100 * smallest_right:.1f} %: if these are "
            "losses, such as negative log-likelihoods, reverse their sign, or " + fix
        )
    return [
        f"{BELOW_CHANCE}: the largest column names the label of {100 * right:.1f} % of the "
        f"cases, guessing would name {100 * chance:.1f} %; {fix}"
    ]


def _right_by_column(matrix: NDArray[Any], labels: NDArray[Any]) -> float:
    """The share of labels that the largest column names if each column may be of any class.

    The points at even places say which class each column is of, the others are counted.
    """
    best = matrix.argmax(axis=1)
    n_classes = matrix.shape[1]
    pairs, counts = np.unique(best[::2] * n_classes + labels[::2], return_counts=True)
    class_of = np.full(n_classes, -1)
    for pair in pairs[np.argsort(counts)]:  # the most frequent class of a column comes last
        class_of[pair // n_classes] = pair % n_classes
    return float(np.mean(class_of[best[1::2]] == labels[1::2]))


def _on_ties(points: FilePoints) -> list[str]:
    """A note on the share of rows in which classes tie, if that may change results.

    Metrics rank equal classes by the order of their names, which is no answer of the classifier.
    Impossible classes (-inf) do not count.
    """
    matrix, names = points.matrix, _class_names(points)
    step = max(1, matrix.size // MOST_VALUES)
    rows = np.sort(matrix[::step], axis=1)
    are_equal = (rows[:, 1:] == rows[:, :-1]) & np.isfinite(rows[:, 1:])
    share_at_top = are_equal[:, -1].mean()
    share = are_equal.any(axis=1).mean()
    if not share_at_top and share < MANY_TIES:
        return []
    several, equal = f"{100 * share_at_top:.3g}", f"{100 * share:.3g}"
    return [
        f"{several} % of the cases have several largest values, {equal} % have equal ones: they "
        f"are ranked in the order of the classes ({some_of(names)}); another order may change the "
        "results"
    ]


NOTES: tuple[Callable[[FilePoints], list[str]], ...] = (
    _on_absent_classes,
    _on_zero_likelihood,
    _on_order,
    _on_chance,
    _on_ties,
)
"""What looks at the points, in the order in which the notes are printed."""
