"""Weighted means over the rows of logits, of four numbers each, in float64.

One pass over the logits at a time: a compiled loop over rows on the CPU, torch elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from metrics.kernels.softmax import has_kernels, row_weights
from metrics.kernels.threads import over_blocks, row_blocks


def row_means(
    sums: Callable[[Any, Any, Any, float, Any], None],
    terms: Callable[[Tensor, Tensor, float], Tensor],
    logits: Tensor,
    labels: Tensor,
    beta: float,
    weights: Tensor | None = None,
) -> list[float]:
    """Return four means over rows of `logits` [n, C] with `labels` [n] and `weights` [n] at `beta`.

    Args:
        sums: compiled, writes the weighted sums of arrays (logits, labels, weights, beta) to [4].
        terms: the same of tensors, row by row and unweighted: float64 [4, n].
    """
    n, classes = logits.shape
    shares = row_weights(weights, logits)
    size = float(shares.sum())
    if has_kernels(logits):
        values, codes, counts = logits.contiguous().numpy(), labels.numpy(), shares.numpy()

        def block_sums(start: int, stop: int) -> list[float]:
            out = np.empty(4)
            part = slice(start, stop)
            sums(values[part], codes[part], counts[part], beta, out)
            return [float(value) for value in out]

        parts = over_blocks(block_sums, row_blocks(n, classes))
        return [math.fsum(part[k] for part in parts) / size for k in range(4)]
    totals = torch.zeros(4, dtype=torch.float64, device=logits.device)
    for start, stop in row_blocks(n, classes, 1 << 24):
        part = slice(start, stop)
        totals += terms(logits[part], labels[part], beta) @ shares[part]
    return list((totals / size).tolist())
