"""A calibrator to keep: refitted on all points of a file, applied to points without labels.

What it takes is part of it: `takes_` ("logits" or "probabilities") and, where they are known,
`class_names_`, the columns in their order. Both travel in the saved file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import calibrators
from calibrators.base import Calibrator
from calibrators.inputs import from_probabilities
from metrics.archive import array_names, read_arrays
from metrics.validation import InputError, check_logits
from pipeline.harness.artifacts import read_json
from pipeline.harness.cached_logits import find_logits, load_logits, sidecar_path
from pipeline.harness.targets import made_of
from pipeline.harness.units import Settings
from pipeline.sources.class_labels import class_of_column
from pipeline.sources.columns import check_are_numbers
from pipeline.sources.file import check_is_file, refuse_lookalikes
from pipeline.sources.peers import PeerCalibration  # so that `Calibrator.load` knows it
from pipeline.sources.tables import TABLES, read_table

KINDS = ("logits", "probabilities")


def fit_on_all(settings: Settings) -> Calibrator:
    """Fit the calibrator of `settings` on all points of its benchmark's cached logits."""
    cached = find_logits(settings)
    logits, labels = load_logits(cached.path, cached.sha256)
    record = read_json(sidecar_path(settings))
    calibrator: Any = made_of(settings["calibrator"])
    calibrator.fit(logits, labels)
    calibrator.takes_ = record.get("origin", {}).get("values", "logits")
    if "class_names" in record:
        calibrator.class_names_ = np.array(record["class_names"])
    fitted: Calibrator = calibrator
    return fitted


def check_is_loaded(settings: Settings) -> None:
    """`InputError` where `Calibrator.load` would not know the class that `settings` make."""
    kind = type(made_of(settings["calibrator"]))
    named = kind.__name__ in calibrators.__all__  # as `Calibrator.load` asks, which loads these
    known = named and getattr(calibrators, kind.__name__, None) is kind
    if not known and kind is not PeerCalibration:
        raise InputError(
            f"--save: scripts/apply.py could not load a {kind.__name__}, which "
            "calibrators/__init__.py does not name; add it to WHERE and __all__ there"
        )


def read_points(path: Path, calibrator: Calibrator, values: str = "auto") -> NDArray[Any]:
    """Read the logits or probabilities [n, C] of `path` that `calibrator` takes.

    Args:
        path: npz with the array `logits` or `probabilities`; CSV or parquet with a column per
            class, by name where the calibrator knows names (other columns are then ignored); of
            two classes the probability of one is enough.
        values: "logits" takes what looks like probabilities or votes for logits.

    Raises:
        InputError: one line with file, field and fix.
    """
    check_is_file(path, "an npz, CSV or parquet file")
    takes = str(getattr(calibrator, "takes_", "logits"))
    in_table = path.suffix.lower() in TABLES
    matrix = _columns(path, calibrator, takes) if in_table else _array(path, calibrator, takes)
    if takes == "probabilities":
        logits: NDArray[Any] = from_probabilities(matrix, name=f"{path}: probabilities")
        return logits.astype(np.float32)  # as the pipeline caches those that it fits on
    if values == "auto":
        refuse_lookalikes(
            path,
            matrix,
            "the calibrator was fitted on logits: give those of the "
            "same model (or fit one on its probabilities: score.py --save)",
            overruled_by="--values logits",
        )
    return check_logits(matrix, name=f"{path}: logits").numpy()


def _array(path: Path, calibrator: Calibrator, takes: str) -> NDArray[Any]:
    arrays = read_arrays(path, only=KINDS, fix="save it with numpy.savez")
    if takes not in arrays:
        found = ", ".join(array_names(path)) or "nothing"
        raise InputError(
            f"{path}: the calibrator was fitted on {takes}, but there is no array `{takes}` "
            f"(it holds {found}); add it, [n, C]"
        )
    matrix, classes = arrays[takes], calibrator.n_features_in_
    # Of two classes the probability of one is enough.
    widths = {1, 2} if takes == "probabilities" and classes == 2 else {classes}
    if matrix.ndim == 2 and matrix.shape[1] not in widths:
        raise _other_columns(f"{path}: {takes}", matrix.shape[1], calibrator)
    return matrix


def _other_columns(where: str, found: int, calibrator: Calibrator) -> InputError:
    return InputError(
        f"{where}: {found} columns, but the calibrator was fitted on {calibrator.n_features_in_} "
        "classes; give one column per class and no other"
    )


def _columns(path: Path, calibrator: Calibrator, takes: str) -> NDArray[np.float64]:
    table = read_table(path)
    names = [str(name) for name in table.columns]
    wanted = [str(name) for name in getattr(calibrator, "class_names_", ())]
    of_one = takes == "probabilities" and calibrator.n_features_in_ == 2
    if of_one and (alone := _only_column(names, wanted)):
        column, is_second = alone
        check_are_numbers(path, table, [column])
        p = table[column].to_numpy(np.float64, na_value=np.nan)
        return p if is_second else 1 - p  # [n]: of the second class
    if wanted:
        count, prefix = Counter(names), _prefix(names, wanted)
        wanted = [prefix + name for name in wanted]
        missing = [name for name in wanted if count[name] != 1]
        if missing:
            raise InputError(
                f"{path}: expected one column `{missing[0]}` for that class, as in the file that "
                "the calibrator was fitted on; rename or add it"
            )
        table = table[wanted]
    elif len(names) != calibrator.n_features_in_:
        raise _other_columns(f"{path}", len(names), calibrator)
    check_are_numbers(path, table, wanted or names)
    return table.to_numpy(np.float64, copy=True, na_value=np.nan)


def _only_column(names: Sequence[str], classes: Sequence[str]) -> tuple[str, bool] | None:
    """The one column for one of two classes, as scoring takes it; whether it is the second's."""
    bearing = [(name, meant) for name in names if (meant := class_of_column(name, classes))]
    if len(bearing) == 1:
        name, meant = bearing[0]
        return name, meant == classes[1]
    return (names[0], True) if len(names) == 1 else None


def _prefix(names: Sequence[str], classes: Sequence[str]) -> str:
    """What all columns of classes begin with, as in p_cat, p_dog; "" where they bear bare names."""
    known = set(names)
    starts = sorted(name.removesuffix(classes[0]) for name in names if name.endswith(classes[0]))
    fitting = (
        start
        for start in starts
        if re.search(r"(^|[\W_])$", start) and all(start + name in known for name in classes)
    )
    return next(fitting, "")
