"""Rankings that do not hang on the last bit: near-equal neighbours in the order of their class."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from metrics.kernels.compiled import compiled
from metrics.kernels.threads import over_row_blocks


def places_of(labels: Tensor, order: Tensor) -> Tensor:
    """Return where each label stands in its row of `order`: int64 [n], 0 if nowhere."""
    return (order == labels[:, None]).to(torch.uint8).argmax(dim=1)


def order_near_ties(probabilities: Tensor, order: Tensor, tied: float) -> Tensor:
    """Return `order` [n, C] with classes by number wherever neighbours lie within `tied`.

    A class keeps its place by the number of its group, so a stable sort by group is enough.
    """
    if order.device.type == "cpu":
        p, found = probabilities.contiguous().numpy(), order.clone().numpy()

        def work(start: int, stop: int) -> None:
            _order_rows(p[start:stop], found[start:stop], tied)

        over_row_blocks(work, len(found), found.size)
        return torch.from_numpy(found)
    order = order.to(torch.int64)
    ranked = probabilities.gather(1, order)
    starts = torch.nn.functional.pad(ranked[:, :-1] - ranked[:, 1:] > tied, (1, 0))
    group = torch.empty_like(order).scatter_(1, order, starts.cumsum(dim=1))
    return group.sort(dim=1, stable=True).indices


@compiled
def _order_rows(p: Any, order: Any, tied: float) -> None:
    classes = p.shape[1]
    group, place = np.empty(classes, np.int32), np.empty(classes, np.int32)
    for i in range(p.shape[0]):
        last = 0
        group[order[i, 0]] = place[0] = 0
        for k in range(1, classes):
            if p[i, order[i, k - 1]] - p[i, order[i, k]] > tied:
                last += 1
                place[last] = k
            group[order[i, k]] = last
        if last == classes - 1:
            continue
        for j in range(classes):
            order[i, place[group[j]]] = j
            place[group[j]] += 1
