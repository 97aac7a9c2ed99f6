"""A person's own utilities from CSV files or a function of Python, as classes of `metrics`.

* payoffs: a line per user, a column per class (`Linear`); valuations: a line per user, a column
  per rank 1 … C (`Rank`). A first column called `user`, or not at all, may name the users.
* losses: a line per class, named in the first column, and a column per action (`Decision`).
* gain: a line per true class, named in the first column, a column per predicted one (`GainMatrix`).
* a function module:function from probabilities to u⃗, torch to torch (`FunctionUtility`).

Classes are matched by name, whatever their order. The configuration `evaluation.own` holds what
`settings_of` returns: a file counts by its content, a function by its code, so that a change makes
earlier results stale.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.utilities.base import FunctionUtility
from metrics.utilities.decision import Decision
from metrics.utilities.gain_matrix import GainMatrix
from metrics.utilities.payoffs import Linear, Rank
from metrics.validation import InputError
from pipeline.harness.artifacts import sha256_of
from pipeline.harness.code import UnknownTarget, code_digest
from pipeline.sources.class_labels import is_plain
from pipeline.sources.columns import check_are_numbers
from pipeline.sources.file import check_is_file
from pipeline.sources.tables import read_table

Names = Sequence[str]
USER = "user"
LARGEST_FILE = 256 << 20


def settings_of(kind: str, given: str, class_names: Names) -> dict[str, Any]:
    """The entry of `evaluation.own` for an option of the command line.

    Args:
        kind: payoffs, valuations, losses, gain or utility.
        given: the path of its file; for a utility `module:function`.
        class_names: [C], in the order of the probabilities' columns.

    Raises:
        MissingResource, InputError: no such file or function, or a bad one; one line.
    """
    target = f"{__name__}.{kind}"
    if kind == "utility":
        return {"_target_": target, "function": given, "code": _code_of(given)}
    path = Path(given)
    check_is_file(path, f"a CSV file with {kind}")
    found = {"path": str(path.absolute()), "sha256": sha256_of(path)}
    READERS[kind](path, class_names)  # a bad cell is told here, not by every unit
    return {"_target_": target, **found, "class_names": list(class_names)}


def payoffs(path: str | Path, class_names: Names, sha256: str | None = None) -> Linear:
    """Users with a payoff per class."""
    table = Table.read(path, sha256)
    order = table.places(class_names, "class")
    return Linear(table.numbers(order))


def valuations(path: str | Path, class_names: Names, sha256: str | None = None) -> Rank:
    """Users with a value per rank; the columns are called 1, 2, … C, the most probable first."""
    table = Table.read(path, sha256)
    order = table.places([str(k) for k in range(1, len(class_names) + 1)], "rank")
    return Rank(table.numbers(order))


def who_values_a_worse_rank_more(path: str | Path, class_names: Names) -> list[str]:
    """The users of a file of valuations that rise somewhere; U_rank's (Example 3.6) do not."""
    given = np.asarray(valuations(path, class_names).matrix)
    rising = np.flatnonzero((np.diff(given, axis=1) > 0).any(axis=1))
    names = Table.read(path).names
    return [names[user] for user in rising]


def losses(path: str | Path, class_names: Names, sha256: str | None = None) -> Decision:
    """The loss of each action under each class."""
    table = Table.read(path, sha256, named=True)
    return Decision(table.numbers(range(len(table.columns)))[table.lines(class_names)])


def gain(path: str | Path, class_names: Names, sha256: str | None = None) -> GainMatrix:
    """What is gained by predicting a class (column) where another one (line) is true."""
    table = Table.read(path, sha256, named=True)
    order, lines = table.places(class_names, "class"), table.lines(class_names)
    matrix = table.numbers(order)[lines]
    wrong = (matrix < 0) | (matrix > 1) | (np.eye(len(matrix), dtype=bool) & (matrix != 1))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        where = table.cell(lines[row], order[column])
        fix = "a right prediction gains 1" if row == column else "gains lie in [0, 1]"
        raise InputError(f"{where}: {matrix[row, column]:g}, but {fix}; rescale it")
    return GainMatrix(matrix)


READERS = {"payoffs": payoffs, "valuations": valuations, "losses": losses, "gain": gain}


def utility(function: str, code: str | None = None) -> FunctionUtility:
    """The utility p [n, C] -> u⃗ [n, C] of a module, by its name `module:function`."""
    module, _, name = function.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(
            f"{function}: no such function ({error}); give module:function, importable from here"
        ) from error
    if not callable(found):
        raise InputError(f"{function}: a {type(found).__name__}, not a function of probabilities")
    return FunctionUtility(found)


