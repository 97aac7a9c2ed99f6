"""Check the contents of a person's file: scale (scale.py), splits, weights, groups."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.calibrators.inputs import ENOUGH_ROWS
from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.validation import check_weights

from .cells import text_of
from .copies import note_on_copies, without_copies, without_weight_0
from .file_points import FilePoints
from .message_text import all_of_one_class, kept, some_of
from .scale import with_logits
from .splits import tested
from .ties import note_on_ties

MOST_GROUPS = 100  # largest number of groups in one file; each gets tables of its own
BELOW_CHANCE = "WARNING: worse than guessing"
"""First words of the note on an accuracy below chance; the verdict then recommends nothing."""


def checked(
    given: FilePoints, values: str, mistakes: list[InputError], is_distinct: bool = False
) -> FilePoints:
    """The points of a file with logits float32 [n, C] as the matrix, and notes for the person.

    `values` is the kind of the answers that the person names, or auto; `mistakes` are known, and
    `given` has no matrix if its columns are not. InputError says all that is wrong at once.
    is_distinct: whether rows that are equal count once (--distinct).
    """
    given = scaled(given, values, mistakes)
    given = without_copies(given) if is_distinct else given
    given = without_weight_0(given)
    _refuse_pairwise(given.matrix, given.labels)
    names = [str(k) for k in range(given.matrix.shape[1])]
    given = replace(
        given,
        names=None if given.names == names else given.names,
        tested=np.array([*given.splits.values()]) if given.splits else given.tested,
    )
    return replace(
        given, notes=(*given.notes, *_notes(given, given.names or names), *note_on_copies(given))
    )


def scaled(given: FilePoints, values: str, mistakes: list[InputError]) -> FilePoints:
    """The same with logits and what each point has, not yet looked at as a whole."""
    n = len(given.labels)
    with kept(mistakes):
        if given.matrix is not None:
            given = with_logits(given, values)
            rows = len(given.matrix)
            if rows != n:
                message = f"{n} labels for {rows} rows"
                raise InputError(message, field="labels", fixes="give one per row")
    checks: dict[str, Callable[[Any], Any]] = {
        "splits": lambda held: {name: tested(name, words, n) for name, words in held.items()},
        "weights": lambda held: check_weights(held, n, "weight"),
        "groups": lambda held: _groups(held, n),
        "clusters": lambda held: text_of(held, n, "clusters"),
    }
    for field, check in checks.items():
        with kept(mistakes):
            values_of_points = getattr(given, field)
            if values_of_points is not None:
                changed: Any = {field: check(values_of_points)}
                given = replace(given, **changed)
    if mistakes:
        raise InputError.of_all(mistakes)
    return given


def _groups(values: Any, n: int) -> NDArray[np.str_]:
    names = text_of(values, n, "groups")
    count = len(np.unique(names))
    if count > MOST_GROUPS:
        message = f"{count} different names for {n} rows, at most {MOST_GROUPS}"
        fix = "give the group that a point belongs to, not its number"
        raise InputError(message, field="groups", fixes=fix)
    return names


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
        message = f"{columns} columns that fit as scores for pairs of {classes} classes"
        raise InputError(message, field="logits", fixes=fix)


def _zeros(given: FilePoints) -> list[str]:
    """A note on points whose label has probability 0: they make the likelihood infinite.

    InputError: logits say that the label of a point that calibrates is impossible.
    """
    has_zero = np.isneginf(given.matrix[np.arange(len(given.labels)), given.labels])
    count, row = int(has_zero.sum()), int(has_zero.argmax())
    if not count:
        return []
    if given.kind == "probabilities":
        points = f"the label of {count} points has probability 0 (first row {row})"
        return [f"{points}: their likelihood is infinite; a fit takes 0 as 1e-12"]
    never = has_zero if given.tested is None else has_zero & ~given.tested.all(axis=0)
    if never.any():
        message = f"{never.sum()} points that no method can fit have a class of logit -inf, first"
        fixes = "correct the label or the logit", "give probabilities, where a fit takes 0 as 1e-12"
        raise InputError(message, field="labels", row=int(never.argmax()), fixes=fixes)
    return [f"{count} test points have a class whose logit is -inf: their likelihood is infinite"]


def _right_by_column(matrix: NDArray[Any], labels: NDArray[Any]) -> float:
    """The share of labels that the largest column names if each column may be of any class.

    The points at even places say which class each column is of, the others are counted.
    """
    best, classes = matrix.argmax(axis=1), matrix.shape[1]
    pairs, counts = np.unique(best[::2] * classes + labels[::2], return_counts=True)
    class_of = np.full(classes, -1)
    for pair in pairs[np.argsort(counts)]:  # the most frequent class of a column comes last
        class_of[pair // classes] = pair % classes
    return float(np.mean(class_of[best[1::2]] == labels[1::2]))


def _in_order(matrix: NDArray[Any]) -> list[str]:
    """A note on columns that fall in every row, or rise in every row."""
    n, classes = matrix.shape
    if n < ENOUGH_ROWS or classes < 3:
        return []
    for word, sign in (("falls", 1), ("rises", -1)):
        # The first rows of most files show that they are in no order.
        parts = (sign * matrix[:8], sign * matrix)
        if all((rows[:, 1:] <= rows[:, :-1]).all() for rows in parts) and np.ptp(matrix, 0).any():
            return [
                f"every row {word} from the first column to the last: the K largest values of each "
                "point, in order, do not belong to classes, and cumulative probabilities are sums "
                "over classes; give one column per class"
            ]
    return []


def _notes(given: FilePoints, names: list[str]) -> list[str]:
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
    notes += _zeros(given)
    notes += _in_order(matrix)
    right, chance = float(np.mean(matrix.argmax(axis=1) == labels)), 1 / classes
    if right < chance - 2 * (chance * (1 - chance) / n) ** 0.5:
        is_least = matrix.argmin(axis=1) == labels
        reversed_right = float(np.mean(is_least))
        fix = "check that the columns are in the order of the classes"
        in_other_order = _right_by_column(matrix, labels)
        if reversed_right > chance and np.mean(is_least[1::2]) >= in_other_order:
            fix = (
                f"the smallest value names that of {100 * reversed_right:.1f} %: if these are "
                "losses, such as negative log-likelihoods, reverse their sign, or " + fix
            )
        notes.append(
            f"{BELOW_CHANCE}: the largest column names the label of {100 * right:.1f} % of the "
            f"points, guessing would name {100 * chance:.1f} %; {fix}"
        )
    return notes + note_on_ties(matrix, names)
