"""A calibrator to deploy: fitted to the points of a file, applied to points without labels.

The saved file also says what the calibrator takes: `takes_` is "logits" or "probabilities", and
`class_names_` has the names of the columns in their order, if they are known.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from hydra.utils import instantiate
from numpy.typing import NDArray

import pipeline.sources.peers  # noqa: F401  (so that `Calibrator.load` knows its calibrator)
from calibrators.base import Calibrator
from metrics.validation import InputError
from pipeline.harness.settings import Settings
from pipeline.scoring.cached_logits import find_logits, rows_of, weights_at
from pipeline.scoring.splits import indices_of
from pipeline.sources.answers import to_logits
from pipeline.sources.file import read_given


def fit_to_keep(settings: Settings, on_all: bool) -> Calibrator:
    """Fit the calibrator of `settings` on its benchmark's cached logits.

    `on_all`: fit on all points, else on the calibration points of the first split.
    """
    cached = find_logits(settings)
    logits, labels = cached.arrays()["logits"], cached.arrays()["labels"]
    points = np.arange(len(labels))
    if not on_all:
        points, _ = indices_of(settings, cached, 0)
        logits, labels = rows_of(logits, points), labels[points]
    record = cached.details
    calibrator: Any = instantiate(settings.calibrator, _convert_="all")
    calibrator.fit(logits, labels, sample_weight=weights_at(cached, points))
    calibrator.takes_ = record.get("origin", {}).get("values", "logits")
    if "class_names" in record:
        calibrator.class_names_ = np.array(record["class_names"])
    fitted: Calibrator = calibrator
    return fitted


def read_points(path: Path, calibrator: Calibrator, values: str = "auto") -> NDArray[Any]:
    """Read the logits or probabilities [n, C], whichever `calibrator` takes, from `path`.

    Args:
        path: npz with the array `logits` or `probabilities`; CSV or parquet with a column per
            class. If the calibrator has class names, columns are matched by name and others are
            ignored. For two classes one column is enough.
        values: "logits" takes what looks like probabilities or votes for logits.

    Raises:
        InputError: one line with file, field and fix.
    """
    takes = str(getattr(calibrator, "takes_", "logits"))
    names = [str(name) for name in getattr(calibrator, "class_names_", ())]
    given = read_given(path, takes, labelled=False, classes=names)
    in_auto = values if takes == "logits" else takes
    given, _ = to_logits(path, replace(given, kind=takes), in_auto, names)
    logits = np.asarray(given.matrix)
    count = logits.shape[1]
    if count != calibrator.n_features_in_:
        raise InputError(
            f"{path}: {takes}: {count} columns, but the calibrator was fitted on "
            f"{calibrator.n_features_in_} classes; give one column per class and no other"
        )
    if names and given.names is not None and set(given.names) == set(names):
        order = [given.names.index(name) for name in names]
        return logits[:, order]
    return logits