def name_of(entry: Mapping[str, Any], index: int) -> str:
    """What a person calls utility `index` of an entry of `evaluation.own`."""
    kind = str(entry["_target_"]).removeprefix(f"{__name__}.")
    if kind in ("payoffs", "valuations"):
        return Table.read(entry["path"]).names[index]
    if kind == "losses":
        return f"{Path(entry['path']).stem} (utility: minus the loss)"
    if kind == "gain":
        return Path(entry["path"]).stem
    return str(entry["function"]) if kind == "utility" else f"{USER} {index + 1}"


def actions_of(path: str | Path) -> list[str]:
    """The names of the actions in a file of losses."""
    return list(Table.read(path, named=True).columns)


def _code_of(function: str) -> str:
    module, colon, name = function.partition(":")
    if not (colon and module and name):
        raise InputError(f"--utility {function}: give module:function, such as my_utility:value")
    utility(function)
    try:
        return code_digest(f"{module}.{name}")
    except UnknownTarget as error:
        raise InputError(f"--utility {function}: no source in Python ({error})") from error


@dataclass(frozen=True)
class Table:
    """A CSV of numbers: columns by the first line; each further line has a name."""

    path: Path
    columns: tuple[str, ...]
    names: tuple[str, ...]
    values: NDArray[np.float64]

    @classmethod
    def read(cls, path: str | Path, sha256: str | None = None, named: bool = False) -> Table:
        """Read a CSV; `named`: its first column names the lines, else only if called `user` or not
        at all, as pandas writes an index.

        Raises:
            InputError: another content than `sha256`, no such table, or a cell that is no number.
        """
        path = Path(path)
        check_is_file(path, "a CSV file")
        if path.stat().st_size > LARGEST_FILE:
            raise InputError(f"{path}: more than {LARGEST_FILE:,} bytes; give fewer lines")
        if sha256 is not None and sha256_of(path) != sha256:
            raise InputError(f"{path}: changed since this run began; run it again")
        table = read_table(path)
        header = [str(name) for name in table.columns]
        first = 1 if named or header[0].lower() in (USER, "") else 0
        columns = tuple(header[first:])
        _check_columns(path, columns, first)
        given = table.iloc[:, 0].astype(object).where(table.iloc[:, 0].notna(), "")
        names = [str(name).strip() for name in given] if first else [""] * len(table)
        if not named:
            names = [_user(name or str(k)) for k, name in enumerate(names, 1)]
        check_are_numbers(path, table.iloc[:, first:], columns, "write numbers such as 0.5")
        values = table.iloc[:, first:].to_numpy(np.float64)
        if not np.isfinite(values).all():
            row, column = np.argwhere(~np.isfinite(values))[0]
            raise InputError(
                f"{path}: column `{columns[column]}` holds nothing or no finite number in row "
                f"{row}; write one such as 0.5"
            )
        return cls(path, columns, tuple(names), values)

    def places(self, wanted: Names, what: str) -> list[int]:
        """The places of the columns `wanted`, each of which must be there, and no other."""
        expected = f"columns, one per {what}"
        if len(self.columns) > len(wanted):
            expected += " (and a first one called `user` for the users' names, if there are any)"
        return _matched(self.columns, wanted, f"{self.path}: column", expected)

    def lines(self, class_names: Names) -> list[int]:
        """The places of the lines of the classes."""
        field = f"{self.path}: first column:"
        return _matched(self.names, class_names, field, "lines, one per class")

    def numbers(self, order: Sequence[int]) -> NDArray[np.float64]:
        """The columns in this order: [lines, columns]."""
        return self.values[:, list(order)]

    def cell(self, row: int, column: int) -> str:
        """Where a number is in the file; rows count from 0."""
        return f"{self.path}: column `{self.columns[column]}`, row {row}"


def _matched(found: Names, wanted: Names, field: str, expected: str) -> list[int]:
    shown = ", ".join(wanted[:4]) + (", …" if len(wanted) > 4 else "")
    for name in found:
        if name not in wanted:
            raise InputError(f"{field} `{name}` is none of {shown}; give {len(wanted)} {expected}")
    for name in wanted:
        if found.count(name) != 1:
            often = "is missing" if name not in found else "is there twice"
            raise InputError(f"{field} `{name}` {often}; give {len(wanted)} {expected}")
    return [found.index(name) for name in wanted]


def _check_columns(path: Path, columns: Names, first: int) -> None:
    if not columns:
        raise InputError(f"{path}: no column of numbers; the first line must name them")
    for k, name in enumerate(columns):
        if not name or not is_plain(name):
            raise InputError(f"{path}: column {first + k + 1} has no printable name; name it")
        if columns.index(name) != k:
            raise InputError(f"{path}: two columns are called `{name}`; rename or remove one")


def _user(name: str) -> str:
    """What a user is called: a number, as of pandas' rows, would be taken for one of the report."""
    return f"{USER} {name}" if name.isdecimal() else name
