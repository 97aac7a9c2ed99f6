"""Probabilities of CalArena's vision networks, with CalArena's own split.

Its two HDF5 files, of ImageNet and of all else, have a group with ARRAYS per data set and model.
"""

from pathlib import Path
from typing import Any

import numpy as np

from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.calibrators.inputs import log_of
from utility_calibration.metrics.errors import InputError, naming, reason_of

from ..harness.artifacts import sha256_of
from ..precision import in_float32
from .input_digests import check_is_file
from .source_result import SourceResult

ARRAYS = ("probas_cal", "labels_cal", "probas_test", "labels_test")
"""Probabilities [n, C] and labels [n] of the points that calibrate, and of those that test."""


def calarena_logits(*, dataset: str, model: str, data_dir: str | Path) -> SourceResult:
    """Read the group <dataset>/<model> of a file in a folder; probabilities become logarithms.

    Raises:
        MissingResource: the folder has no such file.
        InputError: the file is damaged, lacks the group, or its rows are no probabilities.
    """
    path = Path(data_dir) / f"{'imagenet' if dataset == 'imagenet' else 'cv'}-multiclass.h5"
    check_is_file(path, "CalArena's file (benchmark.source.data_dir has its folder)")
    calibrating, labels, testing, test_labels = _read(path, f"{dataset}/{model}")
    with naming(f"{path}: {dataset}/{model}"):
        logits = in_float32(log_of(np.concatenate([calibrating, testing])))
    return SourceResult(
        logits,
        np.concatenate([labels, test_labels]).astype(np.int64),
        details={
            "source": "CalArena",
            "model": f"{dataset}/{model}",
            "preprocessing": "logarithm of probabilities",
            "origin": {"file": str(path.absolute()), "sha256": sha256_of(path)},
            "warnings": [],
        },
        tested=np.repeat([False, True], [len(labels), len(test_labels)])[None],
    )


def _read(path: Path, experiment: str) -> list[Any]:
    """The arrays of the group `experiment`, in the order of ARRAYS."""
    h5py = require("h5py")
    try:
        with h5py.File(path) as file:
            group = file.get(experiment)
            if group is None:
                groups: list[str] = []
                for dataset, models in file.items():
                    groups += [f"{dataset}/{model}" for model in models]
                message = f"no group {experiment}; it has {', '.join(groups) or 'none'}"
                raise InputError(message, file=path)
            return [group[name][()] for name in ARRAYS]
    except (OSError, KeyError) as error:
        message = f"{experiment} cannot be read ({reason_of(error)})"
        raise InputError(message, file=path, fixes="download it again") from error
