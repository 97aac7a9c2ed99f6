"""A person's own classifier: an npz or a CSV with labels and logits or probabilities.

npz: arrays `labels` [n] and `logits` or `probabilities` [n, C].
CSV: a header line; the column `label` (or `labels`), then one column per class in class order.
"""

from __future__ import annotations

import csv
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.validation import (
    ROW_SUM_TOLERANCE,
    InputError,
    check_labels,
    check_logits,
    check_probabilities,
)
from pipeline.harness.artifacts import CorruptFile, read_npz, sha256_of
from pipeline.sources.result import MissingResource, Progress, SimilarityResult, SourceResult

VALUES = ("auto", "logits", "probabilities")
SMALLEST_PROBABILITY = 1e-12
"""Probabilities below are raised to it before the logarithm: a zero would be minus infinity.

A probability of exactly one then stands 27.6 above such a zero, which the calibrators can work
with, and the softmax of the result differs from the given row by less than C x 1e-12.
"""

NEARLY_ONE = 0.05
"""Rows that sum to one within this, of numbers in [0, 1], are no logits unless somebody says so."""


def file_logits(
    *,
    path: str | Path,
    values: str = "auto",
    device: str = "auto",
    work_dir: Path | None = None,
    progress: Progress | None = None,
) -> SourceResult:
    """Read logits [n, C] and labels [n] from `path`; probabilities become their logarithms.

    Args:
        path: .npz or .csv.
        values: what the matrix holds. `auto`: what the npz calls it; in a CSV, probabilities if all
            values lie in [0, 1] and all rows sum to one.
        device, work_dir, progress: as for every source; not needed here.

    Raises:
        MissingResource: no such file.
        InputError, CorruptFile: one line naming file, field and fix; rows count from 0, as in the
            arrays, lines of a CSV from 1, as in an editor.
    """
    path = Path(path)
    if values not in VALUES:
        raise InputError(f"values={values}: choose one of {', '.join(VALUES)}")
    _check_is_file(path, "an npz or CSV file")
    fields = _read_csv(path) if path.suffix.lower() == ".csv" else read_npz(path)
    kind, matrix = _matrix(path, fields, values)
    if kind == "logits" and values == "auto":
        _refuse_probabilities(path, matrix)
    labels = fields.get("labels", fields.get("label"))
    if labels is None:
        raise InputError(f"{path}: no array `labels` (it holds {_names(fields)}); add it, [n]")
    logits = _checked_logits(path, kind, matrix)
    n, classes = logits.shape
    truth = check_labels(labels, n, classes, name=f"{path}: labels").numpy()
    return SourceResult(
        logits=logits,
        labels=truth,
        details={
            "source": "a file",
            "model": path.stem,
            "preprocessing": "none" if kind == "logits" else "logarithm of probabilities",
            "origin": {"file": str(path.absolute()), "sha256": sha256_of(path), "values": kind},
        },
    )


def _check_is_file(path: Path, wanted: str) -> None:
    if path.is_dir():
        raise InputError(f"{path}: this is a folder; give the path of {wanted}")
    if not path.is_file():
        raise MissingResource(f"{path}: no such file; give the path of {wanted}")


def _matrix(path: Path, fields: dict[str, Any], values: str) -> tuple[str, Any]:
    """Which of logits and probabilities the file gives, and the matrix itself."""
    if "columns" in fields:  # a CSV does not say what its columns hold
        matrix = fields["columns"]
        return (_guess(matrix) if values == "auto" else values), matrix
    wanted = ("logits", "probabilities") if values == "auto" else (values,)
    for name in wanted:
        if name in fields:
            return name, fields[name]
    raise InputError(
        f"{path}: no array {' or '.join(f'`{name}`' for name in wanted)} "
        f"(it holds {_names(fields)}); add one, [n, classes]"
    )


def _guess(matrix: NDArray[np.float64]) -> str:
    inside = bool((matrix >= 0).all() and (matrix <= 1).all())
    sums_to_one = bool((np.abs(matrix.sum(axis=1) - 1) <= ROW_SUM_TOLERANCE).all())
    return "probabilities" if inside and sums_to_one else "logits"


