"""Products of matrices, all by torch: their last bit does not depend on the number of threads."""

from __future__ import annotations

import torch
from torch import Tensor


def product(a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
    """Return a @ b: [n, k] and [k, m] of one type to [n, m], in `out` if given."""
    return torch.matmul(a, b, out=out)
