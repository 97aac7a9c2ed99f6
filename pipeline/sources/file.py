"""A person's own classifier: an npz, a CSV or a parquet file with labels and logits or
probabilities.

npz: arrays `labels` [n] and `logits` or `probabilities` [n, C]; optionally `class_names` [C],
`groups` [n] and `split` [n].
CSV, parquet: the column `label` (or `labels`), then one column per class; optionally `split`.
`split` says calibration or test of each point; split_1, split_2, … are several splits. A second
file of test points does the same for one split.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.validation import InputError
from pipeline.harness.artifacts import sha256_of
from pipeline.sources.answers import as_float32, to_logits
from pipeline.sources.class_labels import (
    class_labels,
    label_names,
    listed,
    notes_on_rare_classes,
    with_hidden,
)
from pipeline.sources.columns import read_columns
from pipeline.sources.given import Given, check_shapes
from pipeline.sources.npz_arrays import read_npz_arrays
from pipeline.sources.result import MissingResource, Progress, SourceResult
from pipeline.sources.tables import TABLES

VALUES = ("auto", "logits", "probabilities")

BELOW_CHANCE = "WARNING: worse than guessing"
"""How the note on an accuracy below chance begins."""
MOST_GROUPS = 100
"""Names of groups in one file: each gets tables of its own."""


def file_logits(
    *,
    path: str | Path,
    test: str | Path | None = None,
    values: str = "auto",
    groups: str | None = None,
    device: str = "auto",
    work_dir: Path | None = None,
    progress: Progress | None = None,
) -> SourceResult:
    """Read logits [n, C] and labels [n] from `path`; probabilities become their logarithms.

    Args:
        path: .npz, .csv or .parquet.
        test: a second such file: its points test, those of `path` calibrate.
        values: what the matrix holds. `auto`: what the npz calls it; in a table, probabilities if
            all values lie in [0, 1] and all rows sum to one.
        groups: the column of a table, or the array of an npz, that names each point's group; an
            npz's array `groups` needs no naming.
        device, work_dir, progress: as for every source; not needed here.

    Raises:
        MissingResource: no such file.
        InputError: one line naming file, field and fix; rows count from 0.
    """
    if values not in VALUES:
        raise InputError(f"values={values}: choose one of {', '.join(VALUES)}")
    paths = [Path(name) for name in (path, test) if name is not None]
    given = [read_given(file, values, groups) for file in paths]
    if len(given) == 2:
        given[1] = _matched(paths, given)
    field = f"{' and '.join(map(str, paths))}: labels"
    together = _together([half.labels for half in given])
    is_named = given[0].names is not None  # a single column is then that of the class it names
    known = label_names(together, field) if is_named else []
    read = [to_logits(file, half, values, known) for file, half in zip(paths, given)]
    logits = _together([as_float32(file, half.matrix) for file, (half, _) in zip(paths, read)])
    kind, names = read[0][0].kind, read[0][0].names
    n, classes = logits.shape
    labels = class_labels(together, n, classes, names, field)
    notes = list(dict.fromkeys(note for _, notes in read for note in notes))
    notes += labels.notes + notes_on_rare_classes(labels, classes, field)
    notes += notes_on_accuracy(logits, labels.numbers)
    origin = {"file": str(paths[0].absolute()), "sha256": sha256_of(path), "values": kind}
    if test is not None:
        origin |= {"test": str(paths[1].absolute()), "test_sha256": sha256_of(test)}
    details: dict[str, Any] = {
        "source": "a file",
        "model": paths[0].stem,
        "preprocessing": "none" if kind == "logits" else "logarithm of probabilities",
        "origin": origin,
        "warnings": notes,
    }
    if labels.names is not None:
        details["class_names"] = labels.names
    groups_of = [_checked_groups(file, half) for file, half in zip(paths, given)]
    return SourceResult(
        logits,
        labels.numbers,
        details,
        groups=None if groups_of[0] is None else _together(groups_of),
        tested=_tested(given),
    )


def read_given(
    path: Path,
    values: str,
    groups: str | None = None,
    labelled: bool = True,
    classes: Sequence[str] = (),
) -> Given:
    """What a file gives, its shapes checked; see `read_columns` and `read_npz_arrays`."""
    check_is_file(path, "an npz, CSV or parquet file")
    if path.suffix.lower() in TABLES:
        given = read_columns(path, groups, labelled, classes)
    else:
        given = read_npz_arrays(path, values, groups, labelled)
    check_shapes(path, given, values)
    return given


def check_is_file(path: Path, wanted: str) -> None:
    """Raise one line where `path` is a folder or nothing."""
    if path.is_dir():
        raise InputError(f"{path}: this is a folder; give the path of {wanted}")
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: a device or a pipe; save it as a file, and give its path")
    if not path.is_file():
        raise MissingResource(f"{path}: no such file; give the path of {wanted}")


def _matched(paths: Sequence[Path], given: Sequence[Given]) -> Given:
    """What the second of two files gives, its columns in the order of the first one's."""
    first, second = given
    for path, half in zip(paths, given):
        if half.tested is not None:
            raise InputError(
                f"{path}: says itself which points test (`split`); leave that out, or the test file"
            )
    if first.kind != second.kind:
        raise InputError(
            f"{paths[1]}: {second.kind}, but {first.kind} in {paths[0]}; give the same"
        )
    if (first.groups is None) != (second.groups is None):
        raise InputError(f"{paths[1]}: groups in one file alone; give them in both or in neither")
    if np.shape(first.matrix)[1:] != np.shape(second.matrix)[1:]:
        raise InputError(
            f"{paths[1]}: shape {list(np.shape(second.matrix))}, but "
            f"{list(np.shape(first.matrix))} in {paths[0]}; give the same classes in both"
        )
    if first.names == second.names:
        return second
    if set(first.names or ()) != set(second.names or ()):
        other = sorted(set(second.names or ()) ^ set(first.names or ()))
        raise InputError(
            f"{paths[1]}: not the classes of {paths[0]}: {listed(other)} in one of them alone; "
            "give the same columns in both"
        )
    assert first.names is not None and second.names is not None
    order = [second.names.index(name) for name in first.names]
    return replace(second, matrix=np.asarray(second.matrix)[:, order], names=first.names)


def _together(halves: Sequence[Any]) -> Any:
    """The rows of both files; of a single one as they are: they may be a map of the file."""
    return halves[0] if len(halves) == 1 else np.concatenate([np.asarray(h) for h in halves])


def _tested(given: Sequence[Given]) -> NDArray[np.bool_] | None:
    if len(given) == 1:
        return given[0].tested
    return np.repeat([False, True], [len(half.labels) for half in given])[None]


def notes_on_accuracy(logits: NDArray[np.float32], labels: NDArray[np.int64]) -> list[str]:
    """A note where guessing would be right more often than these logits, beyond chance."""
    n, classes = logits.shape
    right, chance = float(np.mean(logits.argmax(axis=1) == labels)), 1 / classes
    if right >= chance - 2 * (chance * (1 - chance) / n) ** 0.5:
        return []
    return [
        f"{BELOW_CHANCE}: the largest column names the label of {100 * right:.1f} % of the "
        f"points, guessing would of {100 * chance:.1f} %; check that the columns are in the order "
        "of the classes"
    ]


def _checked_groups(path: Path, given: Given) -> NDArray[np.str_] | None:
    if given.groups is None:
        return None
    groups, n = np.asarray(given.groups), len(given.labels)
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
