"""What a stream has seen, as a file: written whole or not at all, and checked when it is read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from .archive import read_arrays
from .arrays import Array
from .atomic import atomic_path
from .errors import InputError, MissingResource
from .streaming_result import Seen

File = str | Path | IO[bytes]
Kind = Mapping[str, Array]
"""What two streams must share before one can take over what the other has seen."""


class State(NamedTuple):
    """All that a stream keeps."""

    seen: Seen
    log_largest: float
    """Of the wealth of bets against calibration, at any look."""
    columns: list[str]
    """The names of the columns, or empty."""


def write_state(file: File, kind: Kind, state: State) -> None:
    """Write an npz of the state, and of the `kind` of stream that can read it."""
    arrays: dict[str, Any] = dict(state.seen._asdict())
    arrays |= kind
    arrays["log_largest"] = np.array([state.log_largest])
    arrays["columns"] = np.array(state.columns, dtype=np.str_)
    if not isinstance(file, str | Path):
        np.savez(file, **arrays)
        return
    with atomic_path(file) as temporary, temporary.open("xb") as stream:
        np.savez(stream, **arrays)


def read_state(file: File, kind: Kind, empty: Seen) -> State:
    """Return the state in a file of this `kind`, with arrays of the shapes of `empty`.

    Raises:
        InputError: the file is damaged, or of another kind.
        MissingResource: there is no such file.
    """
    if isinstance(file, str | Path) and not Path(file).is_file():
        raise MissingResource(f"{file}: no such file; give the path that `save` was given")
    arrays = read_arrays(file)
    expected = {**empty._asdict(), "log_largest": np.zeros(1)}
    for name, values in expected.items():
        if name not in arrays or arrays[name].shape != values.shape:
            raise _other_kind()
    if not are_equal_kinds(kind, arrays) or "columns" not in arrays:
        raise _other_kind()
    damaged = [name for name in expected if not _can_come_from_points(name, arrays[name])]
    if damaged:
        message = f"damaged, {', '.join(damaged)} cannot come from points"
        raise InputError(message, field="file", fixes="begin anew, or take a copy")
    seen = Seen(*(arrays[name].astype(np.float64) for name in Seen._fields))
    columns = arrays["columns"].astype(np.str_).tolist()
    return State(seen, float(arrays["log_largest"][0]), columns)


def are_equal_kinds(kind: Kind, other: Kind) -> bool:
    """Return whether all arrays of `kind` are the same in `other`, which may have more."""
    return all(np.array_equal(other.get(name, ()), value) for name, value in kind.items())


def _can_come_from_points(name: str, values: Array) -> bool:
    """Return whether points can make these numbers: none is NaN, and no sum of sizes negative.

    Scores and variances may be negative by rounding, if a probability is just above 1.
    """
    if values.dtype.kind != "f" or bool(np.isnan(values).any()):
        return False
    return name not in ("sums", "largest") or bool((values >= 0).all())


def _other_kind() -> InputError:
    message = "of other utilities, classes or buckets"
    fixes = "give the arguments that it was saved with, and functions with the code of then"
    return InputError(message, field="file", fixes=fixes)
