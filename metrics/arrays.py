"""The door: what a caller gives becomes a NumPy array, and an answer gets the caller's kind.

Nothing behind this file knows another array library. The numbers of torch, JAX and CuPy are read
in the CPU's memory (without a copy where they are there already), and an answer goes back to the
same library and device. No library is imported here: whoever gives a tensor has imported torch.
NumPy itself reads lists and the frames of pandas, polars and arrow.
"""

from __future__ import annotations

import sys
from numbers import Real
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from .errors import InputError, reason_of

Array = NDArray[Any]
LIBRARIES = {"torch": "Tensor", "jax": "Array", "cupy": "ndarray"}
"""The libraries whose arrays are given back, and what each calls its arrays."""
FIXES = {"torch": "give one that is on the CPU or a GPU, outside of torch.compile"}
FIXES |= {"jax": "call this outside of jax.jit, with numbers", "cupy": "give cupy.asnumpy(…) of it"}


class TorchArray(Protocol):
    """What type checkers know a torch tensor by, so that torch need not be there."""

    def detach(self) -> Any: ...


class JaxArray(Protocol):
    """What type checkers know a JAX array by."""

    def block_until_ready(self) -> Any: ...


OtherArray = TypeVar("OtherArray", bound=TorchArray | JaxArray)
"""An array of another library; the answer is of the same type."""


def kind_of(values: Any) -> str:
    """Return "torch", "jax" or "cupy" for their arrays; "" for NumPy's and everything else."""
    for library, name in LIBRARIES.items():
        module = sys.modules.get(library)
        if module is not None and isinstance(values, getattr(module, name, ())):
            return library
    return ""


def plain(values: Any, field: str = "") -> Any:
    """Return another library's array as NumPy's, and everything else as it is.

    InputError: the array has no numbers, as on torch's device `meta` or inside `jax.jit`. The
    message calls it `field`.
    """
    library = kind_of(values)
    if not library:
        return values
    try:
        if library == "torch":
            return _of_torch(values)
        array = values.get() if library == "cupy" else np.asarray(values)
    except Exception as error:  # each library raises kinds of its own
        message = f"the numbers of this {library} array cannot be read ({reason_of(error)})"
        raise InputError(message, field=field, fixes=FIXES[library]) from error
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def _of_torch(tensor: Any) -> Array:
    torch: Any = sys.modules["torch"]
    tensor = tensor.detach().cpu().resolve_conj().resolve_neg()
    if tensor.layout is not torch.strided:  # sparse
        tensor = tensor.to_dense()
    if tensor.dtype == torch.bfloat16:  # NumPy has no such type
        tensor = tensor.float()
    return tensor.numpy()


def as_array(values: Any, field: str = "") -> Array:
    """Return `values` as a NumPy array of numbers, without a copy if possible.

    A read-only array is copied: kernels would be compiled once more for such memory.
    TypeError or ValueError: these are no numbers. InputError: as of `plain`.
    """
    array = np.asarray(plain(values, field))
    if array.dtype == object and hasattr(values, "to_numpy"):  # pandas' nullable types
        array = values.to_numpy(dtype=np.float64, na_value=np.nan)
    elif array.dtype == object:
        others = [entry for entry in array.flat if not isinstance(entry, Real)]
        if others:
            raise TypeError(f"a {type(others[0]).__name__} is among them")
        array = array.astype(np.float64)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"the type is {array.dtype}")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind == "u" and array.dtype.itemsize > 1:  # differences of these would wrap
        is_small = array.dtype.itemsize < 8 or array.max(initial=0) < 2**63
        array = array.astype(np.int64 if is_small else np.float64)
    return array if array.flags.writeable else array.copy()


def like(answer: Array, original: Any) -> Any:
    """Return `answer` as an array of the library of `original`, on its device.

    The numbers stay float64 or int64, but JAX makes them float32 or int32 unless it is told to
    keep 64 bits (`jax_enable_x64`). NumPy's answers of no dimension become numbers.
    """
    library = kind_of(original)
    if not library:
        return answer[()] if answer.ndim == 0 else answer
    module: Any = sys.modules[library]
    if library == "torch":
        return module.from_numpy(np.asarray(answer, order="C")).to(original.device)
    if library == "jax":
        return module.device_put(answer, next(iter(original.devices())))
    with original.device:
        return module.asarray(answer)
