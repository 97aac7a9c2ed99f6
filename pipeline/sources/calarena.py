"""Probabilities of CalArena's vision networks, with CalArena's own split.

Its HDF5 files have a group per data set and model, with the arrays ARRAYS. ImageNet has a file of
its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from calibrators.heavy_imports import require
from metrics.validation import InputError
from pipeline.harness.artifacts import sha256_of
from pipeline.own.assign import Given
from pipeline.own.cells import naming
from pipeline.own.read import check_is_file
from pipeline.own.scale import as_float32, with_logits
from pipeline.sources.result import SourceResult, reason_of

FILES = {"imagenet": "imagenet-multiclass.h5"}
OTHER_FILE = "cv-multiclass.h5"
"""The file of all other data sets."""
ARRAYS = ("probas_cal", "labels_cal", "probas_test", "labels_test")
"""Probabilities [n, C] and labels [n] of the points that calibrate, and of those that test."""


def calarena_logits(*, dataset: str, model: str, data_dir: str | Path) -> SourceResult:
    """Read one experiment; its probabilities become their logarithms.

    Args:
        dataset, model: the names of the group in the file, such as imagenet and beit.
        data_dir: the folder with imagenet-multiclass.h5 and cv-multiclass.h5.

    Raises:
        MissingResource: the file is not there, or h5py is not installed.
        InputError: the file is damaged, or has no such group; the message lists its groups.
    """
    path = Path(data_dir) / FILES.get(dataset, OTHER_FILE)
    check_is_file(path, "CalArena's file (benchmark.source.data_dir has its folder)")
    arrays = _read(path, dataset, model)
    matrix = np.concatenate([arrays["probas_cal"], arrays["probas_test"]])
    labels = np.concatenate([arrays["labels_cal"], arrays["labels_test"]])
    with naming(f"{path}: {dataset}/{model}"):
        given = with_logits(Given("probabilities", matrix), "probabilities")
        logits = as_float32(given.matrix)
    sizes = [len(arrays[name]) for name in ("labels_cal", "labels_test")]
    return SourceResult(
        logits,
        labels.astype(np.int64),
        details={
            "source": "CalArena",
            "model": f"{dataset}/{model}",
            "preprocessing": "logarithm of probabilities",
            "origin": {"file": str(path.absolute()), "sha256": sha256_of(path)},
            "warnings": list(given.notes),
        },
        tested=np.repeat([False, True], sizes)[None],
    )


def _read(path: Path, dataset: str, model: str) -> dict[str, Any]:
    """The arrays of one group."""
    h5py = require("h5py")
    try:
        with h5py.File(path) as file:
            group = file.get(f"{dataset}/{model}")
            if group is None:
                groups = ", ".join(f"{data}/{name}" for data in file for name in file[data])
                raise InputError(f"{path}: no group {dataset}/{model}; it has {groups or 'none'}")
            return {name: group[name][()] for name in ARRAYS}
    except (OSError, KeyError) as error:
        raise InputError(
            f"{path}: {dataset}/{model} cannot be read ({reason_of(error)}); download it again"
        ) from error
