"""A user's own utilities, as classes of `metrics` and as settings of the evaluation.

options.py says what their files hold. If the first column of payoffs or valuations is no class or
rank, it names the users. Classes are matched by name, in any order. The entries of the
configuration `evaluation.own` have the digest of a file's content or of a function's code, so that
a change makes earlier results stale. `file` is what a reader knows of a file beside its path, the
arguments of `_read`. Each utility is a metric u_<kind>.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.errors import InputError, naming, reason_of
from utility_calibration.metrics.forecast import Forecast
from utility_calibration.metrics.kernels.softmax import softmax
from utility_calibration.metrics.utilities.base import UtilityClass
from utility_calibration.metrics.utilities.decision import Decision
from utility_calibration.metrics.utilities.function import FunctionUtility
from utility_calibration.metrics.utilities.gain_matrix import GainMatrix
from utility_calibration.metrics.utilities.linear_and_rank import Linear, Rank

from ...harness.artifacts import sha256_of
from ...harness.code_digest import UnknownTarget, code_digest
from ..reading.cells import numbers_of, text_column
from ..reading.read import read_table
from ..words.forms import check_is_file
from ..words.message_text import cut_off, normal, some_of

if TYPE_CHECKING:
    import pandas as pd

Names = Sequence[str]
Utilities = TypeVar("Utilities", bound=UtilityClass)
ONE_PER_ACTION = "give a column for each action, also for doing nothing"
FIRST_NAMES = "add a first column with the name of each line's class"
FIX = ["write numbers such as 0.5"]
TRIED = 10
"""Rows for which a function is called before the run."""


def own_utilities(
    options: Mapping[str, str], class_names: Names, decimal: str | None = None
) -> dict[str, dict[str, Any]]:
    """`evaluation.own` for utilities {kind: file or module:function}; `decimal`: `FileOptions`."""
    if "utility" in options and str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))  # the user's module is there; worker processes get it, too
    return {
        f"u_{kind}": entry_of(kind, value, class_names, decimal) for kind, value in options.items()
    }


def entry_of(
    kind: str, value: str, class_names: Names, decimal: str | None = None
) -> dict[str, Any]:
    """The entry of `evaluation.own` for an option of the command line, one of `options.OWN`.

    `value` is the path of its file, for `utility` its name, module:function. `class_names` [C] are
    in the order of the probabilities' columns.
    """
    target = f"{__name__}.{kind}"
    if kind == "utility":
        utility(value)
        try:
            code = code_digest(value.replace(":", "."))
        except UnknownTarget as error:
            message, fix = f"{value}: no source in Python ({error})", "write it in Python"
            raise InputError(message, field="--utility", fixes=fix) from error
        return {"_target_": target, "function": value, "code": code}
    path = Path(value)
    if "${" in f"{path.absolute()} {class_names}":  # Hydra makes the utility, and would resolve it
        raise InputError("`${` in this path or in a class's name", file=path, fixes="rename it")
    entry: dict[str, Any] = {
        "_target_": target,
        "path": str(path.absolute()),
        "sha256": sha256_of(path),
        "class_names": list(class_names),
    }
    sign = {} if decimal is None else {"decimal": decimal}
    READERS[kind](path, class_names, **sign)  # reports a bad cell here once, not in every unit
    return entry | sign


def payoffs(path: str | Path, class_names: Names, **file: str) -> Linear:
    """Users with a payoff per class."""
    names, numbers = _users("payoffs", path, class_names, file)
    return _named(Linear(numbers), *names)


def valuations(path: str | Path, class_names: Names, **file: str) -> Rank:
    """Users with a value per rank; column 1 is the most probable class, column C the least."""
    names, numbers = _users("valuations", path, class_names, file)
    return _named(Rank(numbers), *names)


def losses(path: str | Path, class_names: Names, **file: str) -> Decision:
    """The loss of each action under each class."""
    lines = _lines(path, class_names, file)
    with naming(path):
        actions = list(lines.columns)
        if len(actions) == 1:
            message, fix = f"one action, `{actions[0]}`, leaves nothing to decide", ONE_PER_ACTION
            raise InputError(message, field="columns", fixes=fix)
        decision = Decision(numbers_of(lines, actions, FIX), actions)
    return _named(decision, f"{Path(path).stem} (utility: minus the loss)")


def gain(path: str | Path, class_names: Names, **file: str) -> GainMatrix:
    """The gain of predicting a class (column) when the true class is that of the line."""
    lines = _lines(path, class_names, file)
    check_match(list(lines.columns), class_names, path, "column", "class")
    with naming(path):
        return _named(GainMatrix(numbers_of(lines, class_names, FIX)), Path(path).stem)


READERS = {"payoffs": payoffs, "valuations": valuations, "losses": losses, "gain": gain}


def utility(function: str, code: str | None = None) -> FunctionUtility:
    """The utility p [n, C] -> u⃗ [n, C] of a module, by its name `module:function`."""
    module, _, name = function.partition(":")
    fix = "give module:function, importable from here"
    try:
        member = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        message = f"{function}: no such function ({error})"
        raise InputError(message, field="--utility", fixes=fix) from error
    if not callable(member):
        message = f"{function}: a {type(member).__name__}, not a function"
        raise InputError(message, field="--utility", fixes=fix)
    return _named(FunctionUtility(member), function)


def try_utility(function: str, logits: NDArray[np.float32]) -> None:
    """Call the utility `module:function` for logits [n, C], before fits that take long.

    InputError: it raises, or returns no finite array [n, C].
    """
    tried = utility(function)
    try:
        tried.outcome_utilities(Forecast(softmax(logits.astype(np.float64))), 0)
    except InputError:
        raise
    except Exception as error:
        message = f"{function}: it raised {type(error).__name__}: {reason_of(error)}"
        fix = "correct it: it gets probabilities [n, C], a NumPy array"
        raise InputError(message, field="--utility", fixes=fix) from error


def _named(utilities: Utilities, *names: str) -> Utilities:
    utilities.names = names
    return utilities


def _users(
    kind: str, path: str | Path, class_names: Names, file: Mapping[str, str]
) -> tuple[list[str], NDArray[np.float64]]:
    """Names and numbers [users, C] of a file with a line per user, a column per class or rank."""
    table = _read(path, **file)
    what, wanted = "class", class_names
    if kind == "valuations":
        what, wanted = "rank", [str(rank) for rank in range(1, len(class_names) + 1)]
    columns = list(table.columns)
    has_names = columns[0] not in wanted
    names = [""] * len(table)
    if has_names:
        names = text_column(table.iloc[:, 0]).tolist()
        columns = columns[1:]
    check_match(columns, wanted, path, "column", what)
    with naming(path):
        return _user_names(names), numbers_of(table, wanted, FIX)


def _user_names(names: Names) -> list[str]:
    """The names of users; one without a name has the number of its line, from 1 on.

    A bare number, such as pandas' row number, would look like a number of the report.
    """
    users = []
    for number, name in enumerate(names, 1):
        is_bare = name.isdecimal() or not name
        users.append(f"user {name or number}" if is_bare else name)
    return users


def _lines(path: str | Path, class_names: Names, file: Mapping[str, str]) -> pd.DataFrame:
    """All columns but the first of a file with a line per class, in the order of the classes."""
    table = _read(path, **file)
    first, n_columns = table.columns[0], len(table.columns)
    if n_columns == 1:
        message = f"`{cut_off(first)}` is the only column, but the first one names the classes"
        raise InputError(message, field="columns", file=path, fixes=FIRST_NAMES)
    names = [normal(name) for name in text_column(table.iloc[:, 0]).tolist()]
    folded = {name.casefold() for name in names}
    are_alike = bool(folded & {name.casefold() for name in class_names})
    # As many lines as classes, but no class among the names: the column of names was forgotten.
    if len(names) == len(class_names) and not are_alike:
        message = (
            f"`{cut_off(first)}` names {some_of(names)}, and no class ({some_of(class_names)})"
        )
        raise InputError(message, field="columns", file=path, fixes=FIRST_NAMES)
    check_match(names, class_names, path, "line", "class")
    row_of = {name: row for row, name in enumerate(names)}
    return table.iloc[[row_of[name] for name in class_names], 1:]


def _read(path: str | Path, sha256: str | None = None, decimal: str | None = None) -> pd.DataFrame:
    """The table in a file. `sha256`: its digest when the run began. `decimal`: `FileOptions`."""
    path = Path(path)
    check_is_file(path, "a CSV file")
    if sha256 is not None and sha256_of(path) != sha256:
        raise InputError("changed since this run began", file=path, fixes="run it again")
    return read_table(path, decimal, may_group=True)


def check_match(names: Names, wanted: Names, path: str | Path, what: str, each: str) -> None:
    """Raise `InputError` unless `names` are the `wanted` ones, each once."""
    known, counts = set(wanted), Counter(names)
    unknown = [name for name in names if name not in known]
    for name in (*unknown, *wanted):
        fixes = [f"give {len(wanted)} {what}s, one per {each}"]
        if name not in known:
            message = f"is none of {some_of(wanted)}"
            alike = [each for each in wanted if each.casefold() == name.casefold()]
            if alike:
                message = f"is written `{cut_off(alike[0])}` in the file of the cases"
                fixes = [f"write `{cut_off(alike[0])}`"]
        elif not counts[name]:
            message = "is missing"
        elif counts[name] > 1:
            message = "is there twice"
        else:
            continue
        raise InputError(f"`{cut_off(name)}` {message}", field=what, file=path, fixes=fixes)
