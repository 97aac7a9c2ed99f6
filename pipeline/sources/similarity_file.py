"""Similarity of classes from a person's file, for U_w2v."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.archive import array_names, read_arrays
from metrics.validation import InputError
from pipeline.sources.file import check_is_file
from pipeline.sources.result import SimilarityResult, reason_of

ASYMMETRY = 1e-6
"""Largest difference of S_ij and S_ji, relative to the largest entry, that counts as rounding."""


def file_similarity(*, path: str | Path) -> SimilarityResult:
    """Similarity of classes [C, C] for U_w2v: an npz with `matrix`, or a CSV without header line.

    Raises:
        MissingResource: no such file.
        InputError: it holds no symmetric matrix of finite real numbers; one line with the fix.
    """
    path = Path(path)
    check_is_file(path, "an npz or CSV file with a similarity matrix")
    given = _read_csv(path) if path.suffix.lower() == ".csv" else _read_npz(path)
    if given.dtype.kind not in "biuf":
        raise InputError(f"{path}: a matrix of {given.dtype}; give real numbers, [C, C]")
    matrix = given.astype(np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise InputError(f"{path}: expected a matrix [C, C], got {list(matrix.shape)}")
    if not np.isfinite(matrix).all():
        row, column = np.argwhere(~np.isfinite(matrix))[0]
        raise InputError(f"{path}: {matrix[row, column]} in row {row}, column {column}; replace it")
    gap = np.abs(matrix - matrix.T)
    if gap.max() > ASYMMETRY * np.abs(matrix).max():
        row, column = np.unravel_index(int(gap.argmax()), gap.shape)
        raise InputError(
            f"{path}: not symmetric: {matrix[row, column]:.6g} in row {row}, column {column}, but "
            f"{matrix[column, row]:.6g} in row {column}, column {row}; a similarity goes both ways"
        )
    return SimilarityResult(matrix, {"path": str(path)})


def _read_npz(path: Path) -> NDArray[Any]:
    arrays = read_arrays(path, only=("matrix",))
    if "matrix" not in arrays:
        found = ", ".join(array_names(path)) or "nothing"
        raise InputError(f"{path}: no array `matrix` (it holds {found}); name it so")
    return arrays["matrix"]


def _read_csv(path: Path) -> NDArray[Any]:
    try:
        return np.loadtxt(path, delimiter=",", ndmin=2, encoding="utf-8-sig")
    except (ValueError, OverflowError, MemoryError) as error:
        raise InputError(
            f"{path}: not a CSV of numbers without a header line ({reason_of(error)}); export it so"
        ) from error
