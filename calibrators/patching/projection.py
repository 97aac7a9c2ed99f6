"""Euclidean projection onto the probability simplex, row by row.

The projection of x is max(x - τ, 0) with τ such that the entries sum to one. The CPU finds τ
by Michelot's active set: start with all entries, drop those at or below the current τ, repeat; it
needs no sort and two to five passes. Elsewhere the usual sort gives τ in one go.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from metrics.kernels.compiled import compiled_sums


@compiled_sums
def project_row(x: Any) -> None:
    """Project `x` [C] in place. Sums may be reordered into vector lanes: no branch, no infinity."""
    active = x.size
    total = 0.0
    for j in range(x.size):
        total += x[j]
    tau = (total - 1.0) / active
    while True:
        total = 0.0
        kept = 0
        for j in range(x.size):
            above = x[j] > tau
            total += x[j] if above else 0.0
            kept += above
        # τ grows from pass to pass, so the active set only shrinks. Rounding can break that by an
        # ulp (hence >=), and can make all entries equal to τ (hence 0).
        if kept >= active or kept == 0:
            break
        active = kept
        tau = (total - 1.0) / active
    for j in range(x.size):
        x[j] = max(x[j] - tau, 0.0)


def project_rows_torch(points: Tensor) -> Tensor:
    """Return the nearest point of the simplex to each row of `points`: [k, C], on any device."""
    ordered = points.sort(dim=1, descending=True).values
    excess = ordered.cumsum(dim=1) - 1
    count = torch.arange(1, points.shape[1] + 1, device=points.device, dtype=points.dtype)
    active = (ordered * count > excess).sum(dim=1, keepdim=True)
    tau = excess.gather(1, active - 1) / active
    return (points - tau).clamp(min=0)
