"""Rules on labelled points that are no forecast, as rules.py has them for answers alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..columns.file_points import FilePoints
from ..columns.rules import Rule
from ..words.message_text import ONE_CLASS, all_are_text

DECIDED = 0.8
"""Share of the points at which one class wins all its pairs."""
LIKE_VOTES = 1.2
"""Distances vote for one class at all points: the shares of each class that are right sum to 1."""


def _classes_of_pairs(points: FilePoints) -> int:
    """The number of classes of which there are as many pairs as columns; 0: there is none."""
    n_columns = points.matrix.shape[1]
    n_classes = round((1 + (1 + 8 * n_columns) ** 0.5) / 2)
    return n_classes if n_classes * (n_classes - 1) == 2 * n_columns else 0


def _are_pairs(points: FilePoints) -> bool:
    """Whether columns are scores for pairs of classes: their votes are right oftener.

    The SVC of scikit-learn gives (i, j) a positive score where i wins; mostly one class wins all.
    """
    matrix, labels = points.matrix, points.labels
    n_classes = _classes_of_pairs(points)
    if n_classes < 3 or labels.max() >= n_classes:
        return False
    pairs = np.array(np.triu_indices(n_classes, 1))
    # Column k is of the pair (i, j): a positive score is a vote for i, any other one for j.
    first, second = np.eye(n_classes)[pairs]
    votes = (matrix > 0) @ first + (matrix <= 0) @ second
    are_right = votes.argmax(axis=1) == labels
    gained = np.sum(are_right) - np.sum(matrix.argmax(axis=1) == labels)
    shares = [np.mean(are_right[labels == label]) for label in np.unique(labels)]
    is_decided = np.mean(votes.max(axis=1) == n_classes - 1) > DECIDED
    return bool(is_decided and gained > 4 * len(labels) ** 0.5 and sum(shares) > LIKE_VOTES)


def _text_of_pairs(points: FilePoints) -> str:
    n_columns, n_classes = points.matrix.shape[1], _classes_of_pairs(points)
    return f"{n_columns} columns that fit as scores for pairs of {n_classes} classes"


def _are_of_one_class(points: FilePoints) -> bool:
    return len(points.labels) > 1 and bool((points.labels == points.labels[0]).all())


def _text_of_one_class(points: FilePoints) -> str:
    number = int(points.labels[0])
    name = str(number) if points.names is None else points.names[number]
    return all_are_text(len(points.labels), name)


def zero_likelihood(points: FilePoints) -> NDArray[np.bool_]:
    """Which points [n] have a label that is impossible: they make the likelihood infinite."""
    of_label = points.matrix[np.arange(len(points.labels)), points.labels]
    return np.asarray(np.isneginf(of_label))


def _cannot_be_fitted(points: FilePoints) -> Any:
    """Which points [n] calibrate in some split though logits say that their label is impossible."""
    is_zero = zero_likelihood(points)
    if points.kind == "probabilities":
        return np.zeros_like(is_zero)  # a fit takes 0 as 1e-12
    return is_zero if points.tested is None else is_zero & ~points.tested.all(axis=0)


def _text_of_zeros(points: FilePoints) -> str:
    count = _cannot_be_fitted(points).sum()
    where = "1 case, which" if count == 1 else f"{count} cases, which"
    return f"the logit of the right class is -inf at {where} no method can fit, first"


POINTS_ARE_NO_FORECAST: tuple[Rule[FilePoints], ...] = (
    Rule(
        "pairs of classes",
        _are_pairs,
        _text_of_pairs,
        ('take one score per class (SVC: decision_function_shape="ovr")',),
        field="logits",
    ),
    Rule("one class", _are_of_one_class, _text_of_one_class, (ONE_CLASS,), field="labels"),
    Rule(
        "impossible labels",
        lambda points: bool(_cannot_be_fitted(points).any()),
        _text_of_zeros,
        (
            "correct the label or the logit",
            "give probabilities, where a fit takes 0 as 1e-12",
        ),
        field="labels",
        row=lambda points: int(_cannot_be_fitted(points).argmax()),
    ),
)
"""Points of which no calibration can be measured."""
