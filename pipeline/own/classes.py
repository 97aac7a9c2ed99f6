"""Which columns are which classes: in a table by name, in an array by `class_names` or by number.

A column of a table is a class if it bears a label by the pattern that all labels share
(class_order.py), or if its name fits the pattern and rows sum to one with it only. One
column of any other name, and the table is refused until the person says what it is: a column that
is taken for a class makes every number wrong.
"""

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from utility_calibration.metrics.class_order import (
    TRUTH,
    as_number,
    bearers_of,
    borne_alone,
    check_order_of_text,
    whole_sets,
)
from utility_calibration.metrics.validation import InputError, check_labels

from .cells import Held, Labels, as_numbers, cut_off, some_of

SINGLE = re.compile(
    r"((y|pred|predicted|positive|true)_)?(p|pr|probs?|proba|probability|probabilities|scores?)"
    r"|(y_)?logits?|log_?odds|z|output",
    re.IGNORECASE,
)
"""Names of a single column of answers that is taken for the second of two classes."""
MOST = 40  # columns that one message names
ADD = "add `class_names`, one per column, or --classes NAME,NAME"  # says which column is which
Classes = tuple[list[str], list[str] | None, int | None]
"""Columns, the names of their classes (None: labels are places), and the class of a single one."""


def matching(text: str, names: Sequence[str], option: str | None) -> list[str]:
    """The `names` that names or patterns mean; InputError: one of an `option` means none."""
    found: dict[str, None] = {}
    for part in [text] if text in names else filter(None, map(str.strip, text.split(","))):
        pattern = part.replace("[", "[[]")
        fitting = [part] if part in names else [k for k in names if fnmatchcase(k, pattern)]
        if not fitting and option is not None:
            what = "column of answers" if option == "--classes" else "column"
            raise InputError(
                f"{option}: no {what} is called {part}; there are {some_of(names, MOST)}"
            )
        found |= dict.fromkeys(fitting)
    return list(found)


def with_names(names: Iterable[str]) -> list[str]:
    """The columns that have a name; others are row numbers."""
    return [name for name in names if name and not re.fullmatch(r"Unnamed: \d+", name)]


def classes_by_name(
    held: Held, columns: list[str], labels: Labels, chosen: str | None, notes: list[str]
) -> Classes:
    """The columns of the classes, of `columns` that have no other purpose.

    `chosen` is what the person names, by a pattern or a list; `notes` gets what was decided.
    InputError names all columns in question, and the options that settle it.
    """
    if chosen is not None:
        return _chosen(matching(chosen, columns, "--classes"), labels, "*" in chosen)
    if len(named := with_names(columns)) < len(columns):
        notes.append("a column without a name is left out")
    sets = bearers_of(named, labels.texts) if len(labels.texts) > 1 else []
    if not sets:
        return _of_few(named, labels)
    if len(sets) > 1:  # two models; logits and probabilities; one-hot labels
        patterns = [found.pattern for found in sets]
        if len(set(patterns)) < len(patterns) or "*" in patterns:
            patterns = [",".join(list(found.labels)[:MOST]) for found in sets]
        found_sets = f"{len(sets)} sets of columns bear all classes: {' and '.join(patterns[:4])}"
        ways = " or ".join(f"--classes {pattern!r}" for pattern in patterns[:2])
        raise InputError(f"{found_sets}; choose one: {ways}")
    found, further = sets[0], list(sets[0].others)
    unknown = [name for name in named if name not in found.labels]
    if labels.are_known:
        unknown = [] if found.pattern == "*" else further
    elif further and further == unknown:
        p = np.transpose([as_numbers(held[name]) for name in (*found.labels, *further)])
        sums = p[:, : -len(further)].sum(axis=1), p.sum(axis=1)
        without, complete = (bool((np.abs(of_rows - 1) < 0.02).all()) for of_rows in sums)
        if complete and not without and (p >= 0).all():
            notes.append(f"{some_of(further)}: a class, since rows sum to one with it only")
            return _ordered(found.named, labels)
    if unknown:
        raise _in_question(found.pattern, unknown, bool(further) and not labels.are_known)
    return _ordered(found.labels, labels)


