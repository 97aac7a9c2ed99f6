"""The errors on columns that do not show which class they bear, each with what settles it."""

import re
from collections.abc import Collection, Sequence

from utility_calibration.metrics.errors import InputError

from ..reading.cells import FileColumns, Labels
from ..reading.spelling import one_number_twice
from ..rows.lists import has_lists
from ..words.file_options import MOST, matching
from ..words.message_text import IGNORE, NAME_CLASSES, some_of, typed
from ..words.patterns import Bearers, as_number, bearers_of, borne_alone
from ..words.usual_names import NO_LABELS, PREDICTED, REJECTS, spelt
from .answers import KINDS

IN_ORDER = "say which they are, in the order of the labels: --classes NAME,NAME"


def _option(names: Collection[str], pattern: str, columns: Sequence[str]) -> str:
    """The option that means exactly these of the `columns`: their pattern, or their names."""
    texts = [pattern]
    if len(names) <= MOST:
        texts.append(",".join(names))
    # A pattern is short, but may fit other columns, too: each text is tried as if it were typed.
    for text in texts:
        if set(matching(text, columns, None)) == set(names):
            return typed("--classes", text)
    # Too many to name: what is no class is left out by patterns instead.
    others = [re.sub(r"\d+", "*", column) for column in columns if column not in names]
    patterns = list(dict.fromkeys(others))
    text = ",".join(patterns)
    if len(patterns) > MOST or set(matching(text, columns, None)) & set(names):
        return "--classes NAME,NAME"
    return typed("--ignore", text)


def several_sets(
    sets: Sequence[Bearers], usable: Sequence[Bearers], columns: Sequence[str]
) -> InputError:
    """The error on several sets, of these columns, of which each bears all labels."""
    shown = [f"{bearers.pattern} ({some_of([*bearers.label_of_column])})" for bearers in sets[:4]]
    message = f"{len(sets)} sets bear all classes: {' and '.join(shown)}"
    fixes = list[str]()
    for bearers in usable[:2]:
        # Further numbers are classes without a point.
        are_numbers = None not in map(as_number, bearers.named.values())
        names = bearers.named if are_numbers else bearers.label_of_column
        fixes.append(f"take one set: {_option(names, bearers.pattern, columns)}")
    return InputError(message, field="columns", fixes=fixes or [NAME_CLASSES])


def in_question(
    unknown: Sequence[str], bearers: Bearers | None = None, likely: Sequence[str] = ()
) -> InputError:
    """The error on columns that bear no label.

    Args:
        unknown: these columns.
        bearers: the columns that bear all labels; its further columns may be classes
            without a point.
        likely: single columns that can be answers.
    """
    message = f"{some_of(unknown, MOST)}: no label has this name"
    short = [name if len(name) < 60 else f"{name[:30]}*" for name in unknown[:MOST]]
    left_out = ",".join(short)  # with patterns in place of long names
    without_unknown = f"leave out what is no class: {typed('--ignore', left_out)}"
    fixes = [NAME_CLASSES, IGNORE]
    if bearers is not None and bearers.part_of_further_column:
        further = some_of([*bearers.part_of_further_column])
        message += f", but {further} may be a class without a case"
        numbers = [as_number(text) for text in bearers.named.values()]
        # p_7 beside p_0 to p_3 is rather the number of something else.
        if None in numbers or _are_counted(numbers):
            option = _option(bearers.named, bearers.pattern, [*bearers.label_of_column, *unknown])
            fixes = [f"if so: {option}"]
            # Any other column, such as an id, may stand beside classes that have names.
            if None in numbers:
                fixes.append(without_unknown)
    elif bearers is not None:
        message += f", while {bearers.pattern} has those of all labels"
        fixes = [without_unknown]
        bearing = bearers.label_of_column
        option = _option(bearing, bearers.pattern, [*bearing, *unknown])
        fixes.append(f"name the classes: {option}")
        parts = bearers.parts_of(unknown)
        rejects = [name for name, part in parts.items() if spelt(part) in REJECTS]
        if rejects:
            names = ",".join([*bearers.label_of_column, *rejects])
            option = typed("--classes", names)
            fixes.append(f"if {some_of(rejects)} is a class, too: {option}")
    elif len(likely) == 1:
        option = typed("--classes", likely[0])
        fixes = [f"take the one that can be the answer for one of two: {option}"]
    if any("group" in name.lower() for name in unknown):
        fixes.append("name the groups of cases: --groups NAME")
    return InputError(message, field="columns", fixes=fixes)


