"""Arrays of a pickle that somebody else wrote, read without running anything of it.

Plain unpickling calls whatever function a file names. Here a file may name only the few functions
that put NumPy arrays and torch tensors together; any other name is refused before it is looked up.
"""

import codecs
import io
import pickle
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from utility_calibration.calibrators.heavy_imports import require
from utility_calibration.metrics.errors import InputError, reason_of


def read_pickled(path: Path) -> Any:
    """What a pickle of arrays, tensors, numbers and texts holds, perhaps in tuples, lists or dicts.

    Raises:
        InputError: the file names any other function or class, or is no pickle.
    """
    try:
        with path.open("rb") as file:
            return _ArraysOnly(file).load()
    except InputError as error:
        error.in_file(path)
        raise
    except Exception as error:  # pickle raises errors of many kinds at damaged bytes
        message = f"not a pickle of arrays ({reason_of(error)})"
        raise InputError(message, file=path, fixes="fetch it again") from error


class _ArraysOnly(pickle.Unpickler):
    """An unpickler that knows the constructors in `ALLOWED` and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        allowed = ALLOWED.get(f"{module}.{name}")
        if allowed is None:
            message = f"it asks for {module}.{name}, which makes no array: nothing of it was run"
            raise InputError(message, fixes="take the file of the named commit")
        return allowed


class _Array:
    """The class of arrays, which a file may only name.

    Called with a buffer, the real one makes an array over the file's own bytes. Of objects these
    would be addresses that the file chooses.
    """

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        message = "it lays an array over raw memory"
        raise InputError(message, fixes="take the file of the named commit")


def _empty_array(kind: Any, shape: Any, code: Any) -> Any:
    """The array without elements whose content pickle sets next."""
    return np.empty(0, np.int8)


def _dtype(name: Any, *options: Any) -> Any:
    """The type of an array's elements, if these are no objects."""
    dtype = np.dtype(name, *options)
    if dtype.hasobject:
        message = "it holds objects, not numbers"
        raise InputError(message, fixes="take the file of the named commit")
    return dtype


def _encoded(text: str, encoding: str) -> bytes:
    """The bytes of an array, which early protocols of pickle write as Latin-1 text."""
    if codecs.lookup(encoding).name != "iso8859-1":
        raise InputError(f"it asks for the encoding {encoding}", fixes="fetch it again")
    return text.encode("latin1")


def _from_buffer(content: Any, dtype: np.dtype[Any], shape: tuple[int, ...], order: Any) -> Any:
    """An array as pickle's protocol 5 writes it."""
    return np.frombuffer(content, dtype=dtype).reshape(shape, order=order)


def _storage(content: bytes) -> Any:
    """The numbers of a tensor; torch's own safe reader refuses all else."""
    return require("torch").load(io.BytesIO(content), weights_only=True)


def _tensor(*arguments: Any) -> Any:
    """The tensor over a storage."""
    return require("torch._utils", "torch")._rebuild_tensor_v2(*arguments)


ALLOWED: Mapping[str, Callable[..., Any]] = {
    "numpy.core.multiarray._reconstruct": _empty_array,
    "numpy._core.multiarray._reconstruct": _empty_array,
    "numpy.core.numeric._frombuffer": _from_buffer,
    "numpy._core.numeric._frombuffer": _from_buffer,
    "numpy.ndarray": _Array,
    "numpy.dtype": _dtype,
    "_codecs.encode": _encoded,
    "collections.OrderedDict": OrderedDict,
    "torch.storage._load_from_bytes": _storage,
    "torch._utils._rebuild_tensor_v2": _tensor,
}
"""The names that may stand in a file, and what is called instead of looking them up."""
