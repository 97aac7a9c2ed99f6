"""Which columns of a table are the classes: by name, in any order, or not at all.

A column is a class if it bears a label by the pattern that all labels share
(`calibrators.class_order`), or if its name fits the pattern and rows sum to one with it only. One
column of any other name, and the table is refused until the person says what it is: a column that
is taken for a class makes every number wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from calibrators.class_order import TRUTH, Bearers, as_number, bearers_of, borne_alone
from metrics.validation import InputError
from pipeline.own.labels import Labels, some_of
from pipeline.own.read import numbers_of

if TYPE_CHECKING:
    import pandas as pd

SINGLE = re.compile(
    r"((y|pred|predicted|positive|true)_)?(p|pr|probs?|proba|probability|probabilities|scores?)"
    r"|(y_)?logits?|log_?odds|z|output",
    re.IGNORECASE,
)
"""Names of a single column of answers that is taken for the second of two classes."""
MOST = 40
"""Columns that one message names."""


class Classes(NamedTuple):
    """The columns of the classes."""

    columns: list[str]
    names: list[str] | None
    """Of the classes, in this order; a label is one of them. None: labels are places."""
    single: int | None = None
    """The class of a single column."""
    notes: tuple[str, ...] = ()


def classes_of_table(
    path: str,
    table: pd.DataFrame,
    roles: Sequence[str],
    labels: Labels,
    chosen: str | None,
) -> Classes:
    """The columns of the classes among which all labels are.

    Args:
        path: the file, for messages.
        roles: columns of other purposes, such as the labels.
        chosen: the columns that the person names, by a pattern or a list.

    Raises:
        InputError: one line with all columns in question and the options that settle it.
    """
    columns, notes = with_names([name for name in table.columns if name not in roles])
    if chosen is not None:
        return _chosen(path, columns, chosen, labels)
    sets = bearers_of(columns, labels.texts) if len(labels.texts) > 1 else []
    if len(sets) > 1:
        raise InputError(_two_sets(path, sets))
    if not sets:
        return _of_few(path, columns, labels, notes)
    found = sets[0]
    unknown = [name for name in columns if name not in found.labels]
    further = [name for name in unknown if name in found.others]
    if further and further == unknown and _needs(table, list(found.labels), further):
        unknown = []
        notes = (*notes, f"{some_of(further)}: a class, since rows sum to one with it only")
    if unknown:
        raise InputError(_in_question(path, found.pattern, unknown))
    return _ordered(found, columns, labels, notes)


def classes_known(
    path: str, table: pd.DataFrame, known: Sequence[str], chosen: str | None
) -> Classes:
    """The columns of the classes `known`, in their order; columns of other names are left out.

    For two classes one column is enough.

    Raises:
        InputError: a class has no column, or two; one line with the fix.
    """
    columns, _ = with_names(list(table.columns))
    if chosen is not None:
        columns = _named(path, columns, chosen)
    sets = bearers_of(columns, known)
    if len(sets) > 1:
        raise InputError(_two_sets(path, sets))
    if sets:
        if sets[0].pattern != "*" and (more := list(sets[0].others)):
            raise InputError(_in_question(path, sets[0].pattern, more))
        of = {label: column for column, label in sets[0].labels.items()}
        return Classes([of[name] for name in known], list(known))
    if chosen is not None and len(columns) == len(known):
        return Classes(columns, list(known))
    bearing = [name for name in columns if _borne(name, known)]
    if len(known) == 2:
        for only in (bearing, columns):
            if len(only) == 1 and (only == bearing or SINGLE.fullmatch(only[0])):
                meant = _borne(only[0], known) or known[1]
                return Classes(only, list(known), list(known).index(meant))
    missing = [name for name in known if not any(_borne(k, [name]) for k in columns)] or known
    raise InputError(
        f"{path}: no column for {some_of(missing, MOST)} (classes: {some_of(known)}; "
        f"columns: {some_of(columns)}); name each column as its class, or say which is which: "
        "--classes NAME,NAME in the order of the classes"
    )


def without_ignored(place: str, contents: Sequence[Any], ignore: str | None) -> list[Any]:
    """Tables, or arrays by name, without what --ignore names: whatever it would have been.

    Raises:
        InputError: no table has such a column. Other arrays of an npz have not even been read.
    """
    names = list(dict.fromkeys(str(name) for held in contents for name in held))
    gone: set[str] = set()
    for pattern in _listed(ignore or "", names):
        found = {name for name in names if name == pattern or fnmatchcase(name, pattern)}
        if not found and not all(isinstance(held, dict) for held in contents):
            raise InputError(
                f"{place}: --ignore: no column is called {pattern}; there are "
                f"{some_of(names, MOST)}"
            )
        gone |= found
    return [
        {name: of for name, of in held.items() if name not in gone}
        if isinstance(held, dict)
        else held[[name for name in held if name not in gone]]
        for held in contents
    ]


def _listed(text: str, names: Sequence[str]) -> list[str]:
    """The names and patterns of a list separated by commas; a name may have a comma, too."""
    return [text] if text in names else [part.strip() for part in text.split(",") if part.strip()]


def with_names(names: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """The columns that have a name, and a note on the others (row numbers)."""
    kept = [name for name in names if name and not re.fullmatch(r"Unnamed: \d+", name)]
    return kept, ("a column without a name is left out",) if len(kept) < len(names) else ()


def _named(path: str, columns: Sequence[str], chosen: str) -> list[str]:
    """The columns that --classes names, in its order."""
    found: dict[str, None] = {}
    for pattern in _listed(chosen, columns):
        fitting = [name for name in columns if name == pattern] or [
            name for name in columns if fnmatchcase(name, pattern.replace("[", "[[]"))
        ]
        if not fitting:
            raise InputError(
                f"{path}: --classes: no column of answers is called {pattern}; there are "
                f"{some_of(columns, MOST)}"
            )
        found |= dict.fromkeys(fitting)
    return list(found)


def _chosen(path: str, columns: list[str], chosen: str, labels: Labels) -> Classes:
    """The columns that the person names are the classes, by name, or by place if labels are."""
    columns = _named(path, columns, chosen)
    if len(columns) == 1:
        return _single(path, columns[0], labels)
    sets = bearers_of(columns, labels.texts)
    whole = [found for found in sets if len(found.labels) + len(found.others) == len(columns)]
    if len(whole) == 1:
        return _ordered(whole[0], columns, labels)
    if sets or labels.is_text or "*" in chosen:
        raise InputError(
            f"{path}: --classes: {some_of(columns, MOST)} do not bear the labels "
            f"{some_of(labels.texts)}, each once; name each class as its label"
        )
    return Classes(columns, None)


def _ordered(
    found: Bearers, columns: Sequence[str], labels: Labels, notes: tuple[str, ...] = ()
) -> Classes:
    """The columns of a set: numbers in increasing order, names in that of text."""
    bearing = {**found.labels, **found.others}
    order = sorted((name for name in columns if name in bearing), key=lambda name: bearing[name])
    numbers = {name: as_number(TRUTH.get(of.casefold(), of)) for name, of in bearing.items()}
    if None not in numbers.values():
        order.sort(key=lambda name: numbers[name] or 0)
        if not labels.is_text:  # 004 is 4, as labels are
            bearing |= {name: f"{numbers[name]:.15g}" for name in found.others}
    return Classes(order, [bearing[name] for name in order], None, notes)


def _of_few(path: str, columns: list[str], labels: Labels, notes: tuple[str, ...]) -> Classes:
    """No pattern bears all labels: a single column for two classes, or a message."""
    texts = labels.texts
    if not columns:
        raise InputError(f"{path}: no column beside the labels; add one per class")
    if len(texts) == 1:
        raise InputError(
            f"{path}: labels: all {len(labels.places)} are {texts[0]}; give points of at least two "
            "classes"
        )
    bearing = [name for name in columns if _borne(name, texts)]
    if len(texts) == 2 and len(columns) == 1 and (bearing or SINGLE.fullmatch(columns[0])):
        return _single(path, columns[0], labels, notes)
    if len(texts) == 2 and len(bearing) == 1:
        unknown = [name for name in columns if name not in bearing]
        raise InputError(_in_question(path, bearing[0], unknown))
    usual = [name for name in columns if SINGLE.fullmatch(name)]
    if len(texts) == 2 and len(usual) == 1 and len(columns) > 1:
        raise InputError(_in_question(path, usual[0], [k for k in columns if k not in usual]))
    way = ""
    if len(texts) == 2 and len(columns) == 1:
        way = f", or say that it is for {texts[1]}: --classes {columns[0]}"
    elif not labels.is_text:
        way = ", or say which they are, in the order of the labels: --classes NAME,NAME"
    for text in texts[:MOST]:
        others = [label for label in texts if label != text]
        if len(others) > 1 and (sets := bearers_of(columns, others)):
            row = int((labels.places == texts.index(text)).argmax())
            raise InputError(
                f"{path}: labels: {text} in row {row} is no column's name (columns "
                f"{sets[0].pattern}); correct it, or add the column{way}"
            )
    raise InputError(
        f"{path}: {some_of(columns, MOST)}: these columns do not bear the labels {some_of(texts)}; "
        f"name each column as its label{way} (what is no class: --ignore NAME,NAME)"
    )


def _single(path: str, column: str, labels: Labels, notes: tuple[str, ...] = ()) -> Classes:
    """One column of answers: of the class that it bears, else of the second one."""
    if len(labels.texts) != 2:
        raise InputError(
            f"{path}: one column `{column}` for {len(labels.texts)} classes; add one per class"
        )
    meant = _borne(column, labels.texts) or labels.texts[1]
    if column != meant:
        notes = (*notes, f"column `{column}` is taken for {meant}")
    return Classes([column], labels.texts, labels.texts.index(meant), notes)


def _borne(column: str, labels: Sequence[str]) -> str | None:
    """The label in the name of a single column: -1, not 1, in p_-1."""
    signed = [k for k in labels if k[0] == "-" and re.search(rf"(?<![^\W_]){k}(?!\d)", column)]
    return signed[0] if len(signed) == 1 else borne_alone(column, labels)


def _needs(table: pd.DataFrame, labels: list[str], further: list[str]) -> bool:
    """Whether rows sum to one only with the further columns."""
    return _complete(table, [*labels, *further]) and not _complete(table, labels)


def _complete(table: pd.DataFrame, columns: list[str]) -> bool:
    """Whether these columns alone are probabilities."""
    try:
        matrix = numbers_of("", table, columns, "")
    except InputError:
        return False
    return bool((matrix >= 0).all()) and bool((np.abs(matrix.sum(axis=1) - 1) < 0.02).all())


def _in_question(path: str, pattern: str, unknown: Sequence[str]) -> str:
    """The message on columns that bear no label."""
    left_out = ",".join(k if len(k) < 60 else f"{k[:30]}*" for k in unknown[:MOST])
    groups = " (groups of points: --groups NAME)" * any("group" in k.lower() for k in unknown)
    return (
        f"{path}: {some_of(unknown, MOST)}: no label has this name, while {pattern} has those of "
        f"all labels; leave out what is no class: --ignore {left_out}{groups}; or "
        f"say which columns are the classes: --classes '{pattern}', or a list"
    )


def _two_sets(path: str, sets: Sequence[Bearers]) -> str:
    """The message on columns of two models, of logits and probabilities, or of one-hot labels."""
    patterns = [found.pattern for found in sets]
    if len(set(patterns)) < len(patterns) or "*" in patterns:
        patterns = [",".join(list(found.labels)[:MOST]) for found in sets]
    return (
        f"{path}: {len(sets)} sets of columns bear all classes: {' and '.join(patterns[:4])}; "
        f"choose one: {' or '.join(f'--classes {pattern!r}' for pattern in patterns[:2])}"
    )
