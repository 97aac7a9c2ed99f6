"""Which columns of a table are which classes, by their names.

A column is a class if it bears a label by the pattern that all labels share (patterns.py), or if
its name fits the pattern and rows sum to one with it only. One column of any other name, and the
table is refused until the person says what it is: a column that is taken for a class makes every
number wrong.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.validation import ROW_SUM_TOLERANCE

from .cells import FileColumns, Labels, as_numbers
from .choices import MOST, matching
from .column_errors import IN_ORDER, in_question, no_bearers, several_sets
from .confidence import is_confidence
from .message_text import all_of_one_class, some_of
from .patterns import TRUTH, Bearers, as_number, bearers_of, borne_alone, whole_sets
from .spelling import one_number_twice
from .usual_names import LIKE_CLUSTERS, NO_LABELS, SINGLE, spelt, with_names

SURE = 3  # standard errors by which a column is larger, or smaller, at the points of its class
SUMS_TO_ONE = 0.02  # rows of columns that are probabilities miss one by less
Classes = tuple[list[str], list[str] | None, int | None]
"""Columns, the names of their classes (None: labels are places), and the class of a single one."""


def classes_by_name(
    held: FileColumns, columns: list[str], labels: Labels, chosen: str | None, notes: list[str]
) -> Classes:
    """The columns of the classes, of `columns` that have no other purpose.

    `chosen` is what the person names, by a pattern or a list; `notes` gets what was decided.
    InputError names all columns in question, and the options that settle it.
    """
    if chosen is not None:
        return _chosen(held, matching(chosen, columns, "--classes"), labels, "*" in chosen)
    named = with_names(columns)
    if len(named) < len(columns):
        notes.append("a column without a name is left out")
    sets = bearers_of(named, labels.texts) if len(labels.texts) > 1 else []
    if not sets:
        return _single_column(held, named, labels, notes)
    sets = [_with_a_named_class(held, found, named) for found in sets]
    usable = [found for found in sets if _can_be_answers(held, found, labels)]
    if len(sets) > 1:  # two models; logits and probabilities; one-hot labels
        raise several_sets(sets, usable, named)
    found, further = sets[0], list(sets[0].others)
    unknown = [name for name in named if name not in found.labels]
    if unknown:
        off, complete = (_off(held, names) for names in (found.labels, found.named))
        if further == unknown and complete < SUMS_TO_ONE <= off:
            notes.append(f"{some_of(further)}: a class, since rows sum to one with it only")
            return _ordered(found.named, labels)
        if off <= ROW_SUM_TOLERANCE and off <= complete:
            notes.append(f"not used, since rows sum to one without: {some_of(unknown, MOST)}")
            unknown = []
    if unknown:
        likely = [] if usable else _likely(held, named, labels)
        raise in_question(unknown, found if usable else None, likely)
    return _ordered(found.labels, labels)


def _with_a_named_class(held: FileColumns, found: Bearers, columns: Sequence[str]) -> Bearers:
    """The columns that bear all labels, and those of a class whose label does not occur.

    p_unknown beside p_0, p_1, … is a class without a point if rows sum to one with it only, and so
    is a single further column of any name.
    """
    others = [name for name in columns if name not in found.named]
    parts = found.parts_of(others)
    names = parts if parts or len(others) != 1 else {others[0]: others[0]}
    if not names:
        return found
    complete = _off(held, [*found.named, *names])
    is_class = complete < SUMS_TO_ONE <= _off(held, found.named)
    return replace(found, others={**found.others, **names}) if is_class else found


def _values(held: FileColumns, names: Iterable[str]) -> NDArray[np.float64]:
    """Some columns as numbers [n, columns], NaN for what is none."""
    return np.transpose([as_numbers(held[name]).to_numpy(float, na_value=np.nan) for name in names])


def _off(held: FileColumns, names: Iterable[str]) -> float:
    """How far sums over columns differ from one; infinite if these are no probabilities."""
    p = _values(held, names)
    off = float(np.abs(p.sum(axis=1) - 1).max())
    return off if (p >= 0).all() and (p % 1 != 0).any() else np.inf


def _can_be_answers(held: FileColumns, found: Bearers, labels: Labels) -> bool:
    """Whether the values of columns that bear all labels can be probabilities or logits.

    Logits are named so, or name the label oftener than guessing; features with numbers in their
    names do not.
    """
    if _off(held, found.labels) < SUMS_TO_ONE:
        return True
    matrix = _values(held, found.labels)
    if (matrix % 1 == 0).all():
        return False
    if SINGLE.fullmatch(spelt(found.pattern)):
        return True
    place = {text: number for number, text in enumerate(labels.texts)}
    borne = np.array([place[text] for text in found.labels.values()])
    best, n, count = borne[matrix.argmax(axis=1)], len(matrix), len(labels.texts)
    by_chance = np.bincount(best, minlength=count) @ np.bincount(labels.places, minlength=count) / n
    return bool(np.sum(best == labels.places) > by_chance + 2 * n**0.5)


def _chosen(held: FileColumns, columns: list[str], labels: Labels, is_pattern: bool) -> Classes:
    """The columns that the person names are the classes, by name, or by place if labels are."""
    if len(columns) == 1:
        return _single(held, columns[0], labels)
    whole = whole_sets(columns, labels.texts)
    if whole:
        return _ordered(whole[0].named, labels)
    bearing = bearers_of(columns, labels.texts)
    is_clear = len(bearing) == 1 and not labels.is_text
    # A list says that the others are classes, too. A pattern may fit a p_value by chance.
    if is_clear and (not is_pattern or _off(held, columns) < SUMS_TO_ONE):
        others = {name: name for name in columns} | bearing[0].parts_of(columns)
        return _ordered({**others, **bearing[0].labels}, labels)
    if labels.is_text or is_pattern or bearing:
        raise not_each_once(columns, labels.texts)
    return columns, None, None


def _ordered(bearing: dict[str, str], labels: Labels) -> Classes:
    """The columns in one order: that of their numbers, else that of their names as text.

    The file's order would move draws, and so floors and fits.
    """
    numbers = {name: as_number(TRUTH.get(of.casefold(), of)) for name, of in bearing.items()}
    if None in numbers.values() and labels.is_text:
        order = sorted(bearing, key=bearing.__getitem__)
    else:
        # Where labels are numbers, a class of another name comes last.
        rank = {name: (k is None, k or 0, bearing[name]) for name, k in numbers.items()}
        order = sorted(bearing, key=rank.__getitem__)
        if not labels.is_text:  # 004 is 4, as labels are
            bearing = {
                name: of if of in labels.texts or numbers[name] is None else f"{numbers[name]:.15g}"
                for name, of in bearing.items()
            }
    return order, [bearing[name] for name in order], None


def leave_out(
    held: FileColumns, others: Sequence[str], likely: Sequence[str], notes: list[str]
) -> None:
    """Note the columns beside a single one of answers; InputError: one may have answers, too."""
    unclear = [name for name in others if _may_be_answers(held, name)]
    if unclear:
        raise in_question(unclear, likely=likely)
    notes.append(f"not used: {some_of(others, MOST)}")


def _may_be_answers(held: FileColumns, column: str) -> bool:
    """Whether a column has numbers that do not name what points are of, such as patients."""
    values = _values(held, [column])
    has_numbers = not np.isnan(values).all()  # dates and remarks have none
    names_points = LIKE_CLUSTERS.search(column) is not None and not (values % 1 > 0).any()
    return has_numbers and not names_points


def _single_column(
    held: FileColumns, columns: list[str], labels: Labels, notes: list[str]
) -> Classes:
    """No pattern bears all labels: a single column for two classes, or a message."""
    if len(labels.texts) == 1:
        raise all_of_one_class(len(labels.places), labels.texts[0])
    likely = _likely(held, columns, labels)
    if len(likely) != 1:
        raise _lacking_column(held, columns, labels) or no_bearers(
            held, columns, labels.texts, is_in_order=not labels.is_text
        )
    others = [name for name in columns if name not in likely]
    if others:
        leave_out(held, others, likely, notes)
    return _single(held, likely[0], labels)


def _likely(held: FileColumns, columns: Sequence[str], labels: Labels) -> list[str]:
    """The columns that can be the answers for one of two classes, by their values and names."""
    if len(labels.texts) != 2:
        return []
    bearing = [name for name in columns if borne_alone(name, labels.texts)]
    usual = [name for name in columns if SINGLE.fullmatch(spelt(name))]
    values = {name: _values(held, [name]) for name in columns}
    # Whole numbers may be predicted classes.
    fractions = [name for name in columns if (values[name] % 1 != 0).any()]
    sides = {name: _side(held, name, labels) for name in fractions}
    in_unit = [name for name in fractions if 0 <= values[name].min() <= values[name].max() <= 1]
    probabilities = [name for name in in_unit if sides[name] > -SURE]
    log_odds = [name for name in fractions if sides[name] > SURE] if len(bearing) < 2 else []
    for can_be in (probabilities, log_odds):
        for named in (bearing, usual):
            fitting = [name for name in can_be if name in named]
            if fitting:
                return fitting
    return list(columns) if len(columns) == 1 and columns[0] in (*bearing, *usual) else []


def _single(held: FileColumns, column: str, labels: Labels) -> Classes:
    """One column of answers: of the class that it bears, else of the second one."""
    meant = class_of_single(column, labels.texts)
    is_told_later = is_confidence(_values(held, [column]))  # confidence.py
    if not is_told_later and _side(held, column, labels) < -SURE:
        message = f"smaller values where the label is {meant}"
        raise InputError(message, column=column, fixes="rename it as its own label")
    return [column], labels.texts, labels.texts.index(meant)


def class_of_single(column: str, texts: Sequence[str]) -> str:
    """The class of two that one column of answers is for: the one in its name, else the second.

    Raises:
        InputError: there are more classes, or numbers of which none is surely the second one.
    """
    if len(texts) != 2:
        raise InputError(f"one for {len(texts)} classes", column=column, fixes="add one per class")
    meant, numbers = borne_alone(column, texts), set(map(as_number, texts))
    are_usual = None in numbers or numbers in ({0, 1}, {1, 2}, {-1, 1})
    may_be_none = bool(numbers & {-1, 0, *map(float, NO_LABELS)})
    if not are_usual and (meant is None or may_be_none):
        message = f"{' and '.join(texts)}, which are not 0 and 1"
        raise InputError(message, field="labels", fixes=["correct them", "add a column per class"])
    return meant or texts[1]


def not_each_once(columns: Sequence[str], texts: Sequence[str]) -> InputError:
    """The error on columns that --classes names and that do not bear each class once."""
    message = f"{some_of(columns, MOST)} do not bear the labels {some_of(texts)}, each once"
    return InputError(message, field="--classes", fixes="name each class as its label")


def _side(held: FileColumns, column: str, labels: Labels) -> float:
    """By how many standard errors a column is larger at the points of its class."""
    meant = borne_alone(column, labels.texts) or labels.texts[1]
    x, own = _values(held, [column])[:, 0], labels.places == labels.texts.index(meant)
    with np.errstate(all="ignore"):  # nan for what is no number, or constant
        error = x.std() * (1 / own.sum() + 1 / (~own).sum()) ** 0.5
        return float((x[own].mean() - x[~own].mean()) / error)


def _lacking_column(held: FileColumns, columns: Sequence[str], labels: Labels) -> InputError | None:
    """The error on the only label that no column bears, if there is one."""
    texts = labels.texts
    for text in texts[:MOST]:
        others = [label for label in texts if label != text]
        sets = bearers_of(columns, others) if len(others) > 1 else []
        if not sets:
            continue
        is_none = text in NO_LABELS or _off(held, sets[0].labels) < SUMS_TO_ONE
        message = f"{text}, which is no column's name (columns {sets[0].pattern}),"
        fixes = ["correct it", "add the column"]
        twice = one_number_twice(texts)
        if twice is not None and text in twice:
            message += f" and the same number as {twice[twice[0] == text]}"
            fixes[0] = f"write {twice[0]} and {twice[1]} alike if they are one class"
        if not labels.is_text:
            fixes.append(IN_ORDER)
        fixes.append(f"leave such points out: --ignore-label {text if is_none else 'LABEL'}")
        return InputError(message, field="labels", row=labels.row(text), fixes=fixes)
    return None


def refuse_two_models(columns: list[str], matrix: NDArray[Any], codes: NDArray[Any]) -> None:
    """Raise `InputError` if two numbered columns are two models' log-odds of the second class.

    They rise together, and their difference says little more of the class than one of them. Logits
    of two classes rise together only by a constant per row; their difference then says far more.
    """
    if len(columns) != 2 or len(codes) < 10:  # a calibrator's classes have no labels
        return
    first, second = matrix.T
    with np.errstate(all="ignore"):  # infinite or constant: nan, which refuses nothing
        together = np.corrcoef([first, second, second - first, codes])
    if together[0, 1] > 0.9 and abs(together[2, 3]) < 2 * abs(together[:2, 3]).max():
        message = f"{' and '.join(columns)} rise together, like two models' log-odds of one class"
        fixes = [f"leave one out: --ignore {name}" for name in columns]
        raise InputError(message, field="columns", fixes=fixes)
