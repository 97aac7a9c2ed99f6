"""Check the contents of a person's file: scale (scale.py), splits, weights, groups."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.validation import InputError, check_weights

from .cells import text_of
from .given import Given
from .scale import with_logits
from .ties import note_on_ties
from .told import all_of_one_class, cut_off, kept, some_of

CALIBRATES, TESTS = ("calibration", "cal", "validation", "val"), ("test",)
"""Words in a column or array `split` for points that calibrate, and for points that test."""
MOST_GROUPS = 100  # largest number of groups in one file; each gets tables of its own
BELOW_CHANCE = "WARNING: worse than guessing"
"""First words of the note on an accuracy below chance; the verdict then recommends nothing."""


def checked(given: Given, values: str, mistakes: list[InputError]) -> Given:
    """The points of a file with logits float32 [n, C] as the matrix, and notes for the person.

    `values` is the kind of the answers that the person names, or auto; `mistakes` are known, and
    `given` has no matrix if its columns are not. InputError says all that is wrong at once.
    """
    given = scaled(given, values, mistakes)
    _refuse_pairwise(given.matrix, given.labels)
    names = [str(k) for k in range(given.matrix.shape[1])]
    given = replace(
        given,
        names=None if given.names == names else given.names,
        tested=np.array([*given.splits.values()]) if given.splits else given.tested,
    )
    return replace(given, notes=(*given.notes, *_notes(given, given.names or names)))


def scaled(given: Given, values: str, mistakes: list[InputError]) -> Given:
    """The same with logits and what each point has, not yet looked at as a whole."""
    n = len(given.labels)
    with kept(mistakes):
        if given.matrix is not None:
            given = with_logits(given, values)
            if (rows := len(given.matrix)) != n:
                told = f"{n} labels for {rows} rows"
                raise InputError(told, field="labels", fixes="give one per row")
    checks: dict[str, Callable[[Any], Any]] = {
        "splits": lambda held: {name: _tested(name, words, n) for name, words in held.items()},
        "weights": lambda held: check_weights(held, n, "weight"),
        "groups": lambda held: _groups(held, n),
        "clusters": lambda held: text_of(held, n, "clusters"),
    }
    for field, check in checks.items():
        with kept(mistakes):
            if (held := getattr(given, field)) is not None:
                changed: Any = {field: check(held)}
                given = replace(given, **changed)
    if mistakes:
        raise InputError.of_all(mistakes)
    return given


def _groups(values: Any, n: int) -> NDArray[np.str_]:
    names = text_of(values, n, "groups")
    if (count := len(np.unique(names))) > MOST_GROUPS:
        told = f"{count} different names for {n} rows, at most {MOST_GROUPS}"
        fix = "give the group that a point belongs to, not its number"
        raise InputError(told, field="groups", fixes=fix)
    return names


def _tested(field: str, values: Any, n: int) -> NDArray[np.bool_]:
    """Which of `n` points test, by words of CALIBRATES and TESTS."""
    words = [word.casefold() for word in text_of(values, n, field).tolist()]
    for row, word in enumerate(words):
        if word not in (*CALIBRATES, *TESTS):
            fixes = ["say `calibration` or `test`", "leave out what the classifier was trained on"]
            raise InputError(f"`{cut_off(word)}`", field=field, row=row, fixes=fixes)
    tested = np.isin(words, TESTS)
    if tested.all() or not tested.any():
        side = "calibration" if tested.all() else "test"
        raise InputError(f"no row says `{side}`", field=field, fixes="mark points for it")
    return tested


def _refuse_pairwise(matrix: NDArray[Any], labels: NDArray[Any]) -> None:
    """Raise `InputError` if columns are scores for pairs of classes: their votes are right oftener.

    The SVC of scikit-learn gives (i, j) a positive score where i wins; mostly one class wins all.
    Distances vote for one class at all points: the shares of each class that are right sum to 1.
    """
    n, columns = matrix.shape
    classes = round((1 + (1 + 8 * columns) ** 0.5) / 2)
    if classes < 3 or classes * (classes - 1) != 2 * columns or labels.max() >= classes:
        return
    first, second = np.eye(classes)[np.array(np.triu_indices(classes, 1))]
    votes = (matrix > 0) @ first + (matrix <= 0) @ second
    are_right = votes.argmax(axis=1) == labels
    gained = np.sum(are_right) - np.sum(matrix.argmax(axis=1) == labels)
    shares = [np.mean(are_right[labels == label]) for label in np.unique(labels)]
    is_decided = np.mean(votes.max(axis=1) == classes - 1) > 0.8
    if is_decided and gained > 4 * n**0.5 and sum(shares) > 1.2:
        fix = 'take one score per class (SVC: decision_function_shape="ovr")'
        told = f"{columns} columns that fit as scores for pairs of {classes} classes"
        raise InputError(told, field="logits", fixes=fix)


def _notes(given: Given, names: list[str]) -> list[str]:
    """Notes on absent and impossible classes, and if guessing would be right more often."""
    matrix, labels = given.matrix, given.labels
    n, classes = matrix.shape
    counts = np.bincount(labels, minlength=classes)
    if counts.max() == n > 1:
        raise all_of_one_class(n, names[counts.argmax()])
    notes = []
    if not counts.all():
        odd = some_of([names[k] for k in np.flatnonzero(counts == 0)])
        notes.append(f"no point's label is {odd}; what is no class must not be among the columns")
    impossible = np.isneginf(matrix[np.arange(n), labels])
    calibrates = True if given.tested is None else ~given.tested.all(axis=0)
    if (never := impossible & calibrates).any():
        told = f"{never.sum()} points that no method can fit have a class of logit -inf, first"
        fixes = "correct the label or the logit", "give probabilities"
        raise InputError(told, field="labels", row=int(never.argmax()), fixes=fixes)
    if impossible.any():
        notes.append(f"{impossible.sum()} test points have a class whose logit is -inf")
    falls = n > 9 and classes > 2
    for rows in (matrix[:8], matrix):
        falls = falls and bool((rows[:, 1:] <= rows[:, :-1]).all() and (rows != rows[0]).any())
    if falls:
        notes.append(
            "every row falls from the first column to the last: if these are the K largest values "
            "of each point, in order, they do not belong to classes; give one column per class"
        )
    right, chance = float(np.mean(matrix.argmax(axis=1) == labels)), 1 / classes
    if right < chance - 2 * (chance * (1 - chance) / n) ** 0.5:
        notes.append(
            f"{BELOW_CHANCE}: the largest column names the label of {100 * right:.1f} % of the "
            f"points, guessing would name {100 * chance:.1f} %; check that the columns are in the "
            "order of the classes"
        )
    return notes + note_on_ties(matrix, names)
