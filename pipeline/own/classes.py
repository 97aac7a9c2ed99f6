"""Which columns are which classes: in a table by name, in an array by `class_names` or by number.

A column of a table is a class if it bears a label by the pattern that all labels share
(patterns.py), or if its name fits the pattern and rows sum to one with it only. One
column of any other name, and the table is refused until the person says what it is: a column that
is taken for a class makes every number wrong.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.validation import ROW_SUM_TOLERANCE, InputError

from .cells import Held, Labels, as_numbers, cut_off, some_of
from .choices import spelt
from .patterns import (
    TRUTH,
    Bearers,
    as_number,
    bearers_of,
    borne_alone,
    whole_sets,
)

SINGLE = re.compile(
    r"(.*_)?(p|pr|probs?|proba|probability|probabilities|scores?|risk)(_.*)?"
    r"|(y_)?logits?|log_?odds|z|output",
    re.IGNORECASE,
)
"""Names of a single column of answers that is taken for the second of two classes."""
MOST = 40  # columns that one message names
NO_LABELS = {"-100", "255"}  # of tokens and pixels without a label; -1 may be a class
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
        return _chosen(held, matching(chosen, columns, "--classes"), labels, "*" in chosen)
    if len(named := with_names(columns)) < len(columns):
        notes.append("a column without a name is left out")
    sets = bearers_of(named, labels.texts) if len(labels.texts) > 1 else []
    if not sets:
        return _of_few(held, named, labels)
    kinds = [_kind_of(held, found, labels) for found in sets]
    if len(sets) > 1:  # two models; logits and probabilities; one-hot labels
        patterns = [found.pattern for found in sets]
        if len(set(patterns)) < len(patterns) or "*" in patterns:
            patterns = [",".join(list(found.labels)[:MOST]) for found in sets]
        found_sets = f"{len(sets)} sets of columns bear all classes: {' and '.join(patterns[:4])}"
        fitting = [pattern for pattern, kind in zip(patterns, kinds, strict=True) if kind]
        ways = " or ".join(f"--classes {pattern!r}" for pattern in fitting[:2])
        raise InputError(f"{found_sets}; choose one: {ways or '--classes NAME,NAME'}")
    found, further = sets[0], list(sets[0].others)
    unknown = [name for name in named if name not in found.labels]
    if labels.are_known:
        unknown = [] if found.pattern == "*" else further
    elif unknown:
        off, complete = (_off(held, names) for names in (found.labels, found.named))
        if further == unknown and complete < 0.02 <= off:
            notes.append(f"{some_of(further)}: a class, since rows sum to one with it only")
            return _ordered(found.named, labels)
        if off <= ROW_SUM_TOLERANCE and off <= complete:
            notes.append(f"not used, since rows sum to one without: {some_of(unknown, MOST)}")
            unknown = []
    if unknown:
        likely = _likely(held, named, labels)
        if further and kinds[0] and not labels.are_known:
            raise _may_be_classes(found.named, further, unknown)
        raise _in_question(found.pattern if kinds[0] else None, unknown, likely)
    return _ordered(found.labels, labels)


def _off(held: Held, names: Iterable[str]) -> float:
    """How far sums over columns differ from one; infinite if these are no probabilities."""
    p = np.transpose([as_numbers(held[name]).to_numpy(float, na_value=np.nan) for name in names])
    off = float(np.abs(p.sum(axis=1) - 1).max())
    return off if (p >= 0).all() and (p % 1 != 0).any() else np.inf


def _kind_of(held: Held, found: Bearers, labels: Labels) -> str:
    """What the values of columns that bear all labels can be: probabilities, logits, or nothing.

    Logits are named so, or name the label oftener than guessing; features with numbers in their
    names do not.
    """
    bearing = found.labels
    if labels.are_known or _off(held, bearing) < 0.02:
        return "probabilities"
    values = [as_numbers(held[name]).to_numpy(float, na_value=np.nan) for name in bearing]
    matrix = np.transpose(values)
    if (matrix % 1 == 0).all():
        return ""
    if SINGLE.fullmatch(spelt(found.pattern)):
        return "logits"
    best = np.array([labels.texts.index(text) for text in bearing.values()])[matrix.argmax(axis=1)]
    n, count = len(best), len(labels.texts)
    by_chance = np.bincount(best, minlength=count) @ np.bincount(labels.places, minlength=count) / n
    return "logits" if np.sum(best == labels.places) > by_chance + 2 * n**0.5 else ""


def _chosen(held: Held, columns: list[str], labels: Labels, is_pattern: bool) -> Classes:
    """The columns that the person names are the classes, by name, or by place if labels are."""
    if len(columns) == 1:
        return _single(held, columns[0], labels)
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


def _likely(held: Held, columns: Sequence[str], labels: Labels) -> list[str]:
    """The columns that can be the answers for one of two classes, by their values and names."""
    if len(labels.texts) != 2:
        return []
    bearing = [name for name in columns if borne_alone(name, labels.texts)]
    usual = [name for name in columns if SINGLE.fullmatch(spelt(name))]
    if labels.are_known:
        return bearing if len(bearing) == 1 else usual
    values = {name: as_numbers(held[name]).to_numpy(float, na_value=np.nan) for name in columns}
    varied = [name for name in columns if (values[name] % 1 != 0).any()]  # no predicted classes
    sides = {name: _side(held[name], labels, name) for name in varied}
    within = [k for k in varied if 0 <= values[k].min() <= values[k].max() <= 1 and sides[k] > -3]
    varied = [name for name in varied if sides[name] > 3]
    for can_be in (within, varied if len(bearing) < 2 else []):
        for named in (bearing, usual):
            if found := [name for name in can_be if name in named]:
                return found
    return [name for name in columns if len(columns) == 1 and name in (*bearing, *usual)]


def _of_few(held: Held, columns: list[str], labels: Labels) -> Classes:
    """No pattern bears all labels: a single column for two classes, or a message."""
    texts = labels.texts
    if len(texts) == 1:
        raise InputError(
            f"labels: all {len(labels.places)} are {texts[0]}; give points of at least two classes"
        )
    likely = _likely(held, columns, labels)
    if len(likely) == 1:
        others = [name for name in columns if name not in likely]
        if not others or (labels.are_known and borne_alone(likely[0], texts)):
            return _single(held, likely[0], labels)
        raise _in_question(None, others, likely)
    way = ", or say which they are, in the order of the labels: --classes NAME,NAME"
    if len(texts) == 2 and len(columns) == 1:
        way = f", or say that it is for {texts[1]}: --classes {columns[0]}"
    elif labels.is_text and not labels.are_known:
        way = ""
    for text in () if labels.are_known else texts[:MOST]:
        others = [label for label in texts if label != text]
        if len(others) > 1 and (sets := bearers_of(columns, others)):
            is_none = text in NO_LABELS or _off(held, sets[0].labels) < 0.02
            raise InputError(
                f"labels: {text} in row {labels.row(text)} is no column's name (columns "
                f"{sets[0].pattern}); correct it, add the column{way}, or leave such points out: "
                f"--ignore-label {text if is_none else 'LABEL'}"
            )
    told = f"these columns do not bear the labels {some_of(texts)}"
    fix = f"name each column as its label{way} (what is no class: --ignore NAME,NAME)"
    raise InputError(f"{some_of(columns, MOST) or 'nothing beside the labels'}: {told}; {fix}")


def _single(held: Held, column: str, labels: Labels) -> Classes:
    """One column of answers: of the class that it bears, else of the second one."""
    if (count := len(labels.texts)) != 2:
        raise InputError(f"one column `{column}` for {count} classes; add one per class")
    meant, numbers = borne_alone(column, labels.texts), set(map(as_number, labels.texts))
    are_usual = None in numbers or numbers in ({0, 1}, {1, 2}, {-1, 1})
    if not are_usual and (meant is None or numbers & {-1, 0, *map(float, NO_LABELS)}):
        told = f"{' and '.join(labels.texts)}, which are not 0 and 1"
        raise InputError(f"labels: {told}; correct them, or add a column for each class")
    meant = meant or labels.texts[1]
    if not labels.are_known and _side(held[column], labels, column) < -3:
        told = f"one column `{column}`, whose values are smaller where the label is {meant}"
        raise InputError(f"{told}; rename it as the label that it is for")
    return [column], labels.texts, labels.texts.index(meant)


def _side(values: Any, labels: Labels, column: str) -> float:
    """By how many standard errors a column is larger at the points of its class."""
    meant = borne_alone(column, labels.texts) or labels.texts[1]
    x = as_numbers(values).to_numpy(float, na_value=np.nan)
    own = labels.places == labels.texts.index(meant)
    with np.errstate(all="ignore"):  # nan for what is no number, or constant
        error = x.std() * (1 / own.sum() + 1 / (~own).sum()) ** 0.5
        return float((x[own].mean() - x[~own].mean()) / error)


def _may_be_classes(
    bearing: Mapping[str, str], further: Sequence[str], unknown: Sequence[str]
) -> InputError:
    """The error on columns whose names fit the pattern without being labels: absent classes?"""
    numbers = sorted(-1.0 if (k := as_number(of)) is None else k for of in bearing.values())
    told = (
        f"{some_of(unknown, MOST)}: no label has this name, but {some_of(further)} may be a class"
    )
    first = numbers[0]
    if first in (0, 1) and numbers == [first + k for k in range(len(numbers))]:
        return InputError(f"{told} without a point; if so: --classes '{','.join(bearing)}'")
    ways = "--ignore NAME,NAME leaves out what is no class, --classes NAME,NAME names the classes"
    return InputError(f"{told}; {ways}")


def _in_question(
    pattern: str | None, unknown: Sequence[str], likely: Sequence[str] = ()
) -> InputError:
    """The error on columns that bear no label.

    `pattern` is None if its columns cannot be the answers; `likely` are single ones that can be.
    """
    groups = " (groups of points: --groups NAME)" * any("group" in k.lower() for k in unknown)
    told = f"{some_of(unknown, MOST)}: no label has this name"
    if pattern is not None:
        left_out = ",".join(k if len(k) < 60 else f"{k[:30]}*" for k in unknown[:MOST])
        told += f", while {pattern} has those of all labels; leave out what is no class: --ignore "
        return InputError(f"{told}{left_out}{groups}; or name the classes: --classes '{pattern}'")
    if len(likely) == 1:
        told += f"; `{likely[0]}` can be the answer for one of two classes: --classes {likely[0]}"
        return InputError(told + groups)
    fix = "name the columns of the classes: --classes NAME,NAME (what is none: --ignore NAME,NAME)"
    return InputError(f"{told}; {fix}{groups}")


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
            f"{' and '.join(columns)} rise together, like two models' log-odds of one class; leave "
            f"one out: --ignore {columns[0]} or --ignore {columns[1]}"
        )


def classes_by_place(
    labels: Labels,
    columns: int,
    names: list[str] | None,
    matrix: Any,
    notes: list[str],
    in_order: bool = False,
) -> tuple[NDArray[np.int64], list[str] | None]:
    """Class numbers [n] and the classes' names, for columns that are no labels by pattern.

    Labels that are among `names` [C] go by name. Whole numbers from 0 to C - 1 are the numbers of
    the columns; those from 1 to C, too, if the columns fit better then, with a note. `in_order`:
    the person says that the columns are in the order of the labels. InputError: any other labels,
    because a label that means "none" would become a class. `matrix` [n, C] decides what is advised.
    """
    texts, places = labels.texts, labels.places
    if set(texts) <= {"False", "True"} and not labels.is_text and names is None:
        texts = [TRUTH[text.casefold()] for text in texts]
    numbers = [as_number(text) for text in texts]
    in_range = None not in numbers and set(numbers) <= set(range(columns))
    counted = np.array([-1 if k is None or k % 1 else int(k) for k in numbers])[places]
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
    if labels.is_text and None not in numbers:
        _check_order_of_text(texts)
    if in_range:
        if counted.min() > 0:
            told = "none is 0, and they fit the columns better if counted from 1; say which column "
            _check_fit(matrix, counted, counted - 1, f"{told}is which: {ADD} ([{columns}])")
        return counted, names
    if None in numbers:
        told = f"names ({some_of(texts)}) for {columns} columns that have none"
        raise InputError(f"labels: {told}; {ADD}")
    by_number, from_one, by_order = (_hits(matrix, k) for k in (counted, counted - 1, places))
    if counted.min() > 0 and counted.max() == columns and from_one > by_number:
        notes.append(f"labels are counted from 1: the columns are taken for 1 to {columns}")
        return counted - 1, names or [str(k + 1) for k in range(columns)]
    is_complete = len(texts) == columns
    if in_order and is_complete and by_order > by_number:
        return places, names
    raise _no_class(labels, columns, by_number, by_order if is_complete else 0)


def _check_order_of_text(names: Sequence[str]) -> None:
    """Raise `InputError` if `names` are numbers that have another order as text than as numbers."""
    for as_text, number in zip(sorted(names), sorted(names, key=float), strict=True):
        if as_text != number:
            told = f"numbers as text: are the columns in the order of text (…, {as_text}, as "
            told += f"scikit-learn sorts names) or of numbers (…, {number})?"
            fix = "add class_names=model.classes_, one per column"
            raise InputError(told, field="labels", fixes=fix)


def _no_class(labels: Labels, columns: int, by_number: int, by_order: int) -> InputError:
    """The error on whole numbers of which some are no column's; it advises what the values show."""
    known = {str(k) for k in range(columns)}
    odd, clear = [text for text in labels.texts if text not in known], 2 * len(labels.places) ** 0.5
    are_fewer = by_order == 0 < by_number or by_number - by_order > clear
    ways = "leave such points out (--ignore-label LABEL), or name all columns (--classes NAME,NAME)"
    if set(odd) <= NO_LABELS or (are_fewer and len(odd) <= MOST):
        sign = "=" if len(odd) > 1 else " "
        ways = f"leave such points out: --ignore-label{sign}{','.join(odd)}"
    elif by_order - by_number > clear:
        ways = f"name the columns in their order: --classes={','.join(labels.texts)}"
    return InputError(
        f"labels: {some_of(odd)} in row {labels.row(odd[0])} is no column's number, which are 0 to "
        f"{columns - 1}; correct it, or {ways}"
    )