def _chosen(columns: list[str], labels: Labels, is_pattern: bool) -> Classes:
    """The columns that the person names are the classes, by name, or by place if labels are."""
    if len(columns) == 1:
        return _single(columns[0], labels)
    whole = whole_sets(columns, labels.texts)
    if whole and not (labels.are_known and whole[0].others):
        return _ordered(whole[0].named, labels)
    if labels.are_known and not is_pattern:
        return columns, labels.texts, None
    if labels.is_text or is_pattern or bearers_of(columns, labels.texts):
        told = f"{some_of(columns, MOST)} do not bear the labels {some_of(labels.texts)}, each once"
        raise InputError(f"--classes: {told}; name each class as its label")
    return columns, None, None


def _ordered(bearing: dict[str, str], labels: Labels) -> Classes:
    """The columns in one order: that of their numbers, else that of their names as text.

    The file's order would move draws, and so floors and fits. A calibrator has an order.
    """
    numbers = {name: as_number(TRUTH.get(of.casefold(), of)) for name, of in bearing.items()}
    if labels.are_known:
        order = sorted(bearing, key=lambda name: labels.texts.index(bearing[name]))
    elif None in numbers.values():
        order = sorted(bearing, key=bearing.__getitem__)
    else:
        order = sorted(bearing, key=lambda name: numbers[name] or 0)
        if not labels.is_text:  # 004 is 4, as labels are
            bearing = {
                name: of if of in labels.texts else f"{numbers[name]:.15g}"
                for name, of in bearing.items()
            }
    return order, [bearing[name] for name in order], None


def _of_few(columns: list[str], labels: Labels) -> Classes:
    """No pattern bears all labels: a single column for two classes, or a message."""
    texts = labels.texts
    if len(texts) == 1:
        raise InputError(
            f"labels: all {len(labels.places)} are {texts[0]}; give points of at least two classes"
        )
    bearing = [name for name in columns if borne_alone(name, texts)]
    usual = [name for name in columns if SINGLE.fullmatch(name)]
    likely = bearing if len(bearing) == 1 else usual
    if len(texts) == 2 and len(likely) == 1:
        others = [name for name in columns if name not in likely]
        if not others or (labels.are_known and bearing):
            return _single(likely[0], labels)
        raise _in_question(likely[0], others)
    way = ", or say which they are, in the order of the labels: --classes NAME,NAME"
    if len(texts) == 2 and len(columns) == 1:
        way = f", or say that it is for {texts[1]}: --classes {columns[0]}"
    elif labels.is_text and not labels.are_known:
        way = ""
    for text in () if labels.are_known else texts[:MOST]:
        others = [label for label in texts if label != text]
        if len(others) > 1 and (sets := bearers_of(columns, others)):
            raise InputError(
                f"labels: {text} in row {labels.row(text)} is no column's name (columns "
                f"{sets[0].pattern}); correct it, or add the column{way}"
            )
    told = f"these columns do not bear the labels {some_of(texts)}"
    fix = f"name each column as its label{way} (what is no class: --ignore NAME,NAME)"
    raise InputError(f"{some_of(columns, MOST) or 'nothing beside the labels'}: {told}; {fix}")


def _single(column: str, labels: Labels) -> Classes:
    """One column of answers: of the class that it bears, else of the second one."""
    if (count := len(labels.texts)) != 2:
        raise InputError(f"one column `{column}` for {count} classes; add one per class")
    meant = borne_alone(column, labels.texts) or labels.texts[1]
    return [column], labels.texts, labels.texts.index(meant)


def _in_question(pattern: str, unknown: Sequence[str], may_fit: bool = False) -> InputError:
    """The error on columns that bear no label; the names of some may fit the pattern."""
    left_out = ",".join(k if len(k) < 60 else f"{k[:30]}*" for k in unknown[:MOST])
    groups = " (groups of points: --groups NAME)" * any("group" in k.lower() for k in unknown)
    say = "if all of these are classes" if may_fit else "say which columns are the classes"
    return InputError(
        f"{some_of(unknown, MOST)}: no label has this name, while {pattern} has those of "
        f"all labels; leave out what is no class: --ignore {left_out}{groups}; or "
        f"{say}: --classes '{pattern}', or a list"
    )


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
        raise InputError(
            f"{' and '.join(columns)} rise together, like two models' log-odds of one class; call "
            "one `score` and leave the other out (--ignore NAME), or if these are the logits of "
            f"two classes: --classes {','.join(columns)}"
        )


