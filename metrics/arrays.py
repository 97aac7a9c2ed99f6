"""The door: what a caller gives becomes a NumPy array, and an answer becomes the caller's kind.

Nothing behind this file knows of any other array library. A torch tensor on any device, a JAX or a
CuPy array are copied to the CPU's memory (shared where they are there already), and the answer goes
back to the same kind and device. Libraries are not imported here: who gives a tensor has torch.
"""

from __future__ import annotations

import sys
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def kind_of(values: Any) -> str:
    """Return "torch", "jax" or "cupy" for their arrays; "" for NumPy's and all else."""
    return next((k for k, m in LIBRARIES.items() if k in sys.modules and m(values)), "")


LIBRARIES = {
    "torch": lambda values: isinstance(values, sys.modules["torch"].Tensor),
    "jax": lambda values: isinstance(values, sys.modules["jax"].Array),
    "cupy": lambda values: isinstance(values, sys.modules["cupy"].ndarray),
}


def plain(values: Any) -> Any:
    """Return another library's array as NumPy's; everything else as it is."""
    kind = kind_of(values)
    if kind == "torch":
        held = values.detach().cpu().resolve_conj().resolve_neg()
        if held.dtype == sys.modules["torch"].bfloat16:  # NumPy has no such type
            held = held.float()
        return (
            held.to_dense() if held.layout is not sys.modules["torch"].strided else held
        ).numpy()
    if kind == "jax":
        held = np.asarray(values)
        return held.astype(np.float32) if held.dtype.name in ("bfloat16", "float8_e4m3fn") else held
    return values.get() if kind == "cupy" else values


def as_array(values: Any) -> Array:
    """Return `values` as a NumPy array, without a copy if possible."""
    array = np.asarray(plain(values))
    if array.dtype == object and hasattr(values, "to_numpy"):  # pandas' nullable types
        array = values.to_numpy(dtype=np.float64, na_value=np.nan)
    elif array.dtype == object and all(isinstance(entry, Real) for entry in array.flat):
        array = array.astype(np.float64)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"can't convert np.ndarray of type {array.dtype}")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def like(result: Array, original: Any) -> Any:
    """Return `result` as the kind that `original` has, on its device."""
    kind = kind_of(original)
    if kind == "torch":
        return sys.modules["torch"].from_numpy(np.ascontiguousarray(result)).to(original.device)
    if kind == "jax":
        return sys.modules["jax"].device_put(result, next(iter(original.devices())))
    if kind == "cupy":
        with original.device:
            return sys.modules["cupy"].asarray(result)
    return result[()] if result.ndim == 0 else result
