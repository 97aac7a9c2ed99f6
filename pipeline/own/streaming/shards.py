"""The shards of a stream: find out whether one has changed, and whether two have the same points.

A pass takes long, and other programs may write to the files meanwhile. So each shard must be the
same when it is read as when the pass began. Points that come twice would weigh double.
"""

from __future__ import annotations

import filecmp
import hashlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.metrics.errors import InputError

from ..points.by_parts import Points
from ..words.forms import check_is_given, ending_of

END = 1 << 16
"""Bytes at the head and at the tail of a file that are compared before the whole file is."""
ONCE = "remove one of them"
BOTH = "if both are meant, join them in one file"

FileState = tuple[str, int, int, int, int]
"""Name, size, inode, time of the last change of the content, and of the inode, in nanoseconds."""
Item = TypeVar("Item")


class Shard(NamedTuple):
    """A shard as it was when the pass began."""

    path: Path
    state: tuple[FileState, ...]
    """Of each of its files. No program can set back the time at which the inode changed."""

    @classmethod
    def of(cls, path: Path) -> Shard:
        """The shard as it is now; InputError, MissingResource: there is no such file."""
        check_is_given(path)
        return cls(path, state_of(path))

    def check_unchanged(self) -> None:
        """Raise `InputError` if the shard is not as it was when the pass began."""
        if state_of(self.path) != self.state:
            fix = "run it again when no program writes to it"
            raise InputError("changed during the pass", file=self.path, fixes=fix)


def state_of(path: Path) -> tuple[FileState, ...]:
    """What changes when a program writes to a file, or to one in a folder; () if it is gone."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    try:
        return tuple(map(_file_state, files))
    except OSError:
        return ()


def _file_state(file: Path) -> FileState:
    status = file.stat()
    times = status.st_mtime_ns, status.st_ctime_ns
    return file.name, status.st_size, status.st_ino, *times


@contextmanager
def unchanged(shard: Shard) -> Iterator[None]:
    """Raise `InputError` if the shard changes while the block reads it, whatever else it meets."""
    shard.check_unchanged()
    try:
        yield
    except Exception:
        shard.check_unchanged()  # a file that was cut is read as a damaged one
        raise
    shard.check_unchanged()


def all_shards(paths: Sequence[Path]) -> list[Shard]:
    """The shards as they are now.

    Raises:
        InputError, MissingResource: one is not there, or two have the same points.
    """
    shards = [Shard.of(path) for path in paths]
    refuse_twice(paths)
    return shards


def refuse_twice(paths: Sequence[Path]) -> None:
    """Raise `InputError` if two paths mean one file, one table in two forms, or a copy."""
    for first, second in _alike(paths, _place):
        raise InputError(f"the same file as {first}", file=second, fixes=ONCE)
    for first, second in _alike(paths, _name):
        form = f"give one form: '{first.parent / '*'}{''.join(first.suffixes[-1:])}'"
        message = f"named like {first}, as the same table in two forms"
        raise InputError(message, file=second, fixes=[form, "rename one if both are meant"])
    files = [path for path in paths if path.is_file()]
    # Sizes cost nothing and ends little, so few files are ever compared as a whole.
    for size_alike in _groups(files, lambda path: path.stat().st_size):
        for first, second in _alike(size_alike, _ends):
            if filecmp.cmp(first, second, shallow=False) and not _is_empty(first):
                raise InputError(f"a copy of {first}", file=second, fixes=[ONCE, BOTH])


def _place(path: Path) -> Hashable:
    status = path.stat()  # of the file behind a link
    return status.st_dev, status.st_ino


def _name(path: Path) -> Hashable:
    """A path without the ending that says its form."""
    plain = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    return plain.with_suffix("")


def _is_empty(path: Path) -> bool:
    """Whether a file is parquet without rows, of which a program may write many."""
    if ending_of(path) != ".parquet":
        return False
    with suppress(Exception):  # the reader will say what is wrong
        return int(require("pyarrow.parquet").read_metadata(path).num_rows) == 0
    return False


def _ends(path: Path) -> Hashable:
    """A digest of a file's head and tail."""
    with path.open("rb") as file:
        digest = hashlib.sha256(file.read(END))
        file.seek(max(0, path.stat().st_size - END))
        digest.update(file.read(END))
    return digest.digest()


def _groups(items: Iterable[Item], key: Callable[[Item], Hashable]) -> list[list[Item]]:
    """The items of equal key, where there are several."""
    groups = defaultdict[Hashable, list[Item]](list)
    for item in items:
        groups[key(item)].append(item)
    return [group for group in groups.values() if len(group) > 1]


def _alike(paths: Iterable[Path], key: Callable[[Path], Hashable]) -> Iterator[tuple[Path, Path]]:
    """Pairs of neighbours among the paths of equal key."""
    for group in _groups(paths, key):
        yield from pairwise(group)


class PointsDigest:
    """A digest of points, in whatever order and batches they come, and their number.

    It is the sum of a hash of 128 bits of each point, because sums do not depend on the order. Two
    shards of other points share it about once in 10^38 pairs.
    """

    def __init__(self) -> None:
        self.n_points = 0
        self._sums = np.zeros(2, np.uint64)

    def add(self, points: Points) -> None:
        """Add a batch of points."""
        if not len(points.labels):
            return  # all rows of the batch were left out
        self.n_points += len(points.labels)
        columns = [np.ascontiguousarray(values + 0) for values in points]  # -0 becomes 0
        words = [values.view(np.uint32).reshape(len(values), -1) for values in columns]
        self._sums += _hashes(np.concatenate(words, axis=1)).sum(axis=0)

    def text(self) -> str:
        """The digest so far."""
        return self._sums.tobytes().hex()


def _hashes(words: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Two hashes of each row of words [n, w]: [n, 2]. All sums and products are modulo 2^64."""
    factors = np.random.default_rng(0).integers(2**64, size=(words.shape[1], 2), dtype=np.uint64)
    hashes = words.astype(np.uint64) @ factors
    # A sum of these alone would depend on the sums of columns only (the last step of splitmix64).
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        hashes = (hashes ^ (hashes >> np.uint64(shift))) * np.uint64(factor)
    return hashes ^ (hashes >> np.uint64(31))
