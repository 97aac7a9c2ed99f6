"""Fitted calibrators as .npz files.

A file holds arrays and a JSON string, never pickle. NumPy is imported inside the
functions that need it, because the programs' `--help` imports this module and should be fast.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from utility_calibration.metrics.atomic import atomic_path
from utility_calibration.metrics.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

KIND, PARAMETERS, FORMAT = "calibrator", "params", "format"
REQUIRED = {KIND, PARAMETERS, FORMAT, "classes_", "n_features_in_"}
LATEST = 3  # format of the files written and read here; earlier releases wrote 1 and 2


def write_archive(
    path: str | Path, kind: str, parameters: Mapping[str, Any], fitted: Mapping[str, NDArray[Any]]
) -> Path:
    """Write a calibrator's class name, constructor arguments and fitted arrays to `path`.

    The same content gives the same bytes. The file appears under its name only when complete.
    `InputError` names a constructor argument that JSON cannot hold.
    """
    import numpy as np

    plain = {}
    for name, value in parameters.items():
        try:
            plain[name] = json.loads(json.dumps(value, default=lambda entry: entry.tolist()))
        except (TypeError, AttributeError) as error:
            kind_of = type(value).__name__
            raise InputError(f"a {kind_of} cannot be stored in JSON", field=name) from error
    head: dict[str, Any] = {KIND: kind, FORMAT: LATEST, PARAMETERS: json.dumps(plain)}
    content = head | dict(sorted(fitted.items()))
    arrays = plain_arrays(content)
    with atomic_path(path) as temporary, temporary.open("xb") as stream:
        np.savez_compressed(stream, **arrays)
    return Path(path)


def plain_arrays(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return `content` as arrays that `numpy.savez` writes without pickle; `InputError` otherwise.

    Before version 2.2, NumPy stores the argument `allow_pickle` as an array of that name.
    """
    import numpy as np

    arrays = {name: np.asarray(value) for name, value in content.items()}
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise InputError(
                "holds Python objects", field=name, fixes="store it as arrays of numbers"
            )
    return arrays


def read_archive(path: str | Path | IO[bytes]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return class name, constructor arguments and fitted values from a file of `write_archive`.

    Zero-dimensional arrays come back as plain numbers, strings or booleans. `InputError` reports a
    file that is missing, damaged, not a calibrator, or of another format.
    """
    from utility_calibration.metrics.archive import read_arrays

    fix = "fit and save it again"
    try:
        content = read_arrays(path, fix=fix)
    except FileNotFoundError as error:
        raise InputError(
            "no such file", file=path, fixes="fit and save the calibrator first"
        ) from error
    if missing := sorted(REQUIRED - content.keys()):
        raise InputError(
            f"not a saved calibrator, it lacks {', '.join(missing)}", file=path, fixes=fix
        )
    content.pop("allow_pickle", None)  # see `plain_arrays`
    version = content.pop(FORMAT)
    if version.shape or version.dtype.kind not in "iu":
        raise InputError("damaged format number", file=path, fixes=fix)
    if version != LATEST:
        is_newer = version > LATEST
        release = "a newer release" if is_newer else "an earlier release"
        raise InputError(
            f"format {version} of {release}, this one reads {LATEST}",
            file=path,
            fixes="update utility-calibration" if is_newer else fix,
        )
    kind, text = str(content.pop(KIND)), str(content.pop(PARAMETERS))
    try:
        parameters = dict(json.loads(text))
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(f"damaged parameters ({error})", file=path, fixes=fix) from error
    fitted = {}
    for name, array in content.items():
        # Only names that `Calibrator.save` writes; others may replace a method.
        if not name.isidentifier() or name.startswith("_") or not name.endswith("_"):
            raise InputError(f"{name!r} is no fitted value", file=path, fixes=fix)
        fitted[name] = array if array.ndim else array.item()
    count = content["n_features_in_"]
    if count.dtype.kind not in "iu" or count.tolist() != content["classes_"].size:
        raise InputError("classes_ and n_features_in_ differ", file=path, fixes=fix)
    return kind, parameters, fitted
