"""Products of matrices: large ones by NumPy's BLAS on a CPU, all others by torch.

torch brings Intel's library, which does without AVX-512 on AMD's processors. NumPy brings OpenBLAS
on Linux, which uses it: large products take about half the time there, but their last bit hangs on
the number of threads (`OPENBLAS_NUM_THREADS` or threadpoolctl), as that of torch's does not.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

LARGE = 2_000_000_000
"""Multiplications from which the time saved is worth that bit: no benchmark of CIFAR's size."""


def product(a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
    """Return a @ b: [n, k] and [k, m] of one type to [n, m], in `out` if given."""
    if a.device.type != "cpu" or a.numel() * b.shape[-1] < LARGE:
        return torch.matmul(a, b, out=out)
    given = None if out is None else out.numpy()
    with np.errstate(all="ignore"):  # as torch, which does not warn; some BLAS do without reason
        found = np.matmul(a.numpy(), b.numpy(), out=given)
    return torch.from_numpy(found) if out is None else out
