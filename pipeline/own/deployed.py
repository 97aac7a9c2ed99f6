"""A calibrator to deploy: fitted to the points of a file, applied to points without labels.

The saved file also says what the calibrator takes: `takes_` is "logits" or "probabilities",
`class_names_` has the names of the columns in their order, if they are known, and `groups_from_`
says which column or array names the group of each point, if the calibrator has patches of groups,
and `predictions_from_` the one with the predictions whose confidence it takes.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.calibrators.base import Calibrator
from utility_calibration.metrics.validation import InputError

from ..harness.settings import Settings
from ..scoring.fitted import fitted_on
from ..scoring.points import CachedLogits
from .assign import answers_of, without_ignored
from .cells import Labels, text_of
from .choices import Choices
from .lists import arrays_of, named_by_row
from .read import read
from .scale import with_logits
from .told import naming


def fit_to_keep(settings: Settings, cached: CachedLogits, on_all: bool) -> Calibrator:
    """Fit a calibrator `on_all` points, else on the calibration points of the first split."""
    fitted: Calibrator = fitted_on(settings, cached, None if on_all else 0)
    kept: dict[str, Any] = {"takes_": cached.details.get("origin", {}).get("values", "logits")}
    if fitted.needs_groups and "groups" in cached.details:
        kept["groups_from_"] = settings.benchmark.source.get("groups") or "groups"
    if (predictions := settings.benchmark.source.get("predictions")) is not None:
        kept["predictions_from_"] = predictions
    if "class_names" in cached.details:
        kept["class_names_"] = np.array(cached.details["class_names"])
    for name, value in kept.items():
        setattr(fitted, name, value)
    return fitted


def read_points(
    path: Path, calibrator: Calibrator, choices: Choices
) -> tuple[NDArray[np.float32], NDArray[np.str_] | None]:
    """Read the points of `path` as logits [n, C], or as logarithms of probabilities; their groups.

    The groups [n] are None unless the calibrator has patches of groups. The file is as `score`
    takes it, without labels. The columns of a table, and an array with `class_names`, are matched
    with the calibrator's classes by name. For two classes one column is enough.
    """
    takes = str(getattr(calibrator, "takes_", calibrator.inputs))
    has_groups = len(getattr(calibrator, "groups_", ())) > 0
    named = str(getattr(calibrator, "groups_from_", "groups" if has_groups else ""))
    predicted = str(getattr(calibrator, "predictions_from_", "")) or None
    choices = replace(choices, predictions=choices.predictions or predicted)
    held = read(path, choices, lambda name: name in ("class_names", named, choices.predictions))
    with naming(path):
        (held,) = without_ignored([held], choices.ignore)
        if named and named not in held:
            told, fix = "not there, and the calibrator patches groups", "add each point's group"
            raise InputError(told, field=named, fixes=fix)
        groups: Any = held.pop(named) if named else None
        if choices.predictions is not None and choices.predictions not in held:
            told = "not there, and the answers are the confidence in these predictions"
            raise InputError(told, field=choices.predictions, fixes="add each point's prediction")
        choices = replace(choices, values=choices.values if takes == "logits" else takes)
        names = getattr(calibrator, "class_names_", None)
        if names is None and calibrator.classes_.dtype.kind == "U":
            names = calibrator.classes_
        if names is None:
            names = getattr(calibrator, "feature_names_in_", None)
        places = np.arange(calibrator.n_features_in_)
        texts = [str(name) for name in (places if names is None else names)]
        known = Labels(texts, places, is_text=names is not None, are_known=True)
        held = arrays_of(named_by_row(held, choices), choices, [], texts)
        columns = [name for name in held if name != choices.predictions]
        given = answers_of(held, columns, known, choices, takes)
        given = with_logits(replace(given, order=given.labels), choices.values)
        if groups is not None:
            groups = text_of(groups, len(given.matrix), named)
    return given.matrix, groups
