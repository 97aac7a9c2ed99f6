"""The rank of given classes in rows of probabilities, by comparisons instead of a sort."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from metrics.kernels.compiled import compiled
from metrics.kernels.threads import over_row_blocks


def label_ranks(probabilities: Tensor, labels: Tensor) -> Tensor:
    """Return the number of classes ahead of each label: more probable, ties by class index.

    Args:
        probabilities: float64 [n, C].
        labels: int64 [R, n], R draws.

    Returns:
        int64 [R, n], from 0.
    """
    if probabilities.device.type != "cpu":
        return label_ranks_torch(probabilities, labels)
    ranks = torch.empty(labels.shape, dtype=torch.int64)
    p, y, out = probabilities.numpy(), labels.numpy(), ranks.numpy()

    def work(start: int, stop: int) -> None:
        _count_ahead(p[start:stop], y[:, start:stop], out[:, start:stop])

    over_row_blocks(work, len(p), p.size * len(y) // 8)  # a comparison costs next to nothing
    return ranks


def label_ranks_torch(probabilities: Tensor, labels: Tensor) -> Tensor:
    """`label_ranks` in plain torch: any device, a draw at a time."""
    columns = torch.arange(probabilities.shape[1], device=labels.device)
    ranks = torch.empty_like(labels)
    for draw, of_point in enumerate(labels[:, :, None]):
        own = probabilities.gather(1, of_point)
        tied_before = (probabilities == own) & (columns < of_point)
        ranks[draw] = ((probabilities > own) | tied_before).sum(dim=1)
    return ranks


@compiled
def _count_ahead(p: Any, labels: Any, ranks: Any) -> None:
    for i in range(p.shape[0]):
        for draw in range(labels.shape[0]):
            label = labels[draw, i]
            own = p[i, label]
            ahead = 0
            for j in range(label):
                ahead += p[i, j] >= own
            for j in range(label + 1, p.shape[1]):
                ahead += p[i, j] > own
            ranks[draw, i] = ahead
