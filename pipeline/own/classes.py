"""Which columns of a table are which classes, by their names.

A column is a class if it bears a label by the pattern that all labels share (patterns.py), or if
its name fits the pattern and rows sum to one with it only. One column of any other name, and the
table is refused until the person says what it is: a column that is taken for a class makes every
number wrong.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.validation import ROW_SUM_TOLERANCE

from .cells import Held, Labels, as_numbers
from .choices import MOST, matching
from .confidence import is_confidence
from .lists import has_lists
from .patterns import TRUTH, Bearers, as_number, bearers_of, borne_alone, whole_sets
from .spelling import one_number_twice
from .told import IGNORE, NAME_CLASSES, all_of_one_class, some_of
from .usual import LIKE_CLUSTERS, NO_LABELS, REJECTS, SINGLE, spelt, with_names

SURE = 3  # standard errors by which a column is larger, or smaller, at the points of its class
SUMS_TO_ONE = 0.02  # rows of columns that are probabilities miss one by less
Classes = tuple[list[str], list[str] | None, int | None]
"""Columns, the names of their classes (None: labels are places), and the class of a single one."""


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
        return _of_few(held, named, labels, notes)
    sets = [_with_a_named_class(held, found, named, labels) for found in sets]
    usable = [found for found in sets if _can_be_answers(held, found, labels)]
    if len(sets) > 1:  # two models; logits and probabilities; one-hot labels
        raise _several(sets, usable, named)
    found, further = sets[0], list(sets[0].others)
    unknown = [name for name in named if name not in found.labels]
    if labels.are_known:
        unknown = [] if found.pattern == "*" else further
    elif unknown:
        off, complete = (_off(held, names) for names in (found.labels, found.named))
        if further == unknown and complete < SUMS_TO_ONE <= off:
            notes.append(f"{some_of(further)}: a class, since rows sum to one with it only")
            return _ordered(found.named, labels)
        if off <= ROW_SUM_TOLERANCE and off <= complete:
            notes.append(f"not used, since rows sum to one without: {some_of(unknown, MOST)}")
            unknown = []
    if unknown:
        likely = [] if usable else _likely(held, named, labels)
        found = replace(found, others={}) if labels.are_known else found
        raise _in_question(unknown, found if usable else None, likely)
    return _ordered(found.labels, labels)


def _with_a_named_class(
    held: Held, found: Bearers, columns: Sequence[str], labels: Labels
) -> Bearers:
    """The columns that bear all labels, with one of a name where the labels are numbers.

    p_unknown beside p_0, p_1, … is a class without a point if rows sum to one with it only, and so
    is a single further column of any name.
    """
    others = [name for name in columns if name not in found.named]
    parts = found.parts_of(others)
    names = parts if parts or len(others) != 1 else {others[0]: others[0]}
    if labels.are_known or not names:
        return found
    complete = _off(held, [*found.named, *names])
    is_class = complete < SUMS_TO_ONE <= _off(held, found.named)
    return replace(found, others={**found.others, **names}) if is_class else found


def _values(held: Held, names: Iterable[str]) -> NDArray[np.float64]:
    """Some columns as numbers [n, columns], NaN for what is none."""
    return np.transpose([as_numbers(held[name]).to_numpy(float, na_value=np.nan) for name in names])


def _off(held: Held, names: Iterable[str]) -> float:
    """How far sums over columns differ from one; infinite if these are no probabilities."""
    p = _values(held, names)
    off = float(np.abs(p.sum(axis=1) - 1).max())
    return off if (p >= 0).all() and (p % 1 != 0).any() else np.inf


def _can_be_answers(held: Held, found: Bearers, labels: Labels) -> bool:
    """Whether the values of columns that bear all labels can be probabilities or logits.

    Logits are named so, or name the label oftener than guessing; features with numbers in their
    names do not.
    """
    if labels.are_known or _off(held, found.labels) < SUMS_TO_ONE:
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


def _chosen(held: Held, columns: list[str], labels: Labels, is_pattern: bool) -> Classes:
    """The columns that the person names are the classes, by name, or by place if labels are."""
    if len(columns) == 1:
        return _single(held, columns[0], labels)
    whole = whole_sets(columns, labels.texts)
    if whole and not (labels.are_known and whole[0].others):
        return _ordered(whole[0].named, labels)
    if labels.are_known and not is_pattern:
        return columns, labels.texts, None
    bearing = [] if labels.are_known else bearers_of(columns, labels.texts)
    is_clear = len(bearing) == 1 and not labels.is_text
    # A list says that the others are classes, too. A pattern may fit a p_value by chance.
    if is_clear and (not is_pattern or _off(held, columns) < SUMS_TO_ONE):
        others = {name: name for name in columns} | bearing[0].parts_of(columns)
        return _ordered({**others, **bearing[0].labels}, labels)
    if labels.is_text or is_pattern or bearers_of(columns, labels.texts):
        told = f"{some_of(columns, MOST)} do not bear the labels {some_of(labels.texts)}, each once"
        raise InputError(told, field="--classes", fixes="name each class as its label")
    return columns, None, None


def _ordered(bearing: dict[str, str], labels: Labels) -> Classes:
    """The columns in one order: that of their numbers, else that of their names as text.

    The file's order would move draws, and so floors and fits. A calibrator has an order.
    """
    numbers = {name: as_number(TRUTH.get(of.casefold(), of)) for name, of in bearing.items()}
    if labels.are_known:
        place = {text: number for number, text in enumerate(labels.texts)}
        order = sorted(bearing, key=lambda name: place[bearing[name]])
    elif None in numbers.values() and labels.is_text:
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


def _names_points(held: Held, column: str) -> bool:
    """Whether a column names what points are of, such as patients; fractions never do."""
    values = _values(held, [column])
    return LIKE_CLUSTERS.search(column) is not None and not (values % 1 > 0).any()


def _of_few(held: Held, columns: list[str], labels: Labels, notes: list[str]) -> Classes:
    """No pattern bears all labels: a single column for two classes, or a message."""
    if len(labels.texts) == 1:
        raise all_of_one_class(len(labels.places), labels.texts[0])
    likely = _likely(held, columns, labels)
    if len(likely) != 1:
        raise _no_bearers(held, columns, labels)
    others = [name for name in columns if name not in likely]
    if others and not (labels.are_known and borne_alone(likely[0], labels.texts)):
        in_question = [name for name in others if not _names_points(held, name)]
        if in_question:
            raise _in_question(in_question, likely=likely)
        notes.append(f"not used: {some_of(others, MOST)}")
    return _single(held, likely[0], labels)


def _likely(held: Held, columns: Sequence[str], labels: Labels) -> list[str]:
    """The columns that can be the answers for one of two classes, by their values and names."""
    if len(labels.texts) != 2:
        return []
    bearing = [name for name in columns if borne_alone(name, labels.texts)]
    usual = [name for name in columns if SINGLE.fullmatch(spelt(name))]
    if labels.are_known:
        return bearing if len(bearing) == 1 else usual
    values = {name: _values(held, [name]) for name in columns}
    # Whole numbers may be predicted classes.
    fractions = [name for name in columns if (values[name] % 1 != 0).any()]
    sides = {name: _side(held, name, labels) for name in fractions}
    in_unit = [name for name in fractions if 0 <= values[name].min() <= values[name].max() <= 1]
    probabilities = [name for name in in_unit if sides[name] > -SURE]
    log_odds = [name for name in fractions if sides[name] > SURE] if len(bearing) < 2 else []
    for can_be in (probabilities, log_odds):
        for named in (bearing, usual):
            if found := [name for name in can_be if name in named]:
                return found
    return list(columns) if len(columns) == 1 and columns[0] in (*bearing, *usual) else []


def _single(held: Held, column: str, labels: Labels) -> Classes:
    """One column of answers: of the class that it bears, else of the second one."""
    if (count := len(labels.texts)) != 2:
        raise InputError(f"one for {count} classes", column=column, fixes="add one per class")
    meant, numbers = borne_alone(column, labels.texts), set(map(as_number, labels.texts))
    are_usual = None in numbers or numbers in ({0, 1}, {1, 2}, {-1, 1})
    if not are_usual and (meant is None or numbers & {-1, 0, *map(float, NO_LABELS)}):
        told = f"{' and '.join(labels.texts)}, which are not 0 and 1"
        raise InputError(told, field="labels", fixes=["correct them", "add a column per class"])
    meant = meant or labels.texts[1]
    is_told_later = is_confidence(_values(held, [column]))  # confidence.py
    if not (labels.are_known or is_told_later) and _side(held, column, labels) < -SURE:
        told, fix = f"smaller values where the label is {meant}", "rename it as its own label"
        raise InputError(told, column=column, fixes=fix)
    return [column], labels.texts, labels.texts.index(meant)


def _side(held: Held, column: str, labels: Labels) -> float:
    """By how many standard errors a column is larger at the points of its class."""
    meant = borne_alone(column, labels.texts) or labels.texts[1]
    x, own = _values(held, [column])[:, 0], labels.places == labels.texts.index(meant)
    with np.errstate(all="ignore"):  # nan for what is no number, or constant
        error = x.std() * (1 / own.sum() + 1 / (~own).sum()) ** 0.5
        return float((x[own].mean() - x[~own].mean()) / error)


def _option(names: Collection[str], pattern: str, columns: Sequence[str]) -> str:
    """The option that means exactly these of the `columns`: their pattern, or their names."""
    for text in (pattern, *[",".join(names)] * (len(names) <= MOST)):
        if set(matching(text, columns, None)) == set(names):
            return f"--classes {text!r}"
    others = [*dict.fromkeys(re.sub(r"\d+", "*", k) for k in columns if k not in names)]
    text = ",".join(others)
    if len(others) > MOST or set(matching(text, columns, None)) & set(names):
        return "--classes NAME,NAME"
    return f"--ignore {text!r}"


def _several(
    sets: Sequence[Bearers], usable: Sequence[Bearers], columns: Sequence[str]
) -> InputError:
    """The error on several sets, of these columns, of which each bears all labels."""
    told = " and ".join(f"{found.pattern} ({some_of([*found.labels])})" for found in sets[:4])
    options = list[str]()
    for found in usable[:2]:  # further numbers are classes without a point
        are_numbers = None not in map(as_number, found.named.values())
        names = found.named if are_numbers else found.labels
        options.append(_option(names, found.pattern, columns))
    fixes = [f"take one set: {option}" for option in options] or [NAME_CLASSES]
    return InputError(f"{len(sets)} sets bear all classes: {told}", field="columns", fixes=fixes)


def _in_question(
    unknown: Sequence[str], found: Bearers | None = None, likely: Sequence[str] = ()
) -> InputError:
    """The error on columns that bear no label.

    The columns that were `found` bear all of them, and their others may be of classes without a
    point; `likely` are single ones that can be answers.
    """
    told, fixes = f"{some_of(unknown, MOST)}: no label has this name", [NAME_CLASSES, IGNORE]
    if found is not None and found.others:
        told += f", but {some_of([*found.others])} may be a class without a point"
        numbers = [as_number(of) for of in found.named.values()]
        if None in numbers or _are_counted(numbers):
            option = _option(found.named, found.pattern, [*found.labels, *unknown])
            fixes = [f"if so: {option}"]
    elif found is not None:
        left_out = ",".join(k if len(k) < 60 else f"{k[:30]}*" for k in unknown[:MOST])
        told += f", while {found.pattern} has those of all labels"
        fixes = [f"leave out what is no class: --ignore {left_out}"]
        option = _option(found.labels, found.pattern, [*found.labels, *unknown])
        fixes.append(f"name the classes: {option}")
        parts = found.parts_of(unknown)
        rejects = [name for name, part in parts.items() if spelt(part) in REJECTS]
        if rejects:
            names = ",".join([*found.labels, *rejects])
            fixes.append(f"if {some_of(rejects)} is a class, too: --classes {names!r}")
    elif len(likely) == 1:
        fixes = [f"take the one that can be the answer for one of two: --classes {likely[0]}"]
    if any("group" in name.lower() for name in unknown):
        fixes.append("name the groups of points: --groups NAME")
    return InputError(told, field="columns", fixes=fixes)


def _are_counted(numbers: Sequence[float | None]) -> bool:
    """Whether these are the whole numbers from 0 on, or from 1 on."""
    return any(set(numbers) == set(range(first, first + len(numbers))) for first in (0, 1))


def _no_bearers(held: Held, columns: list[str], labels: Labels) -> InputError:
    """The error on columns that do not bear the labels, or on one label that none bears."""
    texts, ways = labels.texts, list[str]()
    if len(texts) == 2 and len(columns) == 1:
        ways = [f"say that it is for {texts[1]}: --classes {columns[0]}"]
    elif labels.are_known or not labels.is_text:
        ways = ["say which they are, in the order of the labels: --classes NAME,NAME"]
    for text in () if labels.are_known else texts[:MOST]:
        others = [label for label in texts if label != text]
        if len(others) > 1 and (sets := bearers_of(columns, others)):
            is_none = text in NO_LABELS or _off(held, sets[0].labels) < SUMS_TO_ONE
            told = f"{text}, which is no column's name (columns {sets[0].pattern}),"
            out = f"leave such points out: --ignore-label {text if is_none else 'LABEL'}"
            fixes = ["correct it", "add the column", *ways, out]
            twice = one_number_twice(texts)
            if twice is not None and text in twice:
                told += f" and the same number as {twice[twice[0] == text]}"
                fixes[0] = f"write {twice[0]} and {twice[1]} alike if they are one class"
            return InputError(told, field="labels", row=labels.row(text), fixes=fixes)
    shown = some_of(columns, MOST) or "nothing beside the labels"
    told = f"{shown}: these do not bear the labels {some_of(texts)}"
    lists = [f"--logits {k} or --probabilities {k}" for k in columns if has_lists(held[k])]
    ways = [f"say which one has the answers: {way}" for way in lists] + ways
    fixes = ["name each column as its label", *ways, IGNORE]
    return InputError(told, field="columns", fixes=fixes)


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
        told = f"{' and '.join(columns)} rise together, like two models' log-odds of one class"
        fixes = [f"leave one out: --ignore {name}" for name in columns]
        raise InputError(told, field="columns", fixes=fixes)
