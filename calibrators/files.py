"""Fitted calibrators as .npz files.

A file holds arrays and a JSON string, never pickle. NumPy is imported inside the
functions that need it, because the programs' `--help` imports this module and should be fast.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from utility_calibration.metrics.atomic import atomic_path
from utility_calibration.metrics.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

KIND, PARAMETERS, FORMAT = "calibrator", "params", "format"
REQUIRED = {KIND, PARAMETERS, FORMAT, "classes_", "n_features_in_"}
FORMAT_NUMBER = 1  # a later version that writes other files gives them another number
LARGEST_VALUE = 64 << 20
"""Bytes of a value that declares no free size, unless a map of all classes takes more."""


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
    head: dict[str, Any] = {KIND: kind, FORMAT: FORMAT_NUMBER, PARAMETERS: json.dumps(plain)}
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


def read_archive(
    path: str | Path | IO[bytes], of_any_size: Callable[[str], Collection[str]]
) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Return class name, constructor arguments and fitted values from a file of `write_archive`.

    Zero-dimensional arrays come back as plain numbers, strings or booleans. `of_any_size` gives the
    names of the values that may be large, by the name of the class. `InputError` reports a file
    that is missing, damaged, not a calibrator, or of another format. An array that no calibrator
    has is refused before it is unpacked.
    """
    from utility_calibration.metrics.archive import read_arrays

    fix = "fit and save it again"
    try:
        _check_headers(path, of_any_size, fix)
        content = read_arrays(path, fix=fix)
    except FileNotFoundError as error:
        raise InputError(
            "no such file", file=path, fixes="fit and save the calibrator first"
        ) from error
    content.pop("allow_pickle", None)  # see `plain_arrays`
    if content.pop(FORMAT).tolist() != FORMAT_NUMBER:
        message = f"its format is not {FORMAT_NUMBER}, the one that this version reads"
        raise InputError(message, file=path, fixes=[fix, "update utility-calibration"])
    kind, text = str(content.pop(KIND)), str(content.pop(PARAMETERS))
    try:
        parameters = dict(json.loads(text))
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(f"damaged parameters ({error})", file=path, fixes=fix) from error
    fitted = {}
    for name, array in content.items():
        fitted[name] = array if array.ndim else array.item()
    count = content["n_features_in_"]
    if count.dtype.kind not in "iu" or count.tolist() != content["classes_"].size:
        raise InputError("classes_ and n_features_in_ differ", file=path, fixes=fix)
    return kind, parameters, fitted


def _check_headers(
    path: str | Path | IO[bytes], of_any_size: Callable[[str], Collection[str]], fix: str
) -> None:
    """Refuse a file by the names and sizes of its arrays, of which none is unpacked yet.

    A file of 1 MB may hold an array of zeros that takes 1 GiB.
    """
    from utility_calibration.metrics.archive import array_headers, read_arrays

    headers = array_headers(path, fix=fix)
    missing = sorted(REQUIRED - headers.keys())
    if missing:
        message = f"not a saved calibrator, it lacks {', '.join(missing)}"
        raise InputError(message, file=path, fixes=fix)
    sizes = {
        name: math.prod(header.shape) * header.dtype.itemsize for name, header in headers.items()
    }
    values = headers.keys() - (REQUIRED - {"classes_", "n_features_in_"}) - {"allow_pickle"}
    for name in sorted(values):
        # Only names that `Calibrator.save` writes; others may replace a method.
        if not name.isidentifier() or name.startswith("_") or not name.endswith("_"):
            raise InputError(f"{name!r} is no fitted value", file=path, fixes=fix)
    for name in sorted(REQUIRED):
        if sizes[name] > LARGEST_VALUE:
            raise InputError(f"{sizes[name]:,} bytes", field=name, file=path, fixes=fix)
    kind = str(read_arrays(path, only=[KIND], fix=fix)[KIND])
    classes = math.prod(headers["classes_"].shape)
    limit = max(LARGEST_VALUE, 8 * (classes + 1) ** 2)
    for name in sorted(values - set(of_any_size(kind))):
        if sizes[name] > limit:
            message = f"{sizes[name]:,} bytes for {classes:,} classes"
            fixes = [fix, f"declare its sizes in {kind}.learned"]
            raise InputError(message, field=name, file=path, fixes=fixes)
