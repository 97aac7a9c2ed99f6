"""Groups of points, which a calibrator with `takes_groups` gives maps of their own.

The names of the groups go along with the logits as an argument, so that calls from several threads
do not meet. Where the fit had groups, every prediction needs them.
"""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from utility_calibration.metrics.arrays import plain
from utility_calibration.metrics.class_order import text_of
from utility_calibration.metrics.errors import InputError
from utility_calibration.metrics.layout import check_same_order

Named = dict[str, NDArray[np.str_]]
"""The argument `names` [n] of `_fit` and `_predict_proba`; empty without groups."""


def names_to_fit(calibrator: Any, groups: Any, n: int) -> Named:
    """Return the names of the groups of n points; `InputError` if the method takes none."""
    if groups is None:
        if calibrator.needs_groups:
            fix = "name each point's group (--groups NAME)"
            raise InputError("none are given", field="groups", fixes=fix)
        return {}
    if not calibrator.takes_groups:
        message = f"{type(calibrator).__name__} has no maps of groups"
        fixes = ["leave them out", "take LogitShiftPatching"]
        raise InputError(message, field="groups", fixes=fixes)
    return {"names": checked_groups(groups, n)}


def names_to_predict(calibrator: Any, X: Any, groups: Any, n: int) -> Named:
    """Return the names of the groups of the n points X; a warning names those without a map.

    `InputError` if the fit had groups and none are given, or the other way round.
    """
    fitted = getattr(calibrator, "groups_", np.empty(0, np.str_))
    if groups is None and len(fitted):
        message = f"none are given, and the fit had {len(fitted)}"
        raise InputError(message, field="groups", fixes="name each point's group: groups=names")
    if groups is None:
        return {}
    check_same_order({"X": X, "groups": groups})
    if not len(fitted):
        message = "the fit had none"
        fixes = ["leave them out", "fit LogitShiftPatching with groups="]
        raise InputError(message, field="groups", fixes=fixes)
    names = checked_groups(groups, n)
    unseen = np.setdiff1d(names, fitted)
    if len(unseen):
        warnings.warn(
            f"groups: {', '.join(unseen[:5])} had no calibration point, so they get the repair "
            "of all points",
            stacklevel=4,  # the caller of predict_proba
        )
    return {"names": names}


def checked_groups(groups: Any, n: int) -> NDArray[np.str_]:
    """Return the groups' names [n] as text; `InputError` if there are not as many as rows."""
    is_list = isinstance(groups, list | tuple)  # of which NumPy would make text, `nan`, too
    names = np.array(groups, dtype=object) if is_list else np.asarray(plain(groups))
    if names.ndim != 1 or len(names) != n:
        raise InputError(
            f"shape {list(names.shape)} for {n} rows", field="groups", fixes="give one name per row"
        )
    missing = np.array([_is_missing(name) for name in names.tolist()], bool)
    if missing.any():
        row = int(missing.argmax())
        raise InputError(
            "no name", field="groups", row=row, fixes=["fill it", "give it a name such as none"]
        )
    return np.array([text_of(name) for name in names.tolist()], np.str_)


def _is_missing(name: Any) -> bool:
    """Return whether a group's name is None, NaN, what pandas writes for these, or blank."""
    if isinstance(name, str):
        return not name.strip()
    return name is None or type(name).__name__ in ("NAType", "NaTType") or bool(name != name)
