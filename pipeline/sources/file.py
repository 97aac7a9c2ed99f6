"""A person's own classifier: an npz, a CSV or a parquet file with labels and logits or
probabilities.

npz: arrays `labels` [n] and `logits` or `probabilities` [n, C]; optionally `class_names` [C] and
`groups` [n].
CSV, parquet: the column `label` (or `labels`), then one column per class.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from calibrators.inputs import both_classes, from_probabilities, lookalike
from metrics.validation import (
    InputError,
    check_logits,
    check_numbers,
    look_like_probabilities,
)
from pipeline.harness.artifacts import sha256_of
from pipeline.sources.class_labels import (
    class_labels,
    class_of_column,
    label_names,
    notes_on_rare_classes,
    short,
    with_hidden,
)
from pipeline.sources.columns import read_columns
from pipeline.sources.given import Given
from pipeline.sources.npz_arrays import read_npz_arrays
from pipeline.sources.result import MissingResource, Progress, SourceResult
from pipeline.sources.tables import TABLES

VALUES = ("auto", "logits", "probabilities")

NOTED = 1e-5
"""Row sums of float32 over 1000 classes are off one by less; more is worth a line."""

MAKE_PROBABILITIES = (
    "divide each row by its sum (better: export them unrounded) and save them as probabilities "
    "(npz: as `probabilities`)"
)
"""Makes any of these probabilities: rounded ones, percentages, votes."""
VALUES_ARE_LOGITS = "--values logits (benchmark.source.values=logits)"

MOST_GROUPS = 100
"""Names of groups in one file: each gets tables of its own."""


def file_logits(
    *,
    path: str | Path,
    values: str = "auto",
    groups: str | None = None,
    device: str = "auto",
    work_dir: Path | None = None,
    progress: Progress | None = None,
) -> SourceResult:
    """Read logits [n, C] and labels [n] from `path`; probabilities become their logarithms.

    Args:
        path: .npz, .csv or .parquet.
        values: what the matrix holds. `auto`: what the npz calls it; in a table, probabilities if
            all values lie in [0, 1] and all rows sum to one.
        groups: the column of a table, or the array of an npz, that names each point's group; an
            npz's array `groups` needs no naming.
        device, work_dir, progress: as for every source; not needed here.

    Raises:
        MissingResource: no such file.
        InputError: one line naming file, field and fix; rows count from 0, as in the arrays, lines
            of a CSV from 1, as in an editor.
    """
    path = Path(path)
    if values not in VALUES:
        raise InputError(f"values={values}: choose one of {', '.join(VALUES)}")
    check_is_file(path, "an npz, CSV or parquet file")
    if path.suffix.lower() in TABLES:
        given = read_columns(path, groups)
    else:
        given = read_npz_arrays(path, values, groups)
    kind = given.kind or values
    if kind == "auto":
        kind = "probabilities" if _are_probabilities(given.matrix) else "logits"
    if kind == "logits" and values == "auto":
        refuse_lookalikes(path, given.matrix)
    notes: list[str] = []
    if kind == "logits":
        logits = _checked_logits(path, given.matrix)
    else:
        given, notes = _of_both_classes(given)
        try:
            logits, rounded = _logits_of_probabilities(path, given.matrix)
        except InputError as error:
            raise _better_told(path, given.matrix) or error from None
        notes += rounded
    n, classes = logits.shape
    labels = class_labels(given.labels, n, classes, given.names, field=f"{path}: labels")
    notes += labels.notes + notes_on_rare_classes(labels, classes, f"{path}: labels")
    details = {
        "source": "a file",
        "model": path.stem,
        "preprocessing": "none" if kind == "logits" else "logarithm of probabilities",
        "origin": {"file": str(path.absolute()), "sha256": sha256_of(path), "values": kind},
        "warnings": notes,
    }
    if labels.names is not None:
        details["class_names"] = labels.names
    return SourceResult(logits, labels.numbers, details, _checked_groups(path, given, n))


def check_is_file(path: Path, wanted: str) -> None:
    """Raise one line where `path` is a folder or nothing."""
    if path.is_dir():
        raise InputError(f"{path}: this is a folder; give the path of {wanted}")
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: a device or a pipe; save it as a file, and give its path")
    if not path.is_file():
        raise MissingResource(f"{path}: no such file; give the path of {wanted}")


def _are_probabilities(matrix: NDArray[Any]) -> bool:
    """Whether a table's columns are probabilities; a single one is that of the second class."""
    if matrix.shape[1] == 1:
        return bool((matrix >= 0).all() and (matrix <= 1).all())
    return look_like_probabilities(torch.from_numpy(matrix))


