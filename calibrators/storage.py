"""Fitted calibrators as .npz files: arrays and a JSON string, never pickle, never half-written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from calibrators.files import atomic_path
from metrics.archive import read_arrays
from metrics.validation import InputError

KIND = "calibrator"
PARAMETERS = "params"
REQUIRED = {KIND, PARAMETERS, "classes_", "n_features_in_"}


def write_archive(
    path: str | Path, kind: str, parameters: Mapping[str, Any], fitted: Mapping[str, NDArray[Any]]
) -> Path:
    """Write a calibrator's class name, constructor arguments and fitted arrays to `path`.

    The same content gives the same bytes. The file appears under its name only when complete.
    `InputError` names a constructor argument that JSON cannot hold.
    """
    target = Path(path)
    for name, value in fitted.items():
        if value.dtype.hasobject:
            raise InputError(f"{name}: {type(value)} is not an array of numbers; cannot be stored")
    content = {
        KIND: np.asarray(kind),
        PARAMETERS: np.asarray(json.dumps({k: _plain(k, v) for k, v in parameters.items()})),
        **{name: fitted[name] for name in sorted(fitted)},
    }
    with atomic_path(target) as temporary, temporary.open("xb") as stream:
        np.savez_compressed(stream, allow_pickle=False, **content)
    return target


def read_archive(path: str | Path | IO[bytes]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return (class name, constructor arguments, fitted values) of a file by `write_archive`.

    Zero-dimensional arrays come back as plain numbers, strings or booleans. Members that are JSON
    are notes of whoever wrote the file and passed over. `InputError` (one line) where the file is
    missing, damaged or not a calibrator.
    """
    try:
        content = read_arrays(path, fix="fit and save it again")
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file; fit and save the calibrator first") from error
    if missing := sorted(REQUIRED - content.keys()):
        raise InputError(f"{path}: not a saved calibrator, it lacks {', '.join(missing)}")
    kind, text = str(content.pop(KIND)), str(content.pop(PARAMETERS))
    try:
        parameters = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{path}: damaged parameters ({error}); fit and save it again") from error
    fitted = {name: _fitted(path, name, array) for name, array in content.items()}
    if np.size(fitted["classes_"]) != fitted["n_features_in_"]:
        raise InputError(f"{path}: classes_ and n_features_in_ differ; fit and save it again")
    return kind, parameters, fitted


def _fitted(path: str | Path | IO[bytes], name: str, array: NDArray[Any]) -> Any:
    """A fitted value under a name that `Calibrator.save` would give: it replaces no method."""
    if not name.isidentifier() or name.startswith("_") or not name.endswith("_"):
        raise InputError(f"{path}: {name!r} is no fitted value; fit and save it again")
    return array.item() if array.ndim == 0 else array


def _plain(name: str, value: Any) -> Any:
    """`value` as JSON can hold it: NumPy numbers and arrays become numbers and lists."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    elif hasattr(value, "items"):
        return {str(k): _plain(name, v) for k, v in value.items()}
    elif isinstance(value, list | tuple):
        return [_plain(name, v) for v in value]
    try:
        json.dumps(value)
    except TypeError as error:
        raise InputError(f"{name}: a {type(value).__name__} cannot be stored in JSON") from error
    return value
