"""Which column of a table bears which class: by name, whatever the order of the columns.

The columns that bear the labels share one pattern with one varying part: `prob_{}`, `{}_score`,
`Pr[{}]`, or a bare `{}`. Numbers are compared as numbers (3, 03 and 3.0 are one class), text letter
by letter and, if that finds nothing, without regard to case and punctuation.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NUMBER = re.compile(r"[+-]?\d{1,15}(\.\d{1,6})?")
"""Longer text is the name of something."""
SCIENTIFIC = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?"
"""Any number as programs write it, in lower case: 1, 01, 1.0, 1e5."""
NUMBERS_WITHIN = (r"\d+", r"[+-]\d+", r"\d+\.\d+", r"[+-]\d+\.\d+")
"""Numbers in the name of a column count only as a whole: 3 does not stand in p13."""
Key = Callable[[str], Any]
"""What of a text is compared: the text, its letters in lower case, or its number."""
TRUTH = {"false": "0", "true": "1"}
"""Other names that programs write for two classes."""


@dataclass(frozen=True)
class Bearers:
    """The columns that bear all labels by one pattern, and those that look like further classes."""

    pattern: str
    """As people write it, prob_*."""
    label_of_column: dict[str, str]
    """In the order of the columns."""
    part_of_further_column: dict[str, str]
    """The varying part of each column that the pattern fits but that bears no label."""
    affixes: tuple[str, str] = ("", "")
    """What the pattern has before and after the varying part."""

    @property
    def named(self) -> dict[str, str]:
        """The class of every column that the pattern fits."""
        return {**self.label_of_column, **self.part_of_further_column}

    def fit_all(self, columns: Sequence[str]) -> bool:
        """Whether the pattern fits all of the columns among which these were found."""
        return len(self.named) == len(columns)

    def parts_of(self, columns: Sequence[str]) -> dict[str, str]:
        """The varying part of each column that the pattern fits letter by letter, number or not."""
        parts = _varying_parts(columns, self.affixes)
        stripped = {column: part.strip("_- ") for column, part in parts.items()}
        return {column: part for column, part in stripped.items() if part}


def as_number(name: str) -> float | None:
    """The number that `name` writes, else None."""
    return float(name) if NUMBER.fullmatch(name) else None


def folded(name: str) -> str:
    """A name in lower case, with `_` for each run of other signs than letters and digits."""
    return re.sub(r"[\W_]+", "_", name).casefold()


def _varying_parts(columns: Iterable[str], affixes: tuple[str, str]) -> dict[str, str]:
    """The text between the affixes of each column that the pattern fits."""
    before, after = affixes
    pattern = re.compile(f"{re.escape(before)}(.+){re.escape(after)}", re.DOTALL)
    parts = {}
    for column in columns:
        match = pattern.fullmatch(column)
        if match is not None:
            parts[column] = match[1]
    return parts


def bearers_of(columns: Sequence[str], labels: Sequence[str]) -> list[Bearers]:
    """All different sets of columns that bear every one of `labels`, each label once."""
    for label_of in _spellings(labels):
        for key in _keys(list(label_of)):
            label_of_key = {key(text): label for text, label in label_of.items()}
            if len(label_of_key) < len(labels):
                continue  # two labels are one by this key
            sets = _bearing(columns, label_of_key, key)
            if sets:
                return sets
    return []


def _spellings(labels: Sequence[str]) -> list[dict[str, str]]:
    """The labels by what columns may call them: themselves, or 0 and 1 for false and true."""
    as_they_are = {label: label for label in labels}
    if len(labels) != 2:
        return [as_they_are]
    numbers = {label: as_number(label) for label in labels}
    words = {label.casefold(): label for label in labels}
    otherwise = dict[str, str]()
    if words.keys() == TRUTH.keys():
        otherwise = {TRUTH[word]: label for word, label in words.items()}
    elif set(numbers.values()) == {0, 1}:
        otherwise = {str(bool(number)): label for label, number in numbers.items()}
    return [as_they_are, otherwise] if otherwise else [as_they_are]


def _keys(texts: Sequence[str]) -> list[Key]:
    """By what labels and parts of names are compared: first strictly, then more freely."""
    are_different_numbers = len({as_number(text) for text in texts} - {None}) == len(texts)
    return [as_number] if are_different_numbers else [str, folded]


def _bearing(columns: Sequence[str], label_of_key: Mapping[Any, str], key: Key) -> list[Bearers]:
    """The sets of columns by pattern; every pattern has the first label somewhere."""
    # Names are compared as the key writes them, numbers as they are.
    written = {column: folded(column) if key is folded else column for column in columns}
    affixes = _affixes_around(next(iter(label_of_key)), list(written.values()), key)
    sets: dict[tuple[str, ...], Bearers] = {}
    for before, after in affixes:
        by_text = _varying_parts(written.values(), (before, after))
        parts = {column: by_text[text] for column, text in written.items() if text in by_text}
        label_of_column, further = dict[str, str](), dict[str, str]()
        for column, part in parts.items():
            if key(part) in label_of_key:
                label_of_column[column] = label_of_key[key(part)]
            elif key(part) is not None:
                further[column] = part
        n_different = len(set(label_of_column.values()))
        bears_each_once = len(label_of_column) == n_different == len(label_of_key)
        if bears_each_once:
            bearers = Bearers(f"{before}*{after}", label_of_column, further, (before, after))
            sets.setdefault(tuple(label_of_column), bearers)
    return list(sets.values())


def _affixes_around(label: Any, texts: Sequence[str], key: Key) -> list[tuple[str, str]]:
    """The texts before and after a label (text or number), at each of its places in `texts`."""
    affixes = dict[tuple[str, str], None]()
    for text in texts:
        if isinstance(label, str):
            # Looking ahead also finds places that overlap, such as both `aa` of `aaa`.
            matches = re.finditer(f"(?={re.escape(label)})", text)
            spans = [(match.start(), match.start() + len(label)) for match in matches]
        else:
            # `-1.5` may be a sign or a dash before 1.5, or the end of a number: all are tried.
            numbers = [match for form in NUMBERS_WITHIN for match in re.finditer(form, text)]
            spans = [match.span() for match in numbers if key(match[0]) == label]
        for start, stop in spans:
            affixes[text[:start], text[stop:]] = None
    return list(affixes)


def borne_alone(column: str, labels: Sequence[str]) -> str | None:
    """The label in the name of a single column, as a word: p_sick, P(sick); -1, not 1, in p_-1."""
    if column in labels:
        return column
    # The number of a model, fold, run or seed is no label.
    column = re.sub(r"(?i)(model|fold|run|seed)[\W_]*\d+", "", column)
    words = f"_{folded(column).strip('_')}_"
    for form in (r"(?<![^\W_])[+-]\d+(?:\.\d+)?", r"\d+(?:\.\d+)?"):
        numbers = {as_number(number) for number in re.findall(form, column)}
        bearing = []
        for label in labels:
            is_number_there = as_number(TRUTH.get(label.casefold(), label)) in numbers
            is_word_there = f"_{folded(label).strip('_')}_" in words
            if is_number_there or (as_number(label) is None and is_word_there):
                bearing.append(label)
        if len(bearing) == 1:
            return bearing[0]
    return None


def whole_sets(names: Sequence[str], labels: Sequence[str]) -> list[Bearers]:
    """The patterns that bear `labels` and fit all of the columns."""
    return [bearers for bearers in bearers_of(names, labels) if bearers.fit_all(names)]
