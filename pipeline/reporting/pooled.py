"""What a report needs of a method's `ecdf.npz`, one per split: the means over splits, in one file.

All that tables and figures say of sampled utilities, redrawn labels and resampled points are
functions of means over splits: sorted errors level by level, draws repetition by repetition. So one
small file per benchmark, method and evaluation stands for all splits. It is committed, and the
report reads it alone: it says the same with and without the files that it was made from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipeline.harness.artifacts import CorruptFile, read_npz, write_npz

Floats = NDArray[np.float64]
DRAWS = ("floor_", "bootstrap_")
"""Arrays whose places are repetitions; all others are errors, sorted before they are averaged."""
SOURCES = "ecdf_sha256"
"""Of the splits' arrays, in the order of the splits."""


def read_pooled(path: Path, sources: Sequence[str]) -> dict[str, Floats] | None:
    """The means in `path`, or None where it is absent, damaged or made from other `sources`."""
    try:
        arrays = read_npz(path)
    except (FileNotFoundError, CorruptFile):
        return None
    if arrays.pop(SOURCES, np.empty(0)).tolist() != list(sources):
        return None
    return {key: values.astype(np.float64) for key, values in arrays.items()}


def write_pooled(
    path: Path, splits: Sequence[Mapping[str, Floats]], sources: Sequence[str]
) -> dict[str, Floats]:
    """Keep the means over splits in `path`; return what it then holds."""
    small = pooled(splits)
    write_npz(path, **small, **{SOURCES: np.array(list(sources))})
    return {key: values.astype(np.float64) for key, values in small.items()}


def pooled(splits: Sequence[Mapping[str, Floats]]) -> dict[str, NDArray[np.float32]]:
    """The arrays' means over splits, in float32.

    Arrays that not all splits have, or not in the same size, are left out.
    """
    shared = [key for key in splits[0] if len({s[key].shape for s in splits if key in s}) == 1]
    means = {
        key: np.asarray(np.mean([_in_order(key, split[key]) for split in splits], axis=0))
        for key in shared
        if all(key in split for split in splits)
    }
    return {key: values.astype(np.float32) for key, values in means.items()}


def _in_order(key: str, values: Floats) -> Floats:
    return values if key.startswith(DRAWS) else np.sort(values)
