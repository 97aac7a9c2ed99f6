"""A person's files beyond memory: their shards, and the points of a shard some at a time.

The first rows decide what the columns mean, as `score` does for a whole file; all others must fit.
Each point gets a random number that depends on the seed, its shard and its row alone. The points
with the smallest numbers are a uniform sample.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError

from ..harness.machine import free_memory
from ..harness.progress import Bar
from .assign import assigned, points_in, prepared, roles_of, without_ignored
from .cells import Held, Labels, are_arrays
from .check import scaled
from .choices import Choices
from .forms import PARTED, check_is_given, ending_of, shards_of
from .given import Known
from .read import read
from .splits import is_empty, without_training
from .tables import LARGEST_TABLE, PER_CELL, parquet_size, tables
from .told import naming

ROWS = 10_000
"""Points that are in memory at a time."""
ENOUGH_ROWS = 10
"""Rows of logits from which on they hardly look like probabilities by chance."""
TEXT_PER_CELL = 8
"""Bytes of a cell of a CSV, about."""


def is_too_large(path: Path) -> bool:
    """Whether a file is larger than what is read as a whole; one that is not there is not."""
    if not path.is_file():
        return False
    kind, size = ending_of(path), path.stat().st_size
    if kind == ".parquet":
        with suppress(Exception):  # the reader will say what is wrong
            return parquet_size(path)[1] > LARGEST_TABLE
    if kind in (".csv", ".tsv"):
        return size / TEXT_PER_CELL * PER_CELL > LARGEST_TABLE
    return kind in ("", ".npz") and size > free_memory() / 2


def batches(path: Path, choices: Choices, is_used: Callable[[str], bool]) -> Iterator[Held]:
    """Yield what `read` returns, `ROWS` rows at a time.

    No more is in memory for parquet, CSV, TSV and an uncompressed npz; other files are read whole.
    """
    check_is_given(path)
    if not path.is_dir() and ending_of(path) in PARTED:
        for table in tables(path, ROWS, choices.decimal):
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


def known_from(path: Path, held: Held, choices: Choices) -> Known:
    """What `score` takes these rows for; InputError: other rows could not be read alike."""
    mistakes = list[InputError]()
    try:
        first = scaled(assigned([path], [held], choices, mistakes), choices.values, mistakes)
    except InputError:  # perhaps of a column that is to be ignored: the first splits are all alike
        (named,) = without_ignored([held], choices.ignore)
        _refuse_what_needs_all(named, roles_of(list(prepared(named, choices, [])), choices, []))
        raise
    names = first.names or [str(k) for k in range(first.matrix.shape[1])]
    codes = {name: number for number, name in enumerate(names)} | {**first.codes}
    if all(text == str(code) for text, code in first.codes.items()):
        codes = {str(number): number for number in range(len(names))}
    classes = Labels(names, np.arange(len(names)), first.names is not None, are_known=True)
    seen = int(first.labels.min()), int(first.labels.max())
    known = Known(str(first.kind), classes, codes, seen)
    if not np.array_equal(points_of(held, choices, known).logits, first.matrix):
        fix = "name the columns: --classes NAME,NAME"
        raise InputError("another order than the columns", field="labels", fixes=fix)
    return known


def points_of(held: Held, choices: Choices, known: Known) -> Points:
    """The points of some rows. InputError: they do not fit what the first rows say."""
    mistakes = list[InputError]()
    nothing = np.empty(0)
    no_points = Points(
        np.empty((0, len(known.classes.texts)), np.float32), np.empty(0, int), nothing, nothing
    )
    (held,) = without_ignored([without_training(held, [])], choices.ignore)
    if is_empty(held):
        return no_points
    held = prepared(held, choices, [], known.classes.texts)
    roles = roles_of(list(held), choices, [])
    _refuse_what_needs_all(held, roles, known.classes.texts)
    if not len(held[roles["labels"]]):  # each point has a label that is to be ignored
        return no_points
    given = points_in(held, choices, mistakes, known=known)
    if given.kind not in (None, known.kind):
        told = f"{given.kind}, while the first rows have {known.kind}"
        raise InputError(told, field="values", fixes="give one kind in all files")
    values = known.kind if len(given.labels) < ENOUGH_ROWS else choices.values
    given = scaled(replace(given, kind=known.kind), values, mistakes)
    weights = np.ones(len(given.labels)) if given.weights is None else given.weights
    return Points(given.matrix, given.labels, weights, np.empty(len(weights)))


def _refuse_what_needs_all(
    held: Held, roles: Mapping[str, str], classes: Collection[str] = ()
) -> None:
    """Raise `InputError` for splits, groups or clusters; a column may also be one of `classes`."""
    of_a_point = "labels", "weights", "predictions"
    names = [name for role, name in roles.items() if role not in of_a_point]
    if not are_arrays(held):
        names = [name for name in names if name not in classes]
    if names:
        told, fix = "one pass does not have all points at once", f"--ignore {','.join(names)}"
        raise InputError(told, field=names[0], fixes=f"to do without: {fix}")


@dataclass(frozen=True)
class Stream:
    """All points of some shards, in their order; `seed` decides their random numbers."""

    shards: list[Path]
    choices: Choices
    known: Known
    seed: int

    @classmethod
    def of(cls, path: Path, choices: Choices, seed: int) -> Stream:
        """The points of a file, of a folder or of all files that fit a pattern."""
        shards = shards_of(path)
        with naming(shards[0]):
            parts = batches(shards[0], choices, choices.gives_role)
            has_points = (part for part in parts if not is_empty(without_training(part, [])))
            first = next(has_points, None)
            if first is None:
                fix = "give points that the classifier was not trained on"
                raise InputError("all rows say `train`", field="split", fixes=fix)
            known = known_from(shards[0], first, choices)
        return cls(shards, choices, known, seed)

    def points(self, number: int) -> Iterator[Points]:
        """Yield the points of a shard, some at a time."""
        path, choices, start = self.shards[number], self.choices, 0
        random = np.random.default_rng([self.seed, number])
        with naming(path):
            for held in batches(path, choices, choices.gives_role):
                rows = max(len(of) for name, of in held.items() if name != "class_names")
                with naming(f"{path}, the rows from {start:,} on"):
                    points = points_of(held, choices, self.known)
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
            raise InputError("a single point", file=self.shards[0], fixes="give more")
        sample = _smallest(kept, min(size, n // 2))
        return sample, float(sample.numbers[-1])


def _smallest(parts: list[Points], size: int) -> Points:
    whole = Points(*map(np.concatenate, zip(*parts, strict=True)))
    return whole.at(np.argsort(whole.numbers)[:size])
