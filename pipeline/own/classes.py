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
from numpy.typing import NDArray

from calibrators.class_order import TRUTH, Bearers, as_number, bearers_of, borne_alone, whole_sets
from metrics.validation import InputError
from pipeline.own.cells import Labels, numbers_of, some_of

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
    table: pd.DataFrame, columns: list[str], labels: Labels, chosen: str | None
) -> Classes:
    """The columns of the classes among which all labels are.

    Args:
        columns: those that have no other purpose.
        chosen: the columns that the person names, by a pattern or a list.

    Raises:
        InputError: one line with all columns in question and the options that settle it.
    """
    if chosen is not None:
        return _chosen(matching(chosen, columns, "--classes"), labels, "*" in chosen)
    columns, notes = with_names(columns)
    sets = bearers_of(columns, labels.texts) if len(labels.texts) > 1 else []
    if len(sets) > 1:
        raise InputError(_two_sets(sets))
    if not sets:
        return _of_few(columns, labels, notes)
    found, further = sets[0], list(sets[0].others)
    unknown = [name for name in columns if name not in found.labels]
    if labels.are_known:
        unknown = [] if found.pattern == "*" else further
    elif further and further == unknown and _needs(table, list(found.labels), further):
        notes = (*notes, f"{some_of(further)}: a class, since rows sum to one with it only")
        return _ordered({**found.labels, **found.others}, labels, notes)
    if unknown:
        fitting = [] if labels.are_known else further
        raise InputError(_in_question(found.pattern, unknown, fitting))
    return _ordered(found.labels, labels, notes)


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


def matching(text: str, names: Sequence[str], option: str | None) -> list[str]:
    """Those of `names` that a list of names and patterns means, in its order.

    Raises:
        InputError: `option` has an entry that means none; None: this is no mistake.
    """
    parts = [text] if text in names else [part.strip() for part in text.split(",") if part.strip()]
    found: dict[str, None] = {}
    for part in parts:
        fitting = [name for name in names if name == part] or [
            name for name in names if fnmatchcase(name, part.replace("[", "[[]"))
        ]
        if not fitting and option is not None:
            what = "column of answers" if option == "--classes" else "column"
            raise InputError(
                f"{option}: no {what} is called {part}; there are {some_of(names, MOST)}"
            )
        found |= dict.fromkeys(fitting)
    return list(found)


def with_names(names: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """The columns that have a name, and a note on the others (row numbers)."""
    kept = [name for name in names if name and not re.fullmatch(r"Unnamed: \d+", name)]
    return kept, ("a column without a name is left out",) if len(kept) < len(names) else ()


def _chosen(columns: list[str], labels: Labels, is_pattern: bool) -> Classes:
    """The columns that the person names are the classes, by name, or by place if labels are."""
    if len(columns) == 1:
        return _single(columns[0], labels)
    whole = whole_sets(columns, labels.texts)
    if whole and not (labels.are_known and whole[0].others):
        return _ordered({**whole[0].labels, **whole[0].others}, labels)
    if labels.are_known and not is_pattern:
        return Classes(columns, labels.texts)
    if labels.is_text or is_pattern or bearers_of(columns, labels.texts):
        raise InputError(
            f"--classes: {some_of(columns, MOST)} do not bear the labels "
            f"{some_of(labels.texts)}, each once; name each class as its label"
        )
    return Classes(columns, None)


def _ordered(bearing: dict[str, str], labels: Labels, notes: tuple[str, ...] = ()) -> Classes:
    """The columns in one order: that of their numbers, else that of their names as text.

    The file's order would move draws, and so floors and fits. A calibrator has an order.
    """
    numbers = {name: as_number(TRUTH.get(of.casefold(), of)) for name, of in bearing.items()}
    if labels.are_known:
        order = sorted(bearing, key=lambda name: labels.texts.index(bearing[name]))
    elif None in numbers.values():
        order = sorted(bearing, key=lambda name: bearing[name])
    else:
        order = sorted(bearing, key=lambda name: numbers[name] or 0)
        if not labels.is_text:  # 004 is 4, as labels are
            own = {name: f"{number:.15g}" for name, number in numbers.items()}
            bearing = {
                name: of if of in labels.texts else own[name] for name, of in bearing.items()
            }
    return Classes(order, [bearing[name] for name in order], None, notes)


def _of_few(columns: list[str], labels: Labels, notes: tuple[str, ...]) -> Classes:
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
            return _single(likely[0], labels, notes)
        raise InputError(_in_question(likely[0], others))
    way = ", or say which they are, in the order of the labels: --classes NAME,NAME"
    if len(texts) == 2 and len(columns) == 1:
        way = f", or say that it is for {texts[1]}: --classes {columns[0]}"
    elif labels.is_text and not labels.are_known:
        way = ""
    for text in () if labels.are_known else texts[:MOST]:
        others = [label for label in texts if label != text]
        if len(others) > 1 and (sets := bearers_of(columns, others)):
            row = int((labels.places == texts.index(text)).argmax())
            raise InputError(
                f"labels: {text} in row {row} is no column's name (columns {sets[0].pattern}); "
                f"correct it, or add the column{way}"
            )
    raise InputError(
        f"{some_of(columns, MOST) or 'nothing beside the labels'}: these columns do not bear the "
        f"labels {some_of(texts)}; name each column as its label{way} (what is no class: --ignore "
        "NAME,NAME)"
    )


def _single(column: str, labels: Labels, notes: tuple[str, ...] = ()) -> Classes:
    """One column of answers: of the class that it bears, else of the second one."""
    if len(labels.texts) != 2:
        raise InputError(
            f"one column `{column}` for {len(labels.texts)} classes; add one per class"
        )
    meant = labels.texts.index(borne_alone(column, labels.texts) or labels.texts[1])
    return Classes([column], labels.texts, meant, notes)


def _needs(table: pd.DataFrame, labels: list[str], further: list[str]) -> bool:
    """Whether rows sum to one only with the further columns."""
    try:
        matrix = numbers_of(table, [*labels, *further], "")
    except InputError:
        return False
    sums = matrix[:, : len(labels)].sum(axis=1), matrix.sum(axis=1)
    without, complete = (bool((np.abs(sum_ - 1) < 0.02).all()) for sum_ in sums)
    return bool((matrix >= 0).all()) and complete and not without


def _in_question(pattern: str, unknown: Sequence[str], fitting: Sequence[str] = ()) -> str:
    """The message on columns that bear no label; the names of some fit the pattern."""
    left_out = ",".join(k if len(k) < 60 else f"{k[:30]}*" for k in unknown[:MOST])
    groups = " (groups of points: --groups NAME)" * any("group" in k.lower() for k in unknown)
    say = "if all of these are classes" if fitting else "say which columns are the classes"
    return (
        f"{some_of(unknown, MOST)}: no label has this name, while {pattern} has those of "
        f"all labels; leave out what is no class: --ignore {left_out}{groups}; or "
        f"{say}: --classes '{pattern}', or a list"
    )


def _two_sets(sets: Sequence[Bearers]) -> str:
    """The message on columns of two models, of logits and probabilities, or of one-hot labels."""
    patterns = [found.pattern for found in sets]
    if len(set(patterns)) < len(patterns) or "*" in patterns:
        patterns = [",".join(list(found.labels)[:MOST]) for found in sets]
    return (
        f"{len(sets)} sets of columns bear all classes: {' and '.join(patterns[:4])}; "
        f"choose one: {' or '.join(f'--classes {pattern!r}' for pattern in patterns[:2])}"
    )