def _are_counted(numbers: Sequence[float | None]) -> bool:
    """Whether these are the whole numbers from 0 on, or from 1 on."""
    count = len(numbers)
    return set(numbers) in (set(range(count)), set(range(1, count + 1)))


def no_bearers(
    rows: FileColumns, columns: Sequence[str], texts: Sequence[str], is_in_order: bool
) -> InputError:
    """The error on columns that bear none of the classes `texts`.

    is_in_order: whether --classes may name columns in the order of the classes.
    """
    ways = []
    for name in columns:
        if has_lists(rows[name]):
            options = " or ".join(typed(f"--{kind}", name) for kind in KINDS)
            ways.append(f"say which one has the answers: {options}")
    if len(texts) == 2 and len(columns) == 1:
        ways.append(f"say that it is for {texts[1]}: {typed('--classes', columns[0])}")
    elif is_in_order:
        ways.append(IN_ORDER)
    shown = some_of(columns, MOST) or "nothing beside the labels"
    message = f"{shown}: these do not bear the labels {some_of(texts)}"
    fixes = ["name each column as its label", *ways, IGNORE]
    lacking = _lacking(columns, texts)
    if is_in_order and lacking:
        message = f"{shown}: no column bears {some_of(lacking, MOST)}"
        fixes = [f"add the column{'s' * (len(lacking) > 1)}"]
    return InputError(message, field="columns", fixes=fixes)


def one_for_many(
    rows: FileColumns, columns: Sequence[str], texts: Sequence[str]
) -> InputError | None:
    """The error on one column of numbers for more than two classes `texts`, if there is one.

    A column with predicted classes is none, even if classes are numbers.
    """
    numeric = [
        name
        for name in columns
        if getattr(rows[name].dtype, "kind", "") in ("i", "u", "f") and spelt(name) not in PREDICTED
    ]
    if len(texts) < 3 or len(numeric) != 1:
        return None
    message = f"`{numeric[0]}` is one column of numbers for {len(texts)} classes"
    fixes = [
        "give a column per class, named as its label",
        "score right and wrong: two columns, `label` (1 or 0) and this one, named 1",
    ]
    return InputError(message, field="columns", fixes=fixes)


def _lacking(columns: Sequence[str], texts: Sequence[str]) -> list[str]:
    """The classes that no column bears, if all others, at least two, have one by one pattern."""
    borne = [text for text in texts if any(borne_alone(name, [text]) for name in columns)]
    # One class in one name could be chance; several by one pattern are meant.
    if len(borne) < 2 or len(bearers_of(columns, borne)) != 1:
        return []
    return [text for text in texts if text not in borne]


def not_each_once(columns: Sequence[str], texts: Sequence[str]) -> InputError:
    """The error on columns that --classes names and that do not bear each class once."""
    message = f"{some_of(columns, MOST)} do not bear the labels {some_of(texts)}, each once"
    return InputError(message, field="--classes", fixes="name each class as its label")


def lacking_column(text: str, labels: Labels, bearers: Bearers, is_complete: bool) -> InputError:
    """The error on the only label that no column bears.

    Args:
        text: this label.
        labels: those of all points.
        bearers: the columns that bear all other labels.
        is_complete: whether rows sum to one without a column for it.
    """
    named = some_of([*bearers.label_of_column]) if bearers.pattern == "*" else bearers.pattern
    message = f"no column is named by the label {text} (the columns are {named}), first"
    fixes = ["correct it", "add the column"]
    twice = one_number_twice(labels.texts)
    if twice is not None and text in twice:  # 01 beside 1, of which one has no column
        other = twice[1] if text == twice[0] else twice[0]
        message = f"{text} is the same number as {other}, and {message}"
        fixes[0] = f"write {twice[0]} and {twice[1]} alike if they are one class"
    if not labels.is_text:
        fixes.append(IN_ORDER)
    is_no_class = text in NO_LABELS or is_complete
    option = typed("--ignore-label", text if is_no_class else "LABEL")
    fixes.append(f"leave such cases out: {option}")
    return InputError(message, field="labels", row=labels.row(text), fixes=fixes)