def _refuse_probabilities(path: Path, matrix: Any) -> None:
    """Rounded probabilities, or such under the wrong name, would pass for logits unnoticed."""
    numbers = np.asarray(matrix)
    if numbers.ndim != 2 or numbers.size == 0 or numbers.dtype.kind not in "fiu":
        return  # told by the checks of logits
    inside = bool((numbers >= 0).all() and (numbers <= 1).all())
    gap = float(np.abs(numbers.sum(axis=1, dtype=np.float64) - 1).max())
    if inside and gap <= NEARLY_ONE:
        raise InputError(
            f"{path}: these look like probabilities (in [0, 1], rows sum to one within {gap:.1g}) "
            "but would be read as logits; save probabilities unrounded (npz: as `probabilities`), "
            "or say that they are logits: --values logits (benchmark.source.values=logits)"
        )


def _checked_logits(path: Path, kind: str, matrix: Any) -> NDArray[np.float32]:
    if kind == "logits":
        logits = check_logits(matrix, name=f"{path}: logits").numpy()
        with np.errstate(over="ignore"):  # what becomes infinite is told in the next line
            small = np.asarray(logits, dtype=np.float32)
        check_logits(small, name=f"{path}: logits (as float32)")
        return small
    probabilities = check_probabilities(matrix, name=f"{path}: probabilities").numpy()
    logits = np.log(np.maximum(probabilities, SMALLEST_PROBABILITY))
    return np.asarray(logits, dtype=np.float32)


def _read_csv(path: Path) -> dict[str, Any]:
    """`labels` and `columns` of a CSV, the columns in the file's order."""
    import pandas as pd

    try:
        with warnings.catch_warnings():
            # Rows longer than the header: pandas would drop what is too much.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table = pd.read_csv(path, index_col=False)
    except (ValueError, pd.errors.ParserWarning) as error:
        _check_row_lengths(path)
        reason = " ".join(str(error).split())
        raise CorruptFile(f"{path}: not readable as CSV ({reason}); export it again") from error
    if table.empty:
        raise InputError(f"{path}: no rows; give one per point")
    if bool(table.isna().any(axis=None)):  # pandas fills rows that are too short
        _check_row_lengths(path)
    names = [str(name).strip() for name in table.columns]
    table.columns = pd.Index(names)
    label = next((name for name in names if name.lower() in ("label", "labels")), None)
    if label is None:
        shown = ", ".join(names[:4])
        raise InputError(
            f"{path}: no column `label` (the first line reads {shown}); the first line must name "
            "the columns: label, then one per class"
        )
    columns = table.drop(columns=label)
    unnamed = [k for k, name in enumerate(names) if name.startswith("Unnamed:") or not name]
    if unnamed:
        raise InputError(
            f"{path}: column {unnamed[0] + 1} has no name, like the row numbers that pandas "
            "writes; leave it out (to_csv(index=False)), or name it if it is a class"
        )
    text = [name for name in columns if not pd.api.types.is_numeric_dtype(columns[name])]
    if text:
        raise InputError(f"{path}: column `{text[0]}` holds text; keep `label` and class columns")
    return {"labels": table[label].to_numpy(), "columns": columns.to_numpy(np.float64)}


def _check_row_lengths(path: Path) -> None:
    """`InputError` naming the first line that has not as many values as the first line has names.

    Reads the file once more: only for a file that is known to be faulty.
    """
    names = 0
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        lines = csv.reader(file)
        try:
            for values in lines:
                names = names or len(values)
                if len(values) != names and "".join(values).strip():  # pandas skips empty lines
                    raise InputError(
                        f"{path}: line {lines.line_num} has {len(values)} values for the {names} "
                        "columns that the first line names; complete or remove it"
                    )
        except csv.Error:
            return  # the caller tells what pandas found


def _names(fields: dict[str, Any]) -> str:
    return ", ".join(fields) or "nothing"


def file_similarity(*, path: str | Path) -> SimilarityResult:
    """Similarity of classes [C, C] for U_w2v: an npz with `matrix`, or a CSV without header line.

    Raises:
        MissingResource: no such file. InputError, CorruptFile: it holds no square matrix.
    """
    path = Path(path)
    _check_is_file(path, "an npz or CSV file with a similarity matrix")
    if path.suffix.lower() == ".csv":
        try:
            matrix = np.loadtxt(path, delimiter=",", ndmin=2)
        except ValueError as error:
            raise CorruptFile(f"{path}: not a CSV of numbers ({error})") from error
    else:
        arrays = read_npz(path)
        if "matrix" not in arrays:
            raise InputError(f"{path}: no array `matrix` (it holds {_names(arrays)}); name it so")
        matrix = arrays["matrix"]
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise InputError(f"{path}: expected a finite matrix [C, C], got {list(matrix.shape)}")
    return SimilarityResult(matrix.astype(np.float64), {"path": str(path)})