def _hits(matrix: Any, codes: NDArray[np.int64]) -> int:
    """At how many of the points the largest column is that of `codes` [n]."""
    values = np.asarray(matrix)
    if len(values) != len(codes):
        return 0
    if values.ndim == 1 or values.shape[1] == 1:  # of the second of two classes
        is_p = values.min() >= 0 and values.max() <= 1
        return int(np.sum((values.reshape(-1) > (0.5 if is_p else 0)) == codes))
    return int(np.sum(values.argmax(axis=1) == codes))


def _unknown(labels: Labels, names: Sequence[str]) -> InputError:
    if labels.are_known:
        fitted = f"the calibrator was fitted on {some_of(labels.texts)}; give these"
        return InputError(f"class_names: {some_of(names)}, but {fitted}")
    odd = next((text for text in labels.texts if text not in names), labels.texts[0])
    known = f"no class's name (they are {some_of(names)}); correct it"
    return InputError(f"labels: {cut_off(odd)} in row {labels.row(odd)} is {known}")


def _check_fit(matrix: Any, codes: NDArray[Any], other: NDArray[Any], told: str) -> None:
    """Refuse `codes` [n] if the largest columns are far oftener `other` [n]."""
    if _hits(matrix, other) - _hits(matrix, codes) > 4 * len(codes) ** 0.5:
        raise InputError(f"labels: {told}")
