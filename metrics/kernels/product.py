"""Products of large matrices: by NumPy's BLAS on a CPU, by torch elsewhere.

torch brings Intel's library, which uses half of the vector registers of AMD's processors; NumPy's
OpenBLAS uses all of them, so that products take half the time there and the same on others. Its
threads are told with torch's how to wait, in `metrics`.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def product(a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
    """Return a @ b: [..., n, k] and [..., k, m] of one type to [..., n, m], in `out` if given."""
    if a.device.type != "cpu":
        return torch.matmul(a, b, out=out)
    found = np.matmul(a.numpy(), b.numpy(), out=None if out is None else out.numpy())
    return torch.from_numpy(found) if out is None else out