def refuse_lookalikes(
    path: Path,
    matrix: Any,
    instead: str = MAKE_PROBABILITIES,
    overruled_by: str = VALUES_ARE_LOGITS,
) -> None:
    """Probabilities, percentages or votes under the wrong name would pass for logits.

    `instead`: what the message asks for, if they are none; `overruled_by`: the option that says so.
    """
    numbers = np.asarray(matrix)
    if numbers.ndim != 2 or numbers.size == 0 or numbers.dtype.kind not in "fiu":
        return  # told by the checks of logits
    found = lookalike(check_numbers(numbers, f"{path}: logits"))
    if found is not None:
        raise InputError(
            f"{path}: {found.what}, but would be read as logits; {instead}, or say that they are "
            f"logits: {overruled_by}"
        )


def _better_told(path: Path, matrix: Tensor) -> InputError | None:
    """What to say of refused probabilities that are percentages or votes."""
    if matrix.ndim != 2 or not matrix.numel() or not bool(torch.isfinite(matrix).all()):
        return None
    found = lookalike(matrix)
    if found is None or not found.step:
        return None
    return InputError(f"{path}: probabilities: {found.what}; divide each row by its sum")


def _checked_logits(path: Path, matrix: Any) -> NDArray[np.float32]:
    logits = check_logits(matrix, name=f"{path}: logits").numpy()
    with np.errstate(over="ignore"):  # what becomes infinite is told in the next line
        small = np.asarray(logits, dtype=np.float32)
    check_logits(small, name=f"{path}: logits (as float32)")
    return small


def _of_both_classes(given: Given) -> tuple[Given, list[str]]:
    """Probabilities [n] or [n, 1] of one class as [n, 2], the columns' names with them.

    A table's column that bears a label's name (sick, p_sick, p1) is that class's probability; any
    other one is the second class's. A note says which, unless its name is the label's.
    """
    matrix = both_classes(given.matrix)
    names, notes = given.names, list[str]()
    if names is not None and len(names) == 1:
        column, labels = names[0], label_names(given.labels)
        meant = class_of_column(column, labels) or labels[-1]
        others = [label for label in labels if label != meant]
        names = [others[0], meant] if len(others) == 1 else None
        if names is not None and column != meant:
            notes = [f"column `{short(column)}` is taken for the probability of {short(meant)}"]
    return replace(given, matrix=matrix, names=names), notes


def _logits_of_probabilities(path: Path, matrix: Tensor) -> tuple[NDArray[np.float32], list[str]]:
    """The logarithm, and a note where rows are off one by more than the rounding of float32."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the note says it
        logits = from_probabilities(matrix, name=f"{path}: probabilities")
    excess = torch.stack([matrix.sum(dim=1).sub(1).abs().max(), -matrix.min(), matrix.max() - 1])
    off = float(excess.max())
    note = f"probabilities are off by up to {off:.1g}, taken for rounding; rows are renormalised"
    return logits.numpy().astype(np.float32), [note] if off > NOTED else []


def _checked_groups(path: Path, given: Given, n: int) -> NDArray[np.str_] | None:
    if given.groups is None:
        return None
    groups = np.asarray(given.groups)
    if groups.shape != (n,) or groups.dtype.kind not in "biufSUO":
        raise InputError(
            f"{path}: groups: shape {list(groups.shape)} of {groups.dtype} for {n} rows; give the "
            "name of each point's group, [n]"
        )
    if groups.dtype.kind == "S":
        groups = np.char.decode(groups, "utf-8", "replace")
    missing = np.array(
        [group is None or group != group or group == "" for group in groups.tolist()]
    )
    if missing.any():
        raise InputError(f"{path}: groups: none in row {int(missing.argmax())}; name one")
    names = groups.astype(np.str_)
    if with_hidden(names):
        raise InputError(f"{path}: groups: a name holds control characters; rename it")
    if (count := len(np.unique(names))) > MOST_GROUPS:
        raise InputError(
            f"{path}: groups: {count} different names for {n} rows, at most {MOST_GROUPS}; give "
            "the group that a point belongs to, not its number"
        )
    return names
