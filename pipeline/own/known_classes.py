"""Which columns of a table are those of classes that are known, from a calibrator or first rows.

New points may have no labels, so that nothing but names decides. Columns that bear no class are
left out.
"""

from collections.abc import Sequence
from dataclasses import replace

from .cells import Held
from .choices import matching
from .classes import Classes, class_of_single, leave_out, not_each_once
from .column_errors import in_question, no_bearers, several_sets
from .patterns import bearers_of, borne_alone, whole_sets
from .usual import SINGLE, spelt, with_names


def columns_of_classes(
    held: Held, columns: Sequence[str], classes: Sequence[str], chosen: str | None, notes: list[str]
) -> Classes:
    """The columns in the order of known `classes`, of those that have no other purpose.

    `chosen` is what the person names, by a pattern or a list; `notes` gets what is left out.

    Raises:
        InputError: no column, or several ones, can be that of a class.
    """
    if chosen is not None:
        is_pattern = "*" in chosen
        return _chosen(matching(chosen, columns, "--classes"), classes, is_pattern)
    named = with_names(columns)
    if len(named) < len(columns):
        notes.append("a column without a name is left out")
    sets = bearers_of(named, classes)
    if len(sets) > 1:
        raise several_sets(sets, sets, named)
    if not sets:
        return _single(held, named, classes, notes)
    bearers = sets[0]
    # Where a class's name alone is its column, the pattern fits every other column, too.
    if bearers.others and bearers.pattern != "*":
        raise in_question([*bearers.others], replace(bearers, others={}))
    return _in_order(bearers.labels, classes)


def _in_order(bearing: dict[str, str], classes: Sequence[str]) -> Classes:
    """The columns in the order of the classes that they bear."""
    columns = {text: name for name, text in bearing.items()}
    return [columns[text] for text in classes], list(classes), None


def _chosen(columns: list[str], classes: Sequence[str], is_pattern: bool) -> Classes:
    """The columns that the person names: by the classes in their names, else by place."""
    if len(columns) == 1:
        return _one(columns[0], classes)
    whole = whole_sets(columns, classes)
    if whole and not whole[0].others:
        return _in_order(whole[0].labels, classes)
    if is_pattern:
        raise not_each_once(columns, classes)
    return columns, list(classes), None


def _single(held: Held, columns: list[str], classes: Sequence[str], notes: list[str]) -> Classes:
    """The only column that can be the answers for one of two classes."""
    bearing = [name for name in columns if borne_alone(name, classes)]
    usual = [name for name in columns if SINGLE.fullmatch(spelt(name))]
    likely = bearing if len(bearing) == 1 else usual
    if len(classes) != 2 or len(likely) != 1:
        raise no_bearers(held, columns, classes, is_in_order=True)
    others = [name for name in columns if name not in likely]
    if others and borne_alone(likely[0], classes) is None:
        leave_out(held, others, likely, notes)
    return _one(likely[0], classes)


def _one(column: str, classes: Sequence[str]) -> Classes:
    """One column for two classes."""
    meant = class_of_single(column, classes)
    return [column], list(classes), list(classes).index(meant)
