"""Conversion between NumPy arrays and torch tensors: a result has the kind of the input.

The code inside the package uses torch only. These two functions convert its inputs and results.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[Any] | Tensor
"""The kinds of arrays that the public functions accept and return."""


def as_tensor(values: Any, dtype: torch.dtype | None = None) -> Tensor:
    """Return `values` as a tensor on their own device, without a copy if possible."""
    if isinstance(values, Tensor):
        tensor = values.detach()
    else:
        array = np.asarray(values)
        if array.dtype == object and hasattr(values, "to_numpy"):  # pandas' nullable types
            array = values.to_numpy(dtype=np.float64, na_value=np.nan)
        # torch cannot wrap read-only memory or negative strides without a warning or an error.
        if not array.flags.writeable or any(stride < 0 for stride in array.strides):
            array = array.copy()
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        tensor = torch.from_numpy(array)
    return tensor if dtype is None else tensor.to(dtype)


def like(result: Tensor, original: Any) -> Any:
    """Return `result` as the kind that `original` has: a tensor on its device, or NumPy."""
    if isinstance(original, Tensor):
        return result.to(original.device)
    array = result.cpu().numpy()
    return array[()] if array.ndim == 0 else array
