"""A person's files beyond memory: their shards, and the points of a shard some at a time.

The first rows decide what the columns mean, as `score` does for a whole file; all others must fit.
Each point gets a random number that depends on the seed, its shard and its row alone. The points
with the smallest numbers are a uniform sample.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.validation import InputError, check_weights

from ..harness.machine import free_memory
from ..harness.progress import Bar
from .assign import answers_of, assigned, labels_of, prepared, roles_of, without_ignored
from .cells import Held, Labels, distinct_labels, plain_column
from .choices import Choices
from .read import READ, SAVED, check_is_given, read
from .scale import as_float32, with_logits
from .tables import LARGEST_TABLE, PARTED, PER_CELL, TABLES, ending_of, parquet_cells, tables
from .told import cut_off, naming

ROWS = 10_000
"""Points that are in memory at a time."""
TEXT_PER_CELL = 8
"""Bytes of a cell of a CSV, about."""


def shards_of(path: Path) -> list[Path]:
    """The files that a file, a folder or a pattern such as shards/*.parquet means, by name.

    A data set that `datasets` saved is one shard.
    """
    if path.is_dir() and not (path / SAVED).is_file():
        readable = [file for file in sorted(path.iterdir()) if ending_of(file) in (*TABLES, ".npz")]
        shards = [file for file in readable if not file.name.startswith((".", "_"))]
    elif path.exists() or not glob.has_magic(str(path)):
        shards = [path]
    else:
        shards = sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))))
        if not shards:
            fixes = ["quote the pattern", f"give {READ}"]
            raise InputError("no file fits", file=path, fixes=fixes)
    return shards or [path]


def is_too_large(path: Path) -> bool:
    """Whether a file is larger than what is read as a whole; one that is not there is not."""
    if not path.is_file():
        return False
    kind, size = ending_of(path), path.stat().st_size
    if kind == ".parquet" and size:
        try:
            return parquet_cells(path) * PER_CELL > LARGEST_TABLE
        except Exception:  # the reader will say what is wrong
            return False
    if kind in (".csv", ".tsv"):
        return size / TEXT_PER_CELL * PER_CELL > LARGEST_TABLE
    return kind in ("", ".npz") and size > free_memory() / 2


def batches(path: Path, choices: Choices, is_used: Callable[[str], bool]) -> Iterator[Held]:
    """Yield what `read` returns, `ROWS` rows at a time.

    No more is in memory for parquet, CSV, TSV and an uncompressed npz; other files are read whole.
    """
    check_is_given(path)
    if not path.is_dir() and ending_of(path) in PARTED:
        for table in tables(path, ROWS):
            yield {str(name): column for name, column in table.items()}
        return
    held = read(path, choices, is_used)
    n = max(len(of) for name, of in held.items() if name != "class_names")
    for start in range(0, n, ROWS):
        part = slice(start, start + ROWS)
        yield {name: of if name == "class_names" else of[part] for name, of in held.items()}


class Points(NamedTuple):
    """Some points: logits float32 [n, C], labels [n], weights [n], random numbers [n]."""

    logits: NDArray[np.float32]
    labels: NDArray[np.int64]
    weights: NDArray[np.float64]
    numbers: NDArray[np.float64]

    def at(self, rows: Any) -> Points:
        """Some of these points."""
        return Points(*(values[rows] for values in self))


@dataclass(frozen=True)
class Meaning:
    """What the first rows say: the kind of the answers, and the classes by name or by number.

    codes: the class of each label, as text. Labels are numbers of columns where the first rows'
    are, also if the columns have names; else they are names, or what the first rows have for them.
    """

    choices: Choices
    kind: str
    names: list[str]
    are_named: bool
    codes: dict[str, int]

    @classmethod
    def of(cls, path: Path, held: Held, choices: Choices) -> Meaning:
        """What `score` takes these rows for; InputError: other rows could not be read alike."""
        mistakes = list[InputError]()
        given = assigned([path], [held], choices, mistakes)
        if mistakes:
            raise InputError.of_all(mistakes)
        scaled = with_logits(given, choices.values)
        names = scaled.names or [str(k) for k in range(scaled.matrix.shape[1])]
        (held,) = without_ignored([held], choices.ignore)
        labels = _labels(held := prepared(held, choices, []), choices)
        first = dict(zip(np.array(labels.texts)[labels.places].tolist(), scaled.labels.tolist()))
        codes = {name: number for number, name in enumerate(names)} | first
        if all(text == str(code) for text, code in first.items()):
            codes = {str(number): number for number in range(len(names))}
        meaning = cls(choices, str(scaled.kind), names, scaled.names is not None, codes)
        if not np.array_equal(meaning._points(held).logits, as_float32(scaled.matrix)):
            fix = "name the columns: --classes NAME,NAME"
            raise InputError("another order than the columns", field="labels", fixes=fix)
        return meaning

    def points(self, held: Held) -> Points:
        """The points of some rows. InputError: they do not fit what the first rows say."""
        (held,) = without_ignored([held], self.choices.ignore)
        return self._points(prepared(held, self.choices, []))

    def _points(self, held: Held) -> Points:
        roles, given = roles_of(list(held), self.choices, []), _labels(held, self.choices)
        if odd := [text for text in given.texts if text not in self.codes]:
            told = f"{cut_off(odd[0])} is no class of the first rows"
            fixes = ["name all classes: --classes NAME,NAME", "leave it out: --ignore-label"]
            raise InputError(told, field="labels", row=given.row(odd[0]), fixes=fixes)
        codes = np.array([self.codes[text] for text in given.texts])[given.places]
        known = Labels(self.names, np.arange(len(self.names)), self.are_named, are_known=True)
        columns = [k for k in held if k in self.names or not self.choices.gives_role(k)]
        answers = answers_of(held, columns, known, self.choices, self.kind)
        logits = as_float32(with_logits(answers, self.kind).matrix)[:, answers.labels]
        n = len(codes)
        if len(logits) != n:
            told, fix = f"{n} labels for {len(logits)} rows", "give one per row"
            raise InputError(told, field="labels", fixes=fix)
        weights = np.ones(n)
        if "weights" in roles:
            weights = check_weights(plain_column(held[roles["weights"]]), n, "weight").numpy()
        return Points(logits, codes.astype(np.int64), weights, np.empty(n))


def _labels(held: Held, choices: Choices) -> Labels:
    label, mistakes = labels_of(list(held), choices, []), list[InputError]()
    given = distinct_labels(plain_column(held[label]), label, mistakes)
    if mistakes:
        raise InputError.of_all(mistakes)
    return given


@dataclass(frozen=True)
class Stream:
    """All points of some shards, in their order; `seed` decides their random numbers."""

    shards: list[Path]
    meaning: Meaning
    seed: int

    @classmethod
    def of(cls, path: Path, choices: Choices, seed: int) -> Stream:
        """The points of a file, of a folder or of all files that fit a pattern."""
        shards = shards_of(path)
        with naming(shards[0]):
            first = next(batches(shards[0], choices, choices.gives_role))
            meaning = Meaning.of(shards[0], first, choices)
        return cls(shards, meaning, seed)

    def points(self, number: int) -> Iterator[Points]:
        """Yield the points of a shard, some at a time."""
        path, choices, start = self.shards[number], self.meaning.choices, 0
        random = np.random.default_rng([self.seed, number])
        with naming(path):
            for held in batches(path, choices, choices.gives_role):
                rows = max(len(of) for name, of in held.items() if name != "class_names")
                with naming(f"{path}, the rows from {start:,} on"):
                    points = self.meaning.points(held)
                start += rows
                yield points._replace(numbers=random.random(len(points.labels)))

    def sample(self, size: int) -> tuple[Points, float]:
        """A uniform random sample of the points, at most half of them, and its largest number."""
        kept, n, limit = list[Points](), 0, np.inf
        with Bar("sample", len(self.shards)) as bar:
            for number in range(len(self.shards)):
                for points in self.points(number):
                    n += len(points.labels)
                    kept.append(points.at(points.numbers <= limit))
                    if sum(len(part.labels) for part in kept) > 1.25 * size:
                        kept = [_smallest(kept, size)]
                        limit = kept[0].numbers[-1]
                    bar(number, bar.total, f"{n:,} points")
                bar.advance(f"{n:,} points")
        if n < 2:
            raise InputError("a single point", fixes="give more")
        sample = _smallest(kept, min(size, n // 2))
        return sample, float(sample.numbers[-1])


def _smallest(parts: list[Points], size: int) -> Points:
    whole = Points(*map(np.concatenate, zip(*parts, strict=True)))
    return whole.at(np.argsort(whole.numbers)[:size])
