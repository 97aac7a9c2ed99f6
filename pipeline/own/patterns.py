"""Which column of a table bears which class: by name, whatever the order of the columns.

The columns that bear the labels share one pattern with one varying part: `prob_{}`, `{}_score`,
`Pr[{}]`, or a bare `{}`. Numbers are compared as numbers (3, 03 and 3.0 are one class), text letter
by letter and, if that finds nothing, without regard to case and punctuation.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

NUMBER = re.compile(r"[+-]?\d{1,15}(\.\d{1,6})?")  # longer text is the name of something
SCIENTIFIC = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
"""Any number as programs write it, in lower case: 1, 01, 1.0, 1e5."""
NUMBERS_WITHIN = (r"\d+", r"[+-]\d+", r"\d+\.\d+", r"[+-]\d+\.\d+")
"""Numbers in the name of a column count only as a whole: 3 does not stand in p13."""
TRUTH = {"false": "0", "true": "1"}  # other names that programs write for two classes


@dataclass(frozen=True)
class Bearers:
    """The columns that bear all labels by one pattern, and those that look like further classes.

    pattern: as people write it, prob_*. labels: label by column, in the order of the columns.
    others: column and varying part, where the pattern fits but no label is meant. affixes: what the
    pattern has before and after the varying part.
    """

    pattern: str
    labels: dict[str, str]
    others: dict[str, str]
    affixes: tuple[str, str] = ("", "")

    @property
    def named(self) -> dict[str, str]:
        """The class of every column that the pattern fits."""
        return {**self.labels, **self.others}

    def parts_of(self, columns: Sequence[str]) -> dict[str, str]:
        """The varying part of each column that the pattern fits letter by letter, number or not."""
        before, after = self.affixes
        fit = re.compile(f"{re.escape(before)}(.+){re.escape(after)}", re.DOTALL).fullmatch
        matches = [fit(name) for name in columns]
        parts = {match[0]: match[1].strip("_- ") for match in matches if match is not None}
        return {name: part for name, part in parts.items() if part}


def as_number(name: str) -> float | None:
    """The number that `name` writes, else None."""
    return float(name) if NUMBER.fullmatch(name) else None


def folded(name: str) -> str:
    """A name in lower case, with `_` for each run of other signs than letters and digits."""
    return re.sub(r"[\W_]+", "_", name).casefold()


def bearers_of(columns: Sequence[str], labels: Sequence[str]) -> list[Bearers]:
    """All different sets of columns that bear every one of `labels`, each label once."""
    spellings = [{label: label for label in labels}]
    if len(labels) == 2:
        numbers = {label: as_number(label) for label in labels}
        if {label.casefold() for label in labels} == TRUTH.keys():
            spellings.append({TRUTH[label.casefold()]: label for label in labels})
        elif set(numbers.values()) == {0, 1}:
            spellings.append({str(bool(number)): label for label, number in numbers.items()})
    for spelling in spellings:
        keys: list[Callable[[str], Any]] = [str, folded]
        if len({as_number(text) for text in spelling} - {None}) == len(spelling):
            keys = [as_number]
        for key in keys:
            wanted = {key(text): label for text, label in spelling.items()}
            if len(wanted) < len(labels):
                continue
            sets = _bearing(columns, wanted, key)
            if sets:
                return sets
    return []


def _bearing(
    columns: Sequence[str], wanted: dict[Any, str], key: Callable[[str], Any]
) -> list[Bearers]:
    """The sets of columns by pattern; every pattern has the first label somewhere."""
    first, affixes = next(iter(wanted)), dict[tuple[str, str], None]()
    seen = {column: folded(column) if key is folded else column for column in columns}
    for text in seen.values():
        if isinstance(first, str):
            starts = [found.start() for found in re.finditer(f"(?={re.escape(first)})", text)]
            spans = [(start, start + len(first)) for start in starts]
        else:
            numbers = [found for form in NUMBERS_WITHIN for found in re.finditer(form, text)]
            spans = [found.span() for found in numbers if key(found[0]) == first]
        affixes |= dict.fromkeys((text[:start], text[stop:]) for start, stop in spans)
    sets: dict[tuple[str, ...], Bearers] = {}
    for before, after in affixes:
        fit = re.compile(f"{re.escape(before)}(.+){re.escape(after)}", re.DOTALL).fullmatch
        fits = {column: fit(text) for column, text in seen.items()}
        parts = {column: match[1] for column, match in fits.items() if match}
        labels = {name: wanted[key(part)] for name, part in parts.items() if key(part) in wanted}
        if len(labels) == len(set(labels.values())) == len(wanted):
            others = {
                name: part
                for name, part in parts.items()
                if name not in labels and key(part) is not None
            }
            sets.setdefault(
                tuple(labels), Bearers(f"{before}*{after}", labels, others, (before, after))
            )
    return list(sets.values())


def borne_alone(column: str, labels: Sequence[str]) -> str | None:
    """The label in the name of a single column, as a word: p_sick, P(sick); -1, not 1, in p_-1."""
    if column in labels:
        return column
    # The number of a model, fold, run or seed is no label.
    column = re.sub(r"(?i)(model|fold|run|seed)[\W_]*\d+", "", column)
    words = f"_{folded(column).strip('_')}_"
    for form in (r"(?<![^\W_])[+-]\d+(?:\.\d+)?", r"\d+(?:\.\d+)?"):
        numbers = {as_number(number) for number in re.findall(form, column)}
        bearing = [
            label
            for label in labels
            if as_number(TRUTH.get(label.casefold(), label)) in numbers
            or (as_number(label) is None and f"_{folded(label).strip('_')}_" in words)
        ]
        if len(bearing) == 1:
            return bearing[0]
    return None


def whole_sets(names: Sequence[str], labels: Sequence[str]) -> list[Bearers]:
    """The patterns that bear `labels` and fit all of the columns."""
    return [held for held in bearers_of(names, labels) if len(held.named) == len(names)]
