"""A calibrator to deploy: fitted to the points of a file, applied to points without labels.

The saved file also says what the calibrator takes: `takes_` is "logits" or "probabilities",
`class_names_` has the names of the columns in their order, if they are known, and `groups_from_`
says which column or array names the group of each point, if the calibrator has patches of groups.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from hydra.utils import instantiate
from numpy.typing import NDArray

from calibrators.base import Calibrator
from calibrators.class_order import bearers_of
from metrics.validation import InputError, check_logits
from pipeline.harness.settings import Settings
from pipeline.own.assign import (
    WHAT_A_TABLE_HOLDS,
    Choices,
    Given,
    matrix_of,
)
from pipeline.own.columns import classes_known, without_ignored
from pipeline.own.labels import class_names_of, some_of, text_of
from pipeline.own.lists import arrays_of
from pipeline.own.read import numbers_of, read
from pipeline.own.scale import with_logits
from pipeline.scoring.points import find_logits, groups_at, indices_of, logits_at, weights_at

NO_CHOICES = Choices()


def fit_to_keep(settings: Settings, on_all: bool) -> Calibrator:
    """Fit the calibrator of `settings` on its benchmark's cached logits.

    `on_all`: fit on all points, else on the calibration points of the first split.
    """
    cached = find_logits(settings)
    logits, labels = cached.arrays()["logits"], cached.arrays()["labels"]
    points = np.arange(len(labels))
    if not on_all:
        points, _ = indices_of(settings, cached, 0)
        logits, labels = logits_at(cached, points), labels[points]
    record = cached.details
    calibrator: Any = instantiate(settings.calibrator, _convert_="all")
    groups = groups_at(cached, points, calibrator)
    calibrator.fit(logits, labels, sample_weight=weights_at(cached, points), **groups)
    if groups:
        calibrator.groups_from_ = settings.benchmark.source.get("groups") or "groups"
    calibrator.takes_ = record.get("origin", {}).get("values", "logits")
    if "class_names" in record:
        calibrator.class_names_ = np.array(record["class_names"])
    fitted: Calibrator = calibrator
    return fitted


def read_points(
    path: Path, calibrator: Calibrator, choices: Choices = NO_CHOICES
) -> tuple[NDArray[np.float32], NDArray[np.str_] | None]:
    """Read the points of `path` as logits [n, C], or as logarithms of probabilities; their groups.

    The groups [n] are None unless the calibrator has patches of groups.

    Args:
        path: a file as score.py takes it, without labels. The columns of a table, and an array
            with `class_names`, are matched with the calibrator's classes by name. For two classes
            one column is enough.
        choices: `values` "logits" takes what looks like probabilities or votes for logits.

    Raises:
        InputError: one line with file, field and fix.
    """
    takes = str(getattr(calibrator, "takes_", calibrator.inputs))
    classes, are_named = _classes_of(calibrator)
    named = str(getattr(calibrator, "groups_from_", ""))
    contents = [read(path, lambda name: name in ("class_names", named))]
    held = without_ignored(str(path), contents, choices.ignore)[0]
    if named and named not in held:
        raise InputError(f"{path}: no `{named}`, which names each point's group; add it")
    groups: Any = held.pop(named) if named else None
    arrays = arrays_of(str(path), held)
    order = None
    if not isinstance(held, dict) and arrays is None:
        found = classes_known(str(path), held, classes, choices.classes)
        matrix: Any = numbers_of(path, held, found.columns, WHAT_A_TABLE_HOLDS, -np.inf)
        given = Given(takes, matrix, classes, single=found.single)
    else:
        assert arrays is not None
        _, name = matrix_of(str(path), arrays, takes)
        matrix = arrays[name]
        if matrix.ndim not in (1, 2):
            check_logits(matrix, f"{path}: {takes}")
        is_single = matrix.ndim == 1 or matrix.shape[1:] == (1,)
        count = 2 if is_single else matrix.shape[-1]
        names = class_names_of(str(path), arrays, count, choices.classes)
        if names is not None and (are_named or set(names) == set(classes)):
            order = _order(str(path), names, classes)
        given = Given(takes, matrix, classes, single=1 if is_single else None)
    given = with_logits(path, given, choices.values if takes == "logits" else takes)
    logits: NDArray[np.float32] = given.matrix
    if logits.shape[1] != calibrator.n_features_in_:
        raise InputError(
            f"{path}: {takes}: {logits.shape[1]} columns, but the calibrator was fitted on "
            f"{calibrator.n_features_in_} classes; give one column per class and no other"
        )
    if groups is not None:
        groups = text_of(groups, len(logits), f"{path}: {named}")
    return logits if order is None else logits[:, order], groups


def _classes_of(calibrator: Calibrator) -> tuple[list[str], bool]:
    """The names of the calibrator's columns, and whether a person gave them; else 0 … C-1."""
    names = getattr(calibrator, "class_names_", None)
    if names is None and calibrator.classes_.dtype.kind == "U":
        names = calibrator.classes_
    if names is None:
        names = getattr(calibrator, "feature_names_in_", None)
    if names is None:
        return [str(k) for k in range(calibrator.n_features_in_)], False
    return [str(name) for name in names], True


def _order(path: str, names: list[str], classes: list[str]) -> list[int]:
    """The places of the calibrator's classes among the names of a file's columns."""
    found = bearers_of(names, classes)
    if len(found) != 1 or len(names) != len(classes):
        raise InputError(
            f"{path}: class_names: {some_of(names)}, but the calibrator was fitted on "
            f"{some_of(classes)}; give the same classes"
        )
    place = {label: names.index(name) for name, label in found[0].labels.items()}
    return [place[name] for name in classes]
