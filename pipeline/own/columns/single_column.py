"""One column of answers for two classes: which column it is, and which class it is of."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError

from ..reading.cells import FileColumns, Labels, as_numbers
from ..words.patterns import as_number, borne_alone
from ..words.usual_names import CONFIDENCE, LIKE_CLUSTERS, NO_LABELS, SINGLE, spelt
from .column_errors import in_question
from .confidence import is_confidence

SURE = 3
"""Standard errors by which a column is larger, or smaller, at the points of its class."""


class ClassColumns(NamedTuple):
    """The columns of the classes."""

    columns: list[str]
    names: list[str] | None
    """The class of each column, or both classes of a single one; None: labels are places."""
    single: int | None = None
    """The class of the only column; None: each class has a column."""


def values_of(rows: FileColumns, names: Iterable[str]) -> NDArray[np.float64]:
    """Some columns as numbers [n, columns], NaN for what is none."""
    return np.transpose([as_numbers(rows[name]).to_numpy(float, na_value=np.nan) for name in names])


def refuse_answers(rows: FileColumns, others: Sequence[str], likely: Sequence[str]) -> None:
    """Raise `InputError` if a column beside a single one of answers may have answers, too."""
    unclear = [name for name in others if may_be_answers(rows, name)]
    if unclear:
        raise in_question(unclear, likely=likely)


def may_be_answers(rows: FileColumns, column: str) -> bool:
    """Whether a column has numbers that do not name what points are of, such as patients."""
    values = values_of(rows, [column])
    has_numbers = not np.isnan(values).all()  # dates and remarks have none
    has_fractions = bool((values > np.floor(values)).any())
    names_points = LIKE_CLUSTERS.search(column) is not None and not has_fractions
    return has_numbers and not names_points


def usual_singles(columns: Sequence[str]) -> list[str]:
    """The columns that are named like answers for one of two classes, else like a confidence."""
    usual = [name for name in columns if SINGLE.fullmatch(spelt(name))]
    return usual or [name for name in columns if CONFIDENCE.fullmatch(spelt(name))]


def likely_columns(rows: FileColumns, columns: Sequence[str], labels: Labels) -> list[str]:
    """The columns that can be the answers for one of two classes, by their values and names."""
    if len(labels.texts) != 2:
        return []
    bearing = [name for name in columns if borne_alone(name, labels.texts)]
    usual = usual_singles(columns)
    probabilities, log_odds = list[str](), list[str]()
    for name in columns:
        values = values_of(rows, [name])
        if (values == np.floor(values)).all():
            continue  # whole numbers may be predicted classes
        # Probabilities need not tell the classes apart; what else may be log-odds must.
        side = _side(rows, name, labels)
        may_be_either = is_confidence(values)  # in the predicted class, whichever this is
        if 0 <= values.min() <= values.max() <= 1 and (side > -SURE or may_be_either):
            probabilities.append(name)
        if side > SURE and len(bearing) < 2:
            log_odds.append(name)
    for can_be in (probabilities, log_odds):
        for named in (bearing, usual):
            fitting = [name for name in can_be if name in named]
            if fitting:
                return fitting
    return list(columns) if len(columns) == 1 and columns[0] in (*bearing, *usual) else []


def single_column(rows: FileColumns, column: str, labels: Labels) -> ClassColumns:
    """One column of answers: of the class that it bears, else of the second one."""
    meant = class_of_single(column, labels.texts)
    values = values_of(rows, [column])
    # Also in percent; confidence.py says so later.
    may_be_either = is_confidence(values) or is_confidence(values / 100)
    if not may_be_either and _side(rows, column, labels) < -SURE:
        message = f"smaller values where the label is {meant}"
        raise InputError(message, column=column, fixes="rename it as its own label")
    return ClassColumns([column], labels.texts, labels.texts.index(meant))


def class_of_single(column: str, texts: Sequence[str]) -> str:
    """The class of two that one column of answers is for: the one in its name, else the second.

    Raises:
        InputError: there are more classes, or numbers of which none is surely the second one.
    """
    if len(texts) != 2:
        raise InputError(f"one for {len(texts)} classes", column=column, fixes="add one per class")
    meant = borne_alone(column, texts)
    numbers = set(map(as_number, texts))
    # Of 3 and 7 neither is surely the positive class, and -100 may mean that there is no label.
    are_usual = None in numbers or numbers in ({0, 1}, {1, 2}, {-1, 1})
    may_be_none = bool(numbers & {-1, 0, *map(float, NO_LABELS)})
    if not are_usual and (meant is None or may_be_none):
        message = f"{' and '.join(texts)}, which are not 0 and 1"
        raise InputError(message, field="labels", fixes=["correct them", "add a column per class"])
    return meant or texts[1]


def _side(rows: FileColumns, column: str, labels: Labels) -> float:
    """By how many standard errors a column is larger at the points of its class."""
    meant = borne_alone(column, labels.texts) or labels.texts[1]
    values = values_of(rows, [column])[:, 0]
    is_own = labels.places == labels.texts.index(meant)
    with np.errstate(all="ignore"):  # nan for what is no number, or constant
        error = values.std() * (1 / is_own.sum() + 1 / (~is_own).sum()) ** 0.5
        return float((values[is_own].mean() - values[~is_own].mean()) / error)
