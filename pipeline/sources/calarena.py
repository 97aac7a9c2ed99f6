"""Probabilities of CalArena's vision networks, with CalArena's own split.

Its two HDF5 files, of ImageNet and of all else, have a group with ARRAYS per data set and model.
"""

from pathlib import Path

import numpy as np

from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.metrics.errors import InputError, naming, reason_of

from ..harness.artifacts import sha256_of
from ..own.forms import check_is_file
from ..own.given import Given
from ..own.scale import with_logits
from .content import SourceResult

ARRAYS = ("probas_cal", "labels_cal", "probas_test", "labels_test")
"""Probabilities [n, C] and labels [n] of the points that calibrate, and of those that test."""


def calarena_logits(*, dataset: str, model: str, data_dir: str | Path) -> SourceResult:
    """Read the group <dataset>/<model> of a file in a folder; probabilities become logarithms."""
    path = Path(data_dir) / f"{'imagenet' if dataset == 'imagenet' else 'cv'}-multiclass.h5"
    check_is_file(path, "CalArena's file (benchmark.source.data_dir has its folder)")
    h5py = require("h5py")
    try:
        with h5py.File(path) as file:
            group = file.get(f"{dataset}/{model}")
            if group is None:
                groups = ", ".join(f"{data}/{name}" for data in file for name in file[data])
                told = f"no group {dataset}/{model}; it has {groups or 'none'}"
                raise InputError(told, file=path)
            calibrating, labels, testing, test_labels = (group[name][()] for name in ARRAYS)
    except (OSError, KeyError) as error:
        raise InputError(
            f"{dataset}/{model} cannot be read ({reason_of(error)})",
            file=path,
            fixes="download it again",
        ) from error
    with naming(f"{path}: {dataset}/{model}"):
        given = Given("probabilities", np.concatenate([calibrating, testing]))
        given = with_logits(given, "probabilities")
    return SourceResult(
        given.matrix,
        np.concatenate([labels, test_labels]).astype(np.int64),
        details={
            "source": "CalArena",
            "model": f"{dataset}/{model}",
            "preprocessing": "logarithm of probabilities",
            "origin": {"file": str(path.absolute()), "sha256": sha256_of(path)},
            "warnings": list(given.notes),
        },
        tested=np.repeat([False, True], [len(labels), len(test_labels)])[None],
    )
