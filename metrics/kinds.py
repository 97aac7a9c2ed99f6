"""NumPy arrays and torch tensors in, the same kind out.

Everything inside the package is written once, in torch. These two functions convert what comes in
and what goes out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Array = NDArray[Any] | Tensor
"""What the public functions accept and return."""


def as_tensor(values: Any, dtype: torch.dtype | None = None) -> Tensor:
    """Return `values` as a tensor on its own device, without a copy where memory allows one."""
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
