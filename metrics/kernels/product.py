"""Products of large matrices: by NumPy's BLAS on a CPU, by torch elsewhere.

torch brings Intel's library, which does without AVX-512 on AMD's processors. NumPy brings OpenBLAS
on Linux, which uses it: products take about half the time there. Its threads are told with torch's
how to wait, in `metrics`; how many they are, `OPENBLAS_NUM_THREADS` or threadpoolctl says.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def product(a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
    """Return a @ b: [..., n, k] and [..., k, m] of one type to [..., n, m], in `out` if given."""
    if a.device.type != "cpu":
        return torch.matmul(a, b, out=out)
    given = None if out is None else out.numpy()
    with np.errstate(all="ignore"):  # as torch, which does not warn; some BLAS do without reason
        found = np.matmul(a.numpy(), b.numpy(), out=given)
    return torch.from_numpy(found) if out is None else out