def classes_by_place(
    labels: Labels, columns: int, names: list[str] | None, matrix: Any, notes: list[str]
) -> tuple[NDArray[np.int64], list[str] | None]:
    """Class numbers [n] and the classes' names, for columns that are no labels by pattern.

    Labels that are among `names` [C] go by name. Labels from 0 to C - 1 are the numbers of the
    columns. Else C different labels are the columns in increasing order. `matrix` [n, C] shows
    whether labels fit another order much better; `notes` gets what was decided. InputError: a label
    is unknown, or the order of the columns is not known.
    """
    texts, places = labels.texts, labels.places
    if set(texts) <= {"False", "True"} and not labels.is_text and names is None:
        texts = [TRUTH[text.casefold()] for text in texts]
    numbers = [as_number(text) for text in texts]
    in_range = None not in numbers and set(numbers) <= set(range(columns))
    counted = np.array([int(number or 0) for number in numbers])[places] if in_range else None
    if names is not None:
        for found in whole_sets(names, texts):
            place = {label: names.index(name) for name, label in found.labels.items()}
            codes = np.array([place[text] for text in texts])[places]
            if not labels.is_text and in_range:
                told = "numbers among `class_names`, but they fit the columns better if they are "
                fix = "counted from 0; save the names as labels: class_names[labels]"
                _check_fit(matrix, codes, counted, told + fix)
            return codes, names
        if labels.is_text or all(as_number(name) is not None for name in names):
            raise _unknown(labels, names)
    if labels.is_text:
        check_order_of_text(texts, "labels", "add class_names=model.classes_, one per column")
    if counted is not None:
        if counted.min() > 0:
            told = "none is 0, and they fit the columns better if counted from 1; say which column "
            _check_fit(matrix, counted, counted - 1, f"{told}is which: {ADD} ([{columns}])")
        return counted, names
    if len(texts) == columns:
        order = "in alphabetical order," if None in numbers else "in the order"
        kind = "names" if None in numbers else f"not 0 to {columns - 1}"
        notes.append(f"labels are {kind}: the columns are taken {order} {some_of(texts)}")
        if labels.is_text:
            told = "names, and the columns do not fit their alphabetical order"
            _check_fit(matrix, places, None, f"{told} ({some_of(texts)}); say the order: {ADD}")
        return places, names or texts
    if not labels.is_text:
        check_labels(np.array(numbers, dtype=float)[places], len(places), columns)
    raise InputError(
        f"labels: not an array of class numbers 0 to {columns - 1} but {len(texts)} names "
        f"({some_of(texts)}) for {columns} columns; {ADD}"
    )


def _unknown(labels: Labels, names: Sequence[str]) -> InputError:
    if labels.are_known:
        fitted = f"the calibrator was fitted on {some_of(labels.texts)}; give these"
        return InputError(f"class_names: {some_of(names)}, but {fitted}")
    odd = next((text for text in labels.texts if text not in names), labels.texts[0])
    known = f"no class's name (they are {some_of(names)}); correct it"
    return InputError(f"labels: {cut_off(odd)} in row {labels.row(odd)} is {known}")


def _check_fit(matrix: Any, codes: NDArray[Any], other: Any, told: str) -> None:
    """Refuse `codes` [n] if the largest columns are far oftener `other` (None: the best order)."""
    n = len(codes)
    if np.ndim(matrix) != 2 or np.shape(matrix)[1] < 2 or len(matrix) != n:
        return
    best = np.argmax(matrix, axis=1)
    if other is None:
        count = np.shape(matrix)[1]
        hits = np.bincount(best * count + codes, minlength=count**2).reshape(count, count)
        rows, columns = linear_sum_assignment(hits, maximize=True)
        other = rows[np.argsort(columns)][codes]
    if np.sum(best == other) - np.sum(best == codes) > 4 * n**0.5:
        raise InputError(f"labels: {told}")
